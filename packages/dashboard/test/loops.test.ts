/** Reward loops on the page: what they count is what they gave, and without a page nothing is counted. */
import { join } from "node:path";
import * as ray from "@rayling/core";
import { addDashboardPanel, dashboardPanels, isDashboardServed } from "@rayling/core/dashboard";
import { outcomesIn, RewardLoopManager, type RewardLoopOptions } from "@rayling/reward-loop";
import { describe, expect, onTestFinished, test } from "vitest";
import { chromiumPath } from "../../trainer/test/tracking/browser.ts";
import { folder } from "./fixtures/logs.ts";
import { expectSound, openPage } from "./fixtures/page.ts";
import { servedSession } from "./fixtures/served.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

const reward = {
  path: new URL("fixtures/rewards.ts", import.meta.url).pathname,
};

async function openLoop(options: RewardLoopOptions = {}): Promise<RewardLoopManager> {
  const loop = await RewardLoopManager.create({ workers: 1, concurrency: 4, reward, ...options });
  onTestFinished(() => loop.close());
  return loop;
}

interface Panel {
  readonly rewardLog?: string;
  readonly state: {
    readonly done: number;
    readonly latencies: readonly number[];
    readonly hedges: object;
    readonly endpoints: readonly object[];
  };
}

type RewardSample = Parameters<RewardLoopManager["computeScore"]>[0];

const sampleOf = (response: string): RewardSample => ({
  response,
  dataSource: "maths",
  groundTruth: "",
});

const responses = ["1 a", "0 b", "throw c", "0.5 d", "1 e", "throw f"];

async function scoreAll(loop: RewardLoopManager): Promise<void> {
  for await (const _ of loop.scoreStream(responses.map(sampleOf))) continue;
}

test("a loop's panel counts what it gave, by lane and outcome, and what is left", async () => {
  const { view } = await servedSession({ numCpus: 4 });
  const record = join(await folder(), "rewards.jsonl");
  const loop = await openLoop({ record, limits: { endpoint: "judge", concurrency: 2 } });
  await scoreAll(loop);
  await loop.computeScore(sampleOf("1 g"), { lane: "validation" });
  const panels = async (): Promise<readonly Panel[]> => {
    const { panels: all }: { panels: readonly Panel[] } = await view("loops");
    return all;
  };
  const [panel] = await panels();
  const outcomes = [...(await outcomesIn(record)).values()];
  const valid = outcomes.filter((one) => one.valid);
  expect(panel).toMatchObject({
    rewardLog: record,
    state: {
      done: outcomes.length,
      valid: valid.length,
      failures: { "user-code": 2 },
      inFlight: 0,
      left: 0,
      meanScore: valid.reduce((sum, { score }) => sum + (score ?? 0), 0) / valid.length,
      attempts: outcomes.reduce((sum, { attempts }) => sum + attempts, 0),
      lanes: [
        { lane: "training", inFlight: 0, done: 6 },
        { lane: "validation", inFlight: 0, done: 1 },
      ],
      slots: loop.slots,
      version: loop.version,
      workers: 1,
    },
  });
  expect(panel?.state.latencies.reduce((sum, count) => sum + count, 0)).toBe(outcomes.length);
  await expect
    .poll(async () => (await panels())[0]?.state.endpoints)
    .toMatchObject([{ endpoint: "judge", limit: 2, granted: 7, inFlight: 0, waiting: 0 }]);
  const { logs }: { logs: readonly object[] } = await view("sampleLogs");
  expect(logs).toEqual([{ log: 0, name: "rewards.jsonl", path: record }]);
  await loop.close();
  expect(await panels()).toEqual([]);
  // Its log stays on the page.
  expect(await view("sampleLogs")).toMatchObject({ logs: [{ path: record }] });
});

