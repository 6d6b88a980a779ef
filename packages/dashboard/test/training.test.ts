/** Training runs on the page: their curves are what was logged, and earlier runs stand beside them. */
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { chromiumPath, openBrowser } from "../../trainer/test/tracking/browser.ts";
import { recordRun } from "../../trainer/test/tracking/recorded-run.ts";
import { alignedCurves } from "../page/src/data/training.ts";
import { folder } from "./fixtures/logs.ts";
import { expectSound, openPage } from "./fixtures/page.ts";
import { type Served, servedSession } from "./fixtures/served.ts";

interface Runs {
  readonly runs: readonly {
    readonly run: number;
    readonly name: string;
    readonly isOwn: boolean;
    readonly lastStep: number;
  }[];
}

interface Curves {
  readonly total: number;
  readonly found: number;
  readonly metrics: readonly {
    readonly name: string;
    readonly curves: readonly {
      readonly run: number;
      readonly steps: readonly number[];
      readonly values: readonly number[];
    }[];
  }[];
}

const runsOf = ({ view }: Served): Promise<Runs> => view("runs");
const curvesOf = ({ view }: Served, query: string): Promise<Curves> => view(`curves?${query}`);

const recorded = { steps: 10, perStep: 2 };

const line = (step: number, score: unknown): string =>
  `${JSON.stringify({ step, data: { "critic/score/mean": score } })}\n`;

test("a run of the session is there with its curves, and earlier ones beside it", async () => {
  const served = await servedSession({ prewarm: 0 });
  expect(await runsOf(served)).toEqual({ runs: [] });
  const base = await folder();
  const [early, now] = [join(base, "early"), join(base, "now")];
  await mkdir(early);
  await writeFile(join(early, "metrics.jsonl"), line(1, 0.25));
  await mkdir(join(base, "no-run"));
  await recordRun(now, ["file"], recorded);
  const { runs } = await runsOf(served);
  expect(runs.map(({ name, isOwn, lastStep }) => [name.split("/")[1], isOwn, lastStep])).toEqual([
    ["now", true, 10],
    ["early", false, 1],
  ]);
  const both = await curvesOf(served, "runs=0,1&text=score+mean");
  expect(both.metrics).toEqual([
    {
      name: "critic/score/mean",
      curves: [
        {
          run: 0,
          steps: Array.from({ length: 10 }, (_, at) => at + 1),
          values: Array.from({ length: 10 }, (_, at) => (at + 1) / 10),
        },
        { run: 1, steps: [1], values: [0.25] },
      ],
    },
  ]);
  const main = await curvesOf(served, "runs=0");
  expect(main.metrics.map(({ name }) => name)).toContain("actor/entropy");
  expect(main.total).toBeGreaterThanOrEqual(main.found);

  // The early one goes on, from a step that it has already.
  await appendFile(join(early, "metrics.jsonl"), line(2, 0.5) + line(3, "NaN") + line(2, 1));
  const on = await curvesOf(served, "runs=1&text=score");
  expect(on.metrics[0]?.curves).toEqual([{ run: 1, steps: [1, 2], values: [0.25, 1] }]);
  expect((await served.ask(`${served.path}api/curves?runs=7`)).status).toBe(400);
});

test("curves of several runs share their steps, and are smoothed without a false start", () => {
  const curves = [
    { run: 0, steps: [1, 2, 4], values: [1, 3, 3] },
    { run: 1, steps: [2, 3], values: [5, 5] },
  ];
  expect(alignedCurves(curves, 0)).toEqual([
    [1, 2, 3, 4],
    [1, 3, null, 3],
    [null, 5, 5, null],
  ]);
  const [, first, second] = alignedCurves(curves, 0.5);
  expect(first?.[0]).toBe(1);
  expect(first?.[1]).toBeCloseTo(7 / 3);
  expect(second).toEqual([null, 5, 5, null]);
});

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test("curves of two runs are compared", async () => {
    const { url } = await servedSession({ prewarm: 0 });
    const base = await folder();
    await mkdir(join(base, "early"));
    await writeFile(join(base, "early", "metrics.jsonl"), line(1, 0.25) + line(2, 0.75));
    await recordRun(join(base, "now"), ["file"], recorded);
    const watched = await openPage(await openBrowser(), `${url}#/runs`);
    const { page, oddities } = watched;
    const charts = page.getByRole("img", { name: /^critic\/score\/mean by step/ });
    await expect.poll(() => charts.getAttribute("aria-label")).toContain("now: 1 at step 10");
    await page.getByLabel(/early/).press("Space");
    await expect.poll(() => charts.getAttribute("aria-label")).toContain("early: 0.75 at step 2");
    await page.getByLabel("Smoothing").fill("0");
    await page.getByLabel("Metrics").fill("entropy");
    await expect.poll(() => page.locator(".panel").count()).toBe(1);
    await expectSound(watched, "training", "dark");
    expect(oddities).toEqual([]);
  });
});
