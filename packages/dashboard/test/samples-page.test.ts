/** The room of samples in Chromium: what is found, chosen and read, by the keyboard. */
import { join } from "node:path";
import { serveRewardLogs } from "@rayling/dashboard";
import { outcomesIn } from "@rayling/reward-loop";
import { describe, expect, onTestFinished, test } from "vitest";
import { chromiumPath } from "../../trainer/test/tracking/browser.ts";
import { folder, type Scored, writeLog } from "./fixtures/logs.ts";
import { expectSound, openBrowser, openPage } from "./fixtures/page.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

const scored = (scoreOf: (index: number) => number | null): readonly Scored[] =>
  Array.from({ length: 1000 }, (_, index) => ({
    index,
    question: `What is ${index} + 1?`,
    response: `It is number ${index + 1}.`,
    reason: `the judge looked at ${index}`,
    score: scoreOf(index),
    latencyMs: index,
  }));

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test.runIf(
    inFull(
      "real-runs.test.ts walks over a log's samples; samples.test.ts has searches and comparisons",
    ),
  )("two logs are searched, compared and read", async () => {
    const directory = await folder();
    const [rule, judge] = [join(directory, "rule.jsonl"), join(directory, "judge.jsonl")];
    await writeLog(
      rule,
      scored((index) => (index % 100 === 7 ? null : (index % 4) / 4)),
    );
    await writeLog(
      judge,
      scored((index) => (index === 12 ? 1 : (index % 4) / 4)),
    );
    const served = await serveRewardLogs([rule, judge], { port: 0 });
    onTestFinished(() => served.close());
    const watched = await openPage(served.url);
    const { page, oddities } = watched;
    const figure = (name: string): Promise<string | null> =>
      page.locator(".about dl.facts div", { hasText: name }).locator("dd").textContent();
    const found = (): Promise<string | null> => figure("Found");

    const records = [...(await outcomesIn(rule)).values()];
    const zeros = records.filter(({ score }) => score === 0).length;
    const invalid = records.filter(({ valid }) => !valid).length;
    await expect.poll(found).toBe("1,000");
    expect(await figure("Invalid")).toBe(String(invalid));
    await page.getByLabel("Show").selectOption("zeros");
    await expect.poll(found).toBe(`${zeros} of 1,000`);
    await page.getByLabel("Show").selectOption("invalid");
    await expect.poll(found).toBe(`${invalid} of 1,000`);
    await page.getByLabel("Beside").selectOption({ label: "judge.jsonl" });
    await page.getByLabel("Show").selectOption("disagreements");
    await expect.poll(found).toBe(`${invalid + 1} of 1,000`);
    await page.getByLabel("Show").selectOption("all");
    await expect.poll(found).toBe("1,000");

    // Rows that are far away come when they are scrolled to.
    const grid = page.getByRole("grid", { name: "Samples" });
    await grid.focus();
    await page.keyboard.press("End");
    await page.getByRole("heading", { name: "Sample 999" }).waitFor();
    expect(await page.locator('[role="row"][aria-selected="true"]').textContent()).toContain(
      "number 1000",
    );
    expect(await page.locator('[role="row"]').count()).toBeLessThan(100);
    await page.keyboard.press("ArrowUp");
    const sample = page.getByRole("article", { name: "Sample 998" });
    await sample.waitFor();
    for (const text of ["What is 998 + 1?", "It is number 999.", "the judge looked at 998"]) {
      await sample.getByText(text).first().waitFor();
    }
    await page.getByLabel("Text").fill('"is 12 + 1"');
    await expect.poll(found).toBe("1 of 1,000");
    await grid.focus();
    await page.keyboard.press("Home");
    const twelve = page.getByRole("article", { name: "Sample 12" });
    await twelve.waitFor();
    const scores = twelve.locator("dl.facts div", { hasText: "Score" }).locator("dd");
    expect(await scores.allTextContents()).toEqual(["0", "1"]);
    await expectSound(watched, "samples");

    // The address says it all.
    await page.reload();
    await twelve.waitFor();
    await expect.poll(found).toBe("1 of 1,000");
    await page.getByLabel("Text").fill("");
    await expect.poll(found).toBe("1,000");
    await writeLog(rule, [{ index: 1000, question: "One more?", response: "yes", score: 1 }], true);
    await expect.poll(found).toBe("1,001");
    expect(oddities).toEqual([]);
  });

  test("the last of millions of samples can be reached", async () => {
    const path = join(await folder(), "rewards.jsonl");
    await writeLog(path, [{ index: 0, question: "1 + 1?", response: "2", score: 1 }]);
    const served = await serveRewardLogs([path], { port: 0 });
    onTestFinished(() => served.close());
    const page = await (await openBrowser()).newPage();
    onTestFinished(() => page.close());
    // As if the log had more rows than an element can be high.
    const many = 3_000_000;
    await page.route("**/api/samples?*", async (route) => {
      const asked = new URL(route.request().url()).searchParams;
      const [from, count] = [Number(asked.get("from")), Number(asked.get("count"))];
      asked.set("from", "0");
      asked.set("count", "1");
      const url = new URL(`?${asked.toString()}`, route.request().url()).href;
      const answer = (await (await route.fetch({ url })).json()) as { rows: object[] };
      const rows = Array.from({ length: count }, (_, at) => ({
        ...answer.rows[0],
        index: from + at,
      }));
      await route.fulfill({ json: { ...answer, total: many, found: many, version: -1, rows } });
    });
    await page.goto(served.url);
    await page.locator("#row-0").getByText("2").waitFor();
    /** Whether the row is there, and not below or above those in sight. */
    const isSeen = (at: number): Promise<unknown> =>
      page.evaluate(
        `(([box, row]) => row !== null && row.top >= box.top && row.bottom <= box.bottom)([document.querySelector('.virtual'), document.getElementById('row-${at}')].map((one) => one?.getBoundingClientRect() ?? null))`,
      );
    await page.getByRole("grid", { name: "Samples" }).focus();
    for (const [key, at] of [
      ["End", many - 1],
      ["ArrowUp", many - 2],
      ["Home", 0],
      ["ArrowDown", 1],
    ] as const) {
      await page.keyboard.press(key);
      await page.locator(`#row-${at}[aria-selected="true"]`).waitFor();
      expect([key, await isSeen(at)]).toEqual([key, true]);
    }
  });
});
