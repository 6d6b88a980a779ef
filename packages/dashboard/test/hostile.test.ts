/** Texts of strangers on the page: none of them is markup, script or a request. */
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { serveRewardLogs } from "@rayling/dashboard";
import { Tracking, writeReport } from "@rayling/trainer";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { chromiumPath } from "../../trainer/test/tracking/browser.ts";
import { Marked, markup } from "./fixtures/hostile.ts";
import { folder, writeLog } from "./fixtures/logs.ts";
import { openPage } from "./fixtures/page.ts";
import { servedSession } from "./fixtures/served.ts";

/** Waits until the text is in sight; nothing of it has become an element, or has run. */
async function expectText(page: Page, where: string): Promise<void> {
  await page.getByText("onerror=").first().waitFor();
  const made = await page.evaluate(
    '[typeof hacked, ...[...document.querySelectorAll(\'img, iframe, object, body script[src^="data"], a[href^="javascript"]\')].map(({ outerHTML }) => outerHTML)]',
  );
  expect([where, made]).toEqual([where, ["undefined"]]);
}

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test("names, lines, errors and causes of a session are texts", async () => {
    const { url } = await servedSession({ numCpus: 4, taskEvents: true });
    const actor = Marked.options({ name: markup }).remote();
    await ray.get(actor.say.remote(markup));
    await expect(ray.get(actor.fail.remote(markup))).rejects.toThrow("onerror");
    const { page, oddities } = await openPage(url);
    await expectText(page, "overview");
    const [{ actorId } = { actorId: "" }] = await ray.state.listActors();
    for (const room of ["actors", "tasks", `actor/${actorId}`]) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${room}`)}`);
      await page.getByRole("heading", { level: 1, name: /^Actor|^Task/ }).waitFor();
      await expectText(page, room);
    }
    for (const room of [`actor/${encodeURIComponent(markup)}`, encodeURIComponent(markup)]) {
      await page.evaluate(`location.hash = ${JSON.stringify(`#/${room}`)}`);
      await page
        .getByText(/there is no actor|has no room/)
        .first()
        .waitFor();
      expect(await page.evaluate("typeof hacked")).toBe("undefined");
    }
    // A view that is refused is named by Chromium on its console.
    expect(oddities.filter((one) => !one.includes("404"))).toEqual([]);
  });

  test("samples of any kind are texts, and none keeps the room from being shown", async () => {
    const path = join(await folder(), `${markup.replaceAll("/", "")}.jsonl`);
    await writeLog(path, [
      { index: 0, question: markup, response: markup, reason: markup, score: 1 },
      { index: 1, question: markup, response: markup, score: null },
      { index: 2, question: markup, response: markup, score: 1, parts: { [markup]: 0.5, b: 1 } },
    ]);
    const [line = ""] = (await readFile(path, "utf8")).split("\n");
    const whole = JSON.parse(line) as Record<string, unknown>;
    const odd = [
      { lane: markup, version: markup, group: markup, answeredBy: markup },
      { prompt: 7, response: { a: markup }, groundTruth: [markup], extra: { [markup]: [markup] } },
      { prompt: [null, 5, { role: markup, content: { type: markup } }], usage: { [markup]: 1 } },
      { prompt: { type: "img", props: { src: "x" }, constructor: null, __html: markup } },
    ];
    // As little as a record may have.
    const { sample, version, at, score, valid, attempts, waitedMs, latencyMs } = whole;
    const bare = { sample, version, at, score, valid, extra: {}, attempts, waitedMs, latencyMs };
    const lines = [...odd.map((one) => ({ ...whole, ...one })), bare];
    for (const [more, one] of lines.entries()) {
      await appendFile(path, `${JSON.stringify({ ...one, index: 3 + more })}\n`);
    }
    const served = await serveRewardLogs([path], { port: 0 });
    onTestFinished(() => served.close());
    const { page, oddities } = await openPage(served.url);
    for (let index = 0; index < 3 + lines.length; index += 1) {
      await page.evaluate(`location.hash = "#/samples/${index}"`);
      await page.getByRole("article", { name: `Sample ${index}`, exact: true }).waitFor();
      await expectText(page, `sample ${index}`);
    }
    await page.getByLabel("Text").fill("<img onerror=hacked=1>");
    const found = page.locator("dl.facts div", { hasText: "Found" }).first().locator("dd");
    await expect.poll(() => found.textContent()).toBe("7 of 8");
    expect(oddities).toEqual([]);
  });

  test("a training's names, settings and answers are texts, also in the page as a file", async () => {
    const directory = await folder();
    {
      await using tracking = await Tracking.open({
        logger: "file",
        directory,
        projectName: markup,
        experimentName: markup,
        totalSteps: 1,
        logValGenerations: 2,
        config: { trainer: { [markup]: markup } },
      });
      tracking.log({ "critic/score/mean": 1, [`val-core/${markup}/mean@1`]: 1 }, 1);
      tracking.generations(1, [{ input: markup, output: `${markup}</script>`, score: 1 }]);
      tracking.warning(1, markup);
    }
    const path = await writeReport({ directory });
    const { page, oddities } = await openPage(`file://${path}`);
    await expectText(page, "report");
    expect(oddities).toEqual([]);
  });
});
