/** Training runs on the page: their curves are what was logged, and earlier runs stand beside them. */
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { writeReport } from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { chromiumPath } from "../../trainer/test/tracking/browser.ts";
import { recordRun } from "../../trainer/test/tracking/recorded-run.ts";
import { alignedCurves } from "../page/src/data/training.ts";
import type { TrainingAnswer } from "../src/training/answers.ts";
import { folder } from "./fixtures/logs.ts";
import { expectSound, openPage } from "./fixtures/page.ts";
import { type Served, servedSession } from "./fixtures/served.ts";

const runsOf = ({ view }: Served, query = ""): Promise<TrainingAnswer> => view(`runs?${query}`);

const recorded = { steps: 10, perStep: 2 };

const line = (step: number, score: unknown): string =>
  `${JSON.stringify({ step, data: { "critic/score/mean": score } })}\n`;

test("a run of the session is there with its curves, and earlier ones beside it", async () => {
  const served = await servedSession({ prewarm: 0 });
  expect(await runsOf(served)).toMatchObject({ runs: [], chosen: [], about: [], details: null });
  const base = await folder();
  const [early, now] = [join(base, "early"), join(base, "now")];
  await mkdir(early);
  await writeFile(join(early, "metrics.jsonl"), line(1, 0.25));
  await mkdir(join(base, "no-run"));
  await recordRun(now, ["file"], recorded);
  const { runs, chosen } = await runsOf(served);
  expect(chosen).toEqual([0]);
  expect(runs.map(({ name, isOwn, lastStep }) => [name.split("/")[1], isOwn, lastStep])).toEqual([
    ["now", true, 10],
    ["early", false, 1],
  ]);
  const both = await runsOf(served, "runs=0,1&text=score+mean");
  expect(both.metrics.shown).toEqual([
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
  const main = await runsOf(served, "runs=0");
  expect(main.metrics.shown.map(({ name }) => name)).toContain("actor/entropy");
  expect(main.metrics.total).toBeGreaterThanOrEqual(main.metrics.found);

  // The early one goes on, from a step that it has already.
  await appendFile(join(early, "metrics.jsonl"), line(2, 0.5) + line(3, "NaN") + line(2, 1));
  const on = await runsOf(served, "runs=1&text=score");
  expect(on.metrics.shown[0]?.curves).toEqual([{ run: 1, steps: [1, 2], values: [0.25, 1] }]);
  expect((await served.ask(`${served.path}api/runs?runs=7`)).status).toBe(400);
});

test("a neighbour with files of something else is left out, a run of the session is refused by name", async () => {
  const served = await servedSession({ prewarm: 0 });
  const base = await folder();
  const [odd, now] = [join(base, "odd"), join(base, "now")];
  await mkdir(odd);
  await writeFile(join(odd, "metrics.jsonl"), "[1]\n");
  await recordRun(now, ["file"], { steps: 1, perStep: 1 });
  const { runs } = await runsOf(served);
  expect(runs.map(({ name }) => name.split("/")[1])).toEqual(["now"]);
  await appendFile(join(now, "metrics.jsonl"), "[1]\n");
  const { status, body } = await served.ask(`${served.path}api/runs`);
  expect(status).toBe(422);
  expect(body).toContain("is none of a run");
});

test("phases and answers of one run are those that it reported, of the steps that are asked for", async () => {
  const served = await servedSession({ prewarm: 0 });
  await recordRun(join(await folder(), "now"), ["file"], { steps: 100, perStep: 2 });
  const stepsOf = async (query: string): Promise<readonly number[] | undefined> => {
    const { details } = await runsOf(served, query);
    return details?.phases.rows.map(({ step }) => step);
  };
  expect(await stepsOf("steps=newest")).toEqual(Array.from({ length: 12 }, (_, at) => at + 89));
  expect(await stepsOf("from=7&to=9")).toEqual([7, 8, 9]);
  const all = (await stepsOf("")) ?? [];
  expect([all[0], all.at(-1), all.length]).toEqual([1, 100, 40]);
  const { details, about } = await runsOf(served, "from=7&to=7&validation=10");
  expect(details?.phases.total).toBe(100);
  expect(details?.phases.rows[0]).toMatchObject({
    tracks: [
      {
        track: "trainer",
        phases: [
          ["adv", 4000, 12_500],
          ["gen", 0, 3000],
          ["update_actor", 9000, 12_000],
        ],
      },
    ],
    inFlight: { fromMs: 0 },
    seconds: 10,
    exposedWaitSeconds: 2.07,
  });
  expect(details?.generations.steps).toEqual(Array.from({ length: 20 }, (_, at) => 5 * (at + 1)));
  expect(details?.generations.shown?.step).toBe(10);
  const answers = details?.generations.shown?.answers.map(({ output }) => output);
  expect(answers?.toSorted()).toEqual(["4", "<i>10</i>"]);
  expect(about[0]?.facts).toContainEqual(["run", "maths / grpo"]);
});

test("curves of several runs share their steps, and are smoothed without a false start", () => {
  const curves = [
    { steps: [1, 2, 4], values: [1, 3, 3] },
    { steps: [2, 3], values: [5, 5] },
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
    const watched = await openPage(`${url}#/runs`);
    const { page, oddities } = watched;
    const charts = page.getByRole("img", { name: /^critic\/score\/mean by step/ });
    await expect.poll(() => charts.getAttribute("aria-label")).toContain("now: 1 at step 10");
    await page.getByLabel(/early/).press("Space");
    await expect.poll(() => charts.getAttribute("aria-label")).toContain("early: 0.75 at step 2");
    await page.getByLabel("Smoothing").fill("0");
    await page.getByLabel("Metrics").fill("entropy");
    await expect.poll(() => charts.count()).toBe(0);
    await page.getByRole("img", { name: /^actor\/entropy by step/ }).waitFor();
    await expect.poll(() => page.locator(".phase").count()).toBe(3 * 10);
    const figures = page.getByRole("region", { name: "Figures" });
    await expect.poll(() => figures.locator("th").allTextContents()).toHaveLength(3);
    await expectSound(watched, "training");
    expect(oddities).toEqual([]);
  });

  test("the page as a file works by the keyboard, in light and dark, and on a narrow screen", async () => {
    const base = await folder();
    await recordRun(join(base, "one"), ["file"], recorded);
    await recordRun(join(base, "two"), ["file"], recorded);
    const path = await writeReport({ directory: base, title: "both" });
    const watched = await openPage(pathToFileURL(path).href);
    const { page, oddities } = watched;
    await expect.poll(() => page.title()).toBe("both – rayling");
    const phases = page.locator(".phase");
    await expect.poll(() => phases.count()).toBe(3 * 10);
    const of = page.getByLabel("Steps and answers of");
    await of.selectOption({ index: 1 });
    await expect.poll(() => of.inputValue()).toBe("1");
    await page.getByLabel("from", { exact: true }).fill("10");
    await expect.poll(() => phases.count()).toBe(3);
    await page.getByText("Figures of these steps").press("Enter");
    await page.getByRole("region", { name: "Steps" }).waitFor();
    await expectSound(watched, "report");
    expect(oddities).toEqual([]);
  });
});
