/** The report of a run: what it draws is what the run told, in a real browser where there is one. */

import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { Tracking, writeReport } from "@rayling/trainer";
import { chromiumPath, openBrowser } from "./browser.ts";
import { recordRun } from "./recorded-run.ts";
import { optionsIn, runFolder } from "./run-folder.ts";

const whole = { steps: 30, perStep: 200 };

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test("every chart is there with as many marks as there are values, and nothing is fetched", async () => {
    const directory = await runFolder();
    await recordRun(directory, ["report"], whole);
    const browser = await openBrowser();
    const page = await browser.newPage({ colorScheme: "light" });
    const requests: string[] = [];
    const errors: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => errors.push(message.text()));
    const url = pathToFileURL(join(directory, "report.html")).href;
    await page.goto(url);

    const charts = await page.$$eval("svg[role=img]", (all) =>
      all.map((svg) => {
        const box = svg.getBoundingClientRect();
        const labels = [...svg.querySelectorAll("text")].map((text) => text.textContent);
        return {
          title: svg.getAttribute("aria-label"),
          isSeen: box.width > 300 && box.height > 100,
          labels,
          marks: [...svg.querySelectorAll("circle.point")].length,
          bars: [...svg.querySelectorAll("rect.bar")].length,
          inside: [...svg.querySelectorAll("circle, rect, polyline")].every((mark) => {
            const at = mark.getBoundingClientRect();
            return at.left >= box.left - 5 && at.right <= box.right + 5 && at.top >= box.top - 5;
          }),
        };
      }),
    );
    const marksOf = Object.fromEntries(charts.map(({ title, marks }) => [title, marks]));
    expect(marksOf).toEqual({
      Score: 30,
      Accuracy: 6,
      Loss: 30,
      KL: 30,
      Entropy: 30,
      "Learning rate": 30,
      "Time of a step": 60,
      Overlap: 30,
      "Phases of each step": 0,
      Latency: 0,
      "Latency by step": 90,
      Failures: 30,
      Cost: 30,
    });
    for (const { title, isSeen, inside, labels } of charts) {
      expect({ title, isSeen, inside }).toEqual({ title, isSeen: true, inside: true });
      expect(labels.some((label) => label === "step" || label === "s")).toBe(true);
    }
    // Three phases in each step, and as much of the rewards below them.
    expect(await page.locator("rect.phase").count()).toBe(3 * whole.steps);
    expect(await page.locator("polygon.rewards").count()).toBe(whole.steps);
    expect(charts.find(({ title }) => title === "Latency")?.bars).toBeGreaterThan(8);
    expect(requests).toEqual([url]);
    expect(errors).toEqual([]);
  });

  test("it is light or dark as the reader has it, and fits a narrow window", async () => {
    const directory = await runFolder();
    await recordRun(directory, ["report"], { steps: 3, perStep: 10 });
    const browser = await openBrowser();
    const url = pathToFileURL(join(directory, "report.html")).href;
    const looks = [];
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await browser.newPage({ colorScheme, viewport: { width: 400, height: 800 } });
      await page.goto(url);
      looks.push(
        // As text: this side knows no documents.
        await page.evaluate(`({
          back: getComputedStyle(document.body).backgroundColor,
          curve: getComputedStyle(document.querySelector("polyline")).stroke,
          isWide: document.documentElement.scrollWidth > 400,
        })`),
      );
    }
    expect(looks).toEqual([
      { back: "rgb(255, 255, 255)", curve: "rgb(0, 114, 178)", isWide: false },
      { back: "rgb(20, 23, 28)", curve: "rgb(86, 180, 233)", isWide: false },
    ]);
  });
});