test("second calls of slow samples are counted, and those that answered first", async () => {
  const { view } = await servedSession({ numCpus: 4 });
  const loop = await openLoop({
    concurrency: 8,
    executors: 1,
    hedge: { quantile: 0.5, budget: 1 },
    reward: new URL("../../reward-loop/test/fixtures/flaky.ts:slowFirst", import.meta.url).pathname,
  });
  const quick = Array.from({ length: 100 }, (_, at) => sampleOf(`quick ${at}`));
  let [begun, won] = [0, 0];
  // The first call of the slow one never ends by itself.
  for (const samples of [quick, [sampleOf("slow")]]) {
    for await (const { outcome } of loop.scoreStream(samples)) {
      begun += outcome.hedges?.begun ?? 0;
      won += outcome.hedges?.won ?? 0;
    }
  }
  expect(won).toBeGreaterThan(0);
  const { panels }: { panels: readonly Panel[] } = await view("loops");
  expect(panels[0]?.state.hedges).toEqual({ begun, won });
});

test("samples that come without a number leave nothing to say of what is left", async () => {
  const { view } = await servedSession({ numCpus: 4 });
  const loop = await openLoop();
  const some = function* (): Generator<RewardSample> {
    yield* responses.map(sampleOf);
  };
  for await (const _ of loop.scoreStream(some())) continue;
  const { panels }: { panels: readonly Panel[] } = await view("loops");
  expect(panels[0]?.state).toMatchObject({ done: 6 });
  expect(panels[0]?.state).not.toHaveProperty("left");
});

test("without a page no loop is counted, and panels go with their session", async () => {
  await ray.init({ numCpus: 4 });
  onTestFinished(() => ray.shutdown());
  await scoreAll(await openLoop());
  expect(isDashboardServed()).toBe(false);
  expect(dashboardPanels()).toEqual([]);
  await ray.shutdown();
  await servedSession({ prewarm: 0 });
  addDashboardPanel({ kind: "some", state: async () => undefined });
  expect(dashboardPanels()).toHaveLength(1);
  await ray.shutdown();
  expect(dashboardPanels()).toEqual([]);
});

describe.skipIf(chromiumPath === undefined)("in Chromium (needs one: RAYLING_CHROMIUM)", () => {
  test.runIf(
    inFull(
      "real-runs.test.ts walks from a loop that scores to its samples and actors; the panel's counts are above",
    ),
  )("a run of scoring is followed, and its numbers are those of its log", async () => {
    const { url } = await servedSession({ numCpus: 4 });
    const record = join(await folder(), "rewards.jsonl");
    const loop = await openLoop({ record, limits: { endpoint: "judge", concurrency: 2 } });
    const watched = await openPage(`${url}#/loops`);
    const { page, oddities } = watched;
    await page.getByText("Rate", { exact: true }).waitFor();
    await scoreAll(loop);
    const figure = (name: string): Promise<string | null> =>
      page
        .locator("dl.facts div", { has: page.getByText(name, { exact: true }) })
        .first()
        .locator("dd")
        .textContent();
    const outcomes = [...(await outcomesIn(record)).values()];
    const invalid = outcomes.filter(({ valid }) => !valid).length;
    await expect.poll(() => figure("Done")).toBe(String(outcomes.length));
    expect(await figure("Invalid")).toBe(String(invalid));
    expect(await figure("Left")).toBe("0");
    await page.getByRole("heading", { name: "Endpoint judge" }).waitFor();
    await expect.poll(() => figure("Let through")).toBe(String(outcomes.length));
    await expectSound(watched, "loops");
    // Two of them have tables of the same kind.
    await scoreAll(await openLoop());
    await page.getByRole("heading", { name: "Loop 2" }).waitFor();
    await page.getByRole("region", { name: "Lanes of Loop 2" }).waitFor();
    await expectSound(watched, "two-loops");
    await page.getByRole("link", { name: record }).press("Enter");
    await expect.poll(() => figure("Found")).toBe(String(outcomes.length));
    expect(oddities).toEqual([]);
  });
});
