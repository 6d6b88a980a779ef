/**
 * A reward loop against a server that fails in every way, by a seed: every sample has exactly one outcome, valid scores are the oracle's, and the limits hold as counted by
 * the server, for all loops that share it, also when workers, executors and the limiter are killed meanwhile.
 *
 * RAYLING_STORM_SEEDS=20 runs it with so many seeds.
 */

import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startJudge } from "../servers/judge.ts";
import type { JudgeOptions } from "../servers/judge.ts";
import { seededRandom } from "../servers/seeded.ts";
import { inFull, sized } from "../fixtures/suite.ts";

vi.setConfig({ testTimeout: 600_000 });
// Workers and executors ask for a CPU each to be placed, and wait most of their time.
beforeAll(() => ray.init({ numCpus: 64, prewarm: 0 }));
afterAll(() => ray.shutdown());

const seeds = Array.from(
  { length: Number(process.env["RAYLING_STORM_SEEDS"] ?? 1) },
  (_, n) => n + 1,
);

/** Each 2 %: nearly a fifth of all texts fails, twice. */
const storm = {
  latency: { uniform: [1, 20] },
  timesPerText: 2,
  faults: {
    refuse: 0.02,
    error: 0.02,
    overload: 0.02,
    hang: 0.01,
    slow: 0.01,
    cut: 0.02,
    "cut-body": 0.02,
    malformed: 0.02,
    empty: 0.02,
  },
  brownOuts: { everyMs: 1500, forMs: 50 },
} as const satisfies JudgeOptions;

const endpoint = {
  requestsPerMinute: 30_000,
  tokensPerMinute: 4_000_000,
  concurrency: 24,
  minuteMs: 6000,
};

/** Long enough for a machine on which other things run, which would else fail where nothing is wrong. */
const judgeTimeoutMs = 1000;

function loopOptions(judgeUrl: string): RewardLoopOptions {
  return {
    workers: 2,
    concurrency: 16,
    executors: 1,
    reward: {
      path: fileURLToPath(new URL("../fixtures/judged.ts", import.meta.url)),
      name: "judged",
      rewardKwargs: { judgeUrl, judgeTimeoutMs },
    },
    timeoutMs: 60_000,
    retry: { attempts: 12, baseMs: 20, maxMs: 200, budget: Infinity },
    limits: { endpoint: judgeUrl, ...endpoint, tokensPerRequest: 100 },
  };
}

function samplesOf(seed: number, count: number): RewardSample[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, (_, index) => {
    const groundTruth = String(Math.floor(1000 * random()));
    const answer = random() < 0.5 ? groundTruth : `${groundTruth}1`;
    return {
      dataSource: "storm",
      response: `Sample ${index} of ${seed}. A: ${answer}`,
      groundTruth,
    };
  });
}

function oracle({ response, groundTruth }: RewardSample): number {
  return (response as string).endsWith(`: ${String(groundTruth)}`) ? 1 : 0;
}

function expectAllScored(
  samples: readonly RewardSample[],
  outcomes: readonly SampleOutcome[],
): void {
  const scores = outcomes.map((one) => (one.valid ? one.rewardScore : one.error));
  expect(scores).toEqual(samples.map(oracle));
}

/** Exactly one outcome for each, whatever `meanwhile` does after each of them. */
async function scoreAll(
  loop: RewardLoopManager,
  samples: readonly RewardSample[],
  meanwhile: (done: number) => Promise<void> = async () => undefined,
): Promise<SampleOutcome[]> {
  const outcomes: SampleOutcome[] = [];
  let done = 0;
  for await (const { index, outcome } of loop.scoreStream(samples)) {
    expect(outcomes[index], `sample ${index} has one outcome`).toBeUndefined();
    outcomes[index] = outcome;
    done += 1;
    await meanwhile(done);
  }
  expect(done).toBe(samples.length);
  return outcomes;
}

const each = sized({ gate: 150, full: 400 });
const all = sized({ gate: 160, full: 600 });
const workersEach = sized({ gate: 2, full: 8 });

test.each(seeds)("three loops of several workers share one limiter (seed %d)", async (seed) => {
  await using judge = await startJudge({ ...storm, seed, limits: endpoint });
  const loops = await Promise.all(
    Array<number>(3)
      .fill(workersEach)
      .map((workers) =>
        RewardLoopManager.create({ ...loopOptions(judge.baseUrl), workers, concurrency: 8 }),
      ),
  );
  try {
    await Promise.all(
      loops.map(async (loop, job) => {
        const samples = samplesOf(100 * seed + job, each);
        expectAllScored(samples, await scoreAll(loop, samples));
      }),
    );
    const { violations, failed, mostInFlight, answered } = await judge.stats();
    expect(violations).toEqual({});
    expect(mostInFlight).toBeLessThanOrEqual(endpoint.concurrency);
    // More only where an answer came too late for who had asked.
    expect(answered).toBeGreaterThanOrEqual(3 * each);
    expect(Object.keys(failed).length).toBeGreaterThanOrEqual(8);
  } finally {
    await Promise.all(loops.map((loop) => loop.close()));
  }
});

test
  .runIf(
    inFull(
      "deaths are in the storm below, and packages/reward-loop/test/limits has a limiter that dies",
    ),
  )
  .each(seeds)("workers and the limiter are killed meanwhile (seed %d)", async (seed) => {
  await using judge = await startJudge({ ...storm, seed, limits: endpoint });
  await using loop = await RewardLoopManager.create(loopOptions(judge.baseUrl));
  const samples = samplesOf(seed, all);
  const outcomes = await scoreAll(loop, samples, async (done) => {
    if (done !== 50) return;
    const [first = ""] = loop.workerNames;
    await ray.kill(await ray.getActor(first));
    const limiter = await ray.getActor(`reward_limiter:${judge.baseUrl}`);
    await ray.kill(limiter, { noRestart: false });
  });
  expectAllScored(samples, outcomes);
  const { violations, mostInFlight } = await judge.stats();
  expect(violations).toEqual({});
  expect(mostInFlight).toBeLessThanOrEqual(endpoint.concurrency);
});

test.each(seeds)("executors and workers are killed again and again (seed %d)", async (seed) => {
  await using judge = await startJudge({ ...storm, seed, limits: endpoint });
  await using loop = await RewardLoopManager.create({
    ...loopOptions(judge.baseUrl),
    executors: 2,
  });
  const samples = samplesOf(seed, all);
  const random = seededRandom(seed);
  const killed = { executors: 0, workers: 0 };
  const outcomes = await scoreAll(loop, samples, async (done) => {
    if (done % 40 !== 0) return;
    // An executor, and now and then the worker with all of its executors.
    const isWorker = done % 80 === 0;
    const named = (await ray.listNamedActors()).map(({ name }) => name);
    const targets = named.filter((name) =>
      loop.workerNames.some((worker) =>
        isWorker ? name === worker : name.startsWith(`${worker}_executor_`),
      ),
    );
    const target = targets[Math.floor(random() * targets.length)];
    // There may be none at the moment.
    if (target === undefined) return;
    try {
      await ray.kill(await ray.getActor(target));
      killed[isWorker ? "workers" : "executors"] += 1;
    } catch {
      // It has ended since.
    }
  });
  expectAllScored(samples, outcomes);
  expect(killed.executors).toBeGreaterThan(0);
  expect(killed.workers).toBeGreaterThan(0);
  const { violations, mostInFlight } = await judge.stats();
  expect(violations).toEqual({});
  expect(mostInFlight).toBeLessThanOrEqual(endpoint.concurrency);
});