describe.skipIf(chromiumPath === undefined)("markup that came in all the same", () => {
  test("does nothing: no script, no request, no style", async () => {
    const directory = await runFolder();
    await recordRun(directory, ["file"], { steps: 3, perStep: 10 });
    const path = await writeReport({ directory });
    const hostile = `<script>document.title = "owned"</script>
<img src="x.png" onerror="document.title = 'owned'"><svg onload="document.title = 'owned'"></svg>
<link rel="stylesheet" href="http://127.0.0.1:1/x.css"><style>body { display: none }</style>
<p id="styled" style="color: rgb(1, 2, 3)">text</p><iframe srcdoc="<script>top.document.title = 'owned'</script>"></iframe>
<form action="http://127.0.0.1:1/"><button>send</button></form><base href="http://127.0.0.1:1/">`;
    const page = await readFile(path, "utf8");
    await writeFile(path, page.replace("</html>", `${hostile}</html>`));
    const browser = await openBrowser();
    const tab = await browser.newPage();
    const refused: string[] = [];
    tab.on("console", (message) => refused.push(message.text()));
    const url = pathToFileURL(path).href;
    await tab.goto(url);
    // As text: this side knows no documents.
    await tab.evaluate(`document.querySelector("form").requestSubmit()`);
    await expect.poll(() => refused.some((text) => text.includes("form-action"))).toBe(true);
    const seen = await tab.evaluate(`({
      title: document.title,
      url: location.href,
      base: document.baseURI,
      display: getComputedStyle(document.body).display,
      colour: getComputedStyle(document.querySelector("#styled")).color,
    })`);
    expect(seen).toMatchObject({ url, base: url, display: "block" });
    expect((seen as { title: string }).title).not.toBe("owned");
    expect((seen as { colour: string }).colour).not.toBe("rgb(1, 2, 3)");
    expect(
      refused.filter((text) => text.includes("Content Security Policy")).length,
    ).toBeGreaterThanOrEqual(7);
  });
});

test("figures, latencies and failures are those of the run; text of others is no markup", async () => {
  const directory = await runFolder();
  await recordRun(directory, ["file"], whole);
  const path = await writeReport({ directory, title: "maths" });
  const page = await readFile(path, "utf8");
  const rows = [...page.matchAll(/<tr>(.*?)<\/tr>/g)].map(([, row = ""]) =>
    [...row.matchAll(/<t[hd]>(.*?)<\/t[hd]>/g)].map(([, cell]) => cell),
  );
  for (const [name, value] of [
    ["steps", "30"],
    ["from begin to end", "5m 03s"],
    ["mean step", "10.0 s"],
    ["score, first / last", "0.0333 / 1.0000"],
    ["accuracy, first / last / best", "0.2833 / 0.7000 / 0.7000"],
    ["rewards", "6,000"],
    ["of these invalid", "120"],
    ["cost", "6"],
  ]) {
    expect(rows).toContainEqual([name, value]);
  }
  // Half of them took 2.5 s or less: the end of the bucket that it is in.
  expect(rows).toContainEqual(["50 %", "2.66 s"]);
  const example = "&lt;b&gt;judge&lt;/b&gt; is down";
  expect(rows).toContainEqual(["120", "user-code", "SCORE_THREW", example]);
  // Of the last validation only.
  expect(rows.filter(([, prompt]) => prompt === "1 + 1 =")).toEqual([
    ["0.5", "1 + 1 =", "&lt;i&gt;30&lt;/i&gt;"],
  ]);
  expect(rows).toContainEqual(["none", "2 + 2 =", "4"]);
  expect(/<[bi]>|https?:|<script|<link|@import|url\(/.exec(page)).toBe(null);
});

test("a run of many steps is thinned out, a run with nothing but metrics has no phases", async () => {
  const directory = await runFolder();
  await recordRun(directory, ["file"], { steps: 120, perStep: 1 });
  const page = await readFile(await writeReport({ directory }), "utf8");
  expect(page.match(/<rect class="bar phase/g)).toHaveLength(3 * 40);
  for (const step of [1, 120]) expect(page.includes(`>${step}</text>`)).toBe(true);
  await rm(join(directory, "timeline.jsonl"));
  const bare = await readFile(await writeReport({ directory }), "utf8");
  expect(bare.includes('aria-label="Score"')).toBe(true);
  expect(bare.includes("Phases of each step")).toBe(false);
});

test("a report that cannot be written costs a warning", async () => {
  const warnings: string[] = [];
  const directory = await runFolder();
  const onWarning = ({ message }: Error): number => warnings.push(message);
  const tracking = await Tracking.open(optionsIn(directory, { logger: "report", onWarning }));
  await rm(directory, { recursive: true });
  await tracking.close();
  expect(warnings).toEqual([
    // What the report is made of is gone, too.
    expect.stringMatching(/^tracking "file": it did not end well: .*metrics.jsonl: it was removed/),
    expect.stringMatching(/^tracking "report": it did not end well/),
  ]);
});
