/** Charts of the page: what is drawn, pixel by pixel. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { chromiumPath } from "../../trainer/test/tracking/browser.ts";
import { recordRun } from "../../trainer/test/tracking/recorded-run.ts";
import { folder } from "./fixtures/logs.ts";
import { openPage } from "./fixtures/page.ts";
import { servedSession } from "./fixtures/served.ts";

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test("a chart that is drawn anew in other colours has the curve of its newest data", async () => {
    const { url } = await servedSession({ prewarm: 0 });
    const run = join(await folder(), "now");
    await recordRun(run, ["file"], { steps: 10, perStep: 2 });
    const path = join(run, "metrics.jsonl");
    const text = await readFile(path, "utf8");
    // The page sees the first step alone, and then all of them.
    await writeFile(path, text.slice(0, text.indexOf("\n") + 1));
    const { page, oddities } = await openPage(`${url}#/runs`);
    const metric = "critic/score/mean";
    const chart = page.getByRole("img", { name: `${metric} by step` });
    await expect.poll(() => chart.getAttribute("aria-label")).toContain("at step 1");
    await writeFile(path, text);
    await expect.poll(() => chart.getAttribute("aria-label")).toContain("now: 1 at step 10");
    await expect.poll(async () => (await curveOf(page, metric)).columns).toBeGreaterThan(200);
    const light = await curveOf(page, metric);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(async () => (await curveOf(page, metric)).colour).not.toBe(light.colour);
    await expect.poll(async () => (await curveOf(page, metric)).columns).toBe(light.columns);
    expect(oddities).toEqual([]);
  });
});

interface Curve {
  readonly colour: string;
  /** Columns of pixels with that colour. */
  readonly columns: number;
}

/** Looks at the first curve of the chart of a metric. */
async function curveOf(page: Page, metric: string): Promise<Curve> {
  const found = await page.evaluate(`(() => {
    const box = document.querySelector('[aria-label^="${metric} by step"]');
    const colour = getComputedStyle(box).getPropertyValue("--c0").trim();
    const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const canvas = box.querySelector("canvas");
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    const columns = new Set();
    for (let at = 0; at < data.length; at += 4) {
      const isNear = wanted.every((value, part) => Math.abs(value - data[at + part]) < 24);
      if (data[at + 3] > 200 && isNear) columns.add((at / 4) % width);
    }
    return { colour, columns: columns.size };
  })()`);
  return found as Curve;
}
