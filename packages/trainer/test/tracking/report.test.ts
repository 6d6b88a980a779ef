/** The report of a run: what it shows is what the run reported, in a real browser where there is one. */

import { readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { Tracking, writeReport } from "@rayling/trainer";
import type { ReportData } from "@rayling/trainer/runs";
import { chromiumPath, openBrowser } from "./browser.ts";
import { recordRun } from "./recorded-run.ts";
import { optionsIn, runFolder } from "./run-folder.ts";

const whole = { steps: 30, perStep: 200 };

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test("its figures, charts, phases and answers are those of the run, and nothing is fetched", async () => {
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

    await expect.poll(() => page.title()).toBe("maths / grpo – rayling");
    const cells = async (label: string): Promise<readonly (readonly string[])[]> => {
      const rows = await page.getByRole("region", { name: label, exact: true }).locator("tr").all();
      return Promise.all(rows.map((row) => row.locator("td").allTextContents()));
    };
    const figures = await cells("Figures");
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
      expect(figures).toContainEqual([name, value]);
    }
    // Half of them took 2.5 s or less: the end of the bucket that it is in.
    expect(await cells("Latency")).toContainEqual(["50 %", "2.7 s"]);
    expect(await cells("Failures")).toContainEqual([
      "120",
      "user-code",
      "SCORE_THREW",
      "<b>judge</b> is down",
    ]);
    // Of the last validation, unless another one is chosen.
    expect(await cells("Answers")).toEqual([
      [],
      ["none", "2 + 2 =", "4"],
      ["0.5", "1 + 1 =", "<i>30</i>"],
    ]);
    await page.getByLabel("After step").selectOption("5");
    expect(await cells("Answers")).toContainEqual(["0.5", "1 + 1 =", "<i>5</i>"]);
    expect(await cells("Commands")).toContainEqual(["run", "maths / grpo"]);

    const charts = await page
      .getByRole("img", { name: / by step\. / })
      .evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
    const name = `${basename(dirname(directory))}/${basename(directory)}`;
    expect(charts).toContain(`critic/score/mean by step. ${name}: 1 at step 30`);
    expect(charts).toContain(`val-core/openai/gsm8k/acc/mean@1 by step. ${name}: 0.7 at step 30`);
    expect(charts).toContain(`reward/exposed_wait_s by step. ${name}: 3 at step 30`);
    // Three phases in each step, and as much of the rewards below them.
    expect(await page.locator(".phase").count()).toBe(3 * whole.steps);
    expect(await page.locator("polygon.rewards").count()).toBe(whole.steps);
    await page.getByText("Figures of these steps").click();
    expect(await cells("Steps")).toContainEqual(["30", "10.0 s", "3.0 s", "0.75", "–", "200"]);
    await page.getByLabel("from", { exact: true }).fill("29");
    await expect.poll(() => page.locator(".phase").count()).toBe(6);
    expect(requests).toEqual([url]);
    expect(errors).toEqual([]);
  });

  test("several runs of a folder are on one page, the first one first, and what differs is named", async () => {
    const directory = await runFolder();
    for (const [name, lr] of [
      ["sync", 1],
      ["ahead", 2],
    ] as const) {
      const options = { logger: ["file"], experimentName: name, config: { lr, same: 3 } } as const;
      const tracking = await Tracking.open(optionsIn(join(directory, name), options));
      tracking.log({ "critic/score/mean": lr / 10 }, 1);
      tracking.warning(1, `${name} <b>fell</b>`);
      await tracking.close();
    }
    const path = await writeReport({ directory, title: "two" });
    const browser = await openBrowser();
    const page = await browser.newPage();
    await page.goto(pathToFileURL(path).href);
    const chart = page.getByRole("img", { name: /^critic\/score\/mean/ });
    const folder = basename(directory);
    await expect
      .poll(() => chart.getAttribute("aria-label"))
      .toBe(
        `critic/score/mean by step. ${folder}/sync: 0.1 at step 1; ${folder}/ahead: 0.2 at step 1`,
      );
    const differing = page.getByRole("region", { name: "Settings that differ" });
    expect(await differing.locator("td").allTextContents()).toEqual(["lr", "1", "2"]);
    const warnings = page.getByRole("region", { name: "Warnings" }).locator("td:last-child");
    expect(await warnings.allTextContents()).toEqual(["sync <b>fell</b>", "ahead <b>fell</b>"]);
    await page.getByLabel(/ahead/).first().press("Space");
    await expect.poll(() => chart.getAttribute("aria-label")).not.toContain("ahead");
    const beside = await writeReport({
      directory: join(directory, "sync"),
      beside: [join(directory, "ahead")],
    });
    expect(beside).toBe(join(directory, "sync", "report.html"));
    expect(await readFile(beside, "utf8")).toContain(`${folder}/ahead`);
  });

  test("it is light or dark as the reader has it, and fits a narrow window", async () => {
    const directory = await runFolder();
    await recordRun(directory, ["report"], { steps: 3, perStep: 10 });
    const browser = await openBrowser();
    const url = pathToFileURL(join(directory, "report.html")).href;
    const looks = [];
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await browser.newPage({ colorScheme, viewport: { width: 390, height: 844 } });
      await page.goto(url);
      await page.locator(".phase.c0").first().waitFor();
      looks.push(
        // As text: this side knows no documents.
        await page.evaluate(`({
          back: getComputedStyle(document.body).backgroundColor,
          phase: getComputedStyle(document.querySelector(".phase.c0")).backgroundColor,
          isWide: document.documentElement.scrollWidth > 390,
        })`),
      );
    }
    expect(looks).toEqual([
      { back: "rgb(255, 255, 255)", phase: "rgb(0, 114, 178)", isWide: false },
      { back: "rgb(20, 23, 28)", phase: "rgb(86, 180, 233)", isWide: false },
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
    expect(seen).toMatchObject({ url, base: url, display: "grid" });
    expect((seen as { title: string }).title).not.toBe("owned");
    expect((seen as { colour: string }).colour).not.toBe("rgb(1, 2, 3)");
    expect(
      refused.filter((text) => text.includes("Content Security Policy")).length,
    ).toBeGreaterThanOrEqual(7);
  });
});

test("text of others is no markup in the file", async () => {
  const directory = await runFolder();
  await recordRun(directory, ["file"], { steps: 5, perStep: 100 });
  const path = await writeReport({ directory, title: "</title><i>maths" });
  const page = await readFile(path, "utf8");
  expect(page).toContain("<title>&lt;/title&gt;&lt;i&gt;maths</title>");
  expect(page).toContain(String.raw`\u003cb>judge\u003c/b> is down`);
  expect(page.match(/<script/g)).toHaveLength(2);
  expect(page.match(/<\/script/g)).toHaveLength(2);
  expect(/<[bi]>|<link|@import|url\(/.exec(page)).toBe(null);
});

test("a run of many steps has some of their phases, a run with nothing but metrics has none", async () => {
  const directory = await runFolder();
  await recordRun(directory, ["file"], { steps: 420, perStep: 1 });
  const stepsIn = async (): Promise<readonly number[]> => {
    const page = await readFile(await writeReport({ directory }), "utf8");
    const json = /<script type="application\/json" id="report">(.*?)<\/script>/.exec(page)?.[1];
    const { runs } = JSON.parse(json ?? "") as ReportData;
    return runs.flatMap(({ steps }) => steps.map(({ step }) => step));
  };
  const steps = await stepsIn();
  expect(steps).toHaveLength(400);
  expect([steps[0], steps.at(-1)]).toEqual([1, 420]);
  await rm(join(directory, "timeline.jsonl"));
  expect(await stepsIn()).toEqual([]);
});

test("a folder without runs is refused by name", async () => {
  const directory = await runFolder();
  await expect(writeReport({ directory })).rejects.toMatchObject({ code: "TRACKING_FILES" });
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
