/** What each schedule promises: every sample is scored and trained once, in its order, no older than its bound; and that it really overlaps. */

import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import {
  createAdvantageRegistry,
  createPolicyLossRegistry,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
} from "@rayling/trainer";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import type {
  SampleRecord,
  ScheduleName,
  StepTracker,
  PhaseRecord,
  PPOTrainerOptions,
  RolloutBatch,
  Training,
  TrainingReport,
} from "@rayling/trainer";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { silentTracker } from "../../src/tracking/step-tracker.ts";
import { ScriptedPolicyActor } from "../fixtures/scripted.ts";
import type { Script } from "../fixtures/scripted.ts";
import { inFull, sized } from "../../../../test/fixtures/suite.ts";

const fixture = fileURLToPath(new URL("../fixtures/scripted.ts", import.meta.url));

/** By the name of the score function, for the cases that give it nothing of their own. */
const loops = new Map<string, Promise<RewardLoopManager>>();
beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await Promise.all([...loops.values()].map(async (loop) => (await loop).close()));
  await ray.shutdown();
});

function loopOf(name: string): Promise<RewardLoopManager> {
  const reward = { path: fixture, name };
  const loop = loops.get(name) ?? RewardLoopManager.create({ reward, workers: 1, executors: 1 });
  loops.set(name, loop);
  return loop;
}

interface Setup {
  readonly batchSize?: number;
  readonly count?: number;
  readonly dropLast?: boolean;
  readonly script?: Script;
  /** The name of the function, or a loop that stays open. */
  readonly reward?: string | RewardLoopManager;
  readonly rewardKwargs?: Readonly<Record<string, unknown>>;
  readonly onFailure?: RewardLoopOptions["onFailure"];
}

interface Ran {
  readonly report: TrainingReport;
  /** Of each step. */
  readonly samples: readonly (readonly SampleRecord[])[];
}

type More = Partial<Omit<PPOTrainerOptions, "policy" | "prompts" | "reward">>;

/** Prompts "prompt 0", "prompt 1", ... in that order, two samples each. */
async function trained(setup: Setup, more: More = {}): Promise<Ran> {
  const { batchSize = 4, count = 12, dropLast, script = {}, reward = "bySample" } = setup;
  const isPlain = setup.rewardKwargs === undefined && setup.onFailure === undefined;
  const rows = Array.from({ length: count }, (_, index) => ({
    prompt: [{ role: "user", content: `prompt ${index}` }],
    data_source: "test",
    reward_model: { ground_truth: "" },
  }));
  const dataset = await PromptDataset.fromRows(rows);
  const samples: SampleRecord[][] = [];
  const tracking: StepTracker = {
    ...silentTracker,
    samples: (_step, ones) => void samples.push([...ones]),
  };
  await using trainer = await PPOTrainer.create({
    policy: ScriptedPolicyActor.remote(script),
    prompts: new PromptLoader(dataset, {
      batchSize,
      shuffle: false,
      ...(dropLast === undefined ? {} : { dropLast }),
    }),
    reward:
      typeof reward !== "string"
        ? reward
        : isPlain
          ? await loopOf(reward)
          : {
              reward: { path: fixture, name: reward, rewardKwargs: setup.rewardKwargs ?? {} },
              workers: 1,
              executors: 1,
              onFailure: setup.onFailure,
            },
    actor: { ppoMiniBatchSize: 2 },
    tracking,
    ...more,
    rollout: { n: 2, maxResponseLength: 4, ...more.rollout },
    run: more.run?.totalTrainingSteps === undefined ? { totalEpochs: 1, ...more.run } : more.run,
  });
  const report = await trainer.fit();
  return { report, samples };
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-schedules-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function linesOf(path: string): string[] {
  return readFileSync(path, "utf8").trimEnd().split("\n");
}

function stalenessOf({ report }: Ran): (number | undefined)[] {
  return report.metrics.map((one) => one["training/off_policy/trajectory_staleness/max"]);
}

const names: readonly ScheduleName[] = [
  "sync",
  "one-step-off-policy",
  "mini-batch-pipeline",
  "one-step-pipeline",
  "streaming",
];

/** They train what is there. */
const inParts: readonly ScheduleName[] = ["mini-batch-pipeline", "one-step-pipeline", "streaming"];

/** One that asks for rewards a step ahead, and one that trains on what is there: for what no schedule has code of its own for. The full suite has all. */
const two: readonly ScheduleName[] = sized({
  gate: ["one-step-off-policy", "streaming"],
  full: names,
});

describe.for(names)("%s", (schedule) => {
  const isOne = two.includes(schedule);

  test("every sample is scored once and trained once, in batches of its size", async () => {
    const log = join(await newFolder(), "scored");
    const { samples, report } = await trained({ rewardKwargs: { log } }, { schedule });
    expect(report.steps).toBe(3);
    expect(samples.map((step) => step.length)).toEqual([8, 8, 8]);
    const all = Array.from({ length: 12 }, (_, prompt) => [0, 1].map((one) => [prompt, one]));
    const ids = all.flat().map(([prompt = 0, one = 0]) => idOf(prompt, one));
    expect(
      samples
        .flat()
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(ids.toSorted());
    const texts = all.flat().map(([prompt = 0, one = 0]) => `prompt ${prompt} #${one}`);
    expect(linesOf(log).toSorted()).toEqual(texts.toSorted());
  });

  test.runIf(
    isOne || inFull("batches are cut by the loader, which no schedule has a part in; two have it"),
  )(
    "the last batch of an epoch may be smaller: every sample once, none of another epoch",
    async () => {
      const { samples, report } = await trained(
        { count: 10, dropLast: false },
        { schedule, run: { totalEpochs: 2 } },
      );
      expect(samples.map((step) => step.length)).toEqual([8, 8, 4, 8, 8, 4]);
      expect(new Set(samples.flat().map(({ id }) => id)).size).toBe(40);
      expect(report.metrics.map((one) => one["training/epoch"])).toEqual([0, 0, 0, 1, 1, 1]);
      expect(report.metrics.map((one) => one["training/global_step"])).toEqual([1, 2, 3, 4, 5, 6]);
      expect(report.metrics.every((one) => one["critic/score/mean"] === 0.5)).toBe(true);
    },
  );
});

describe.for(two)("failures, %s", (schedule) => {
  test("a sample without a score is not trained on, and the others are", async () => {
    const { report, samples } = await trained({ reward: "firstThrows" }, { schedule });
    const valid = samples.flat().filter(({ outcome }) => outcome.valid);
    expect(valid).toHaveLength(12);
    expect(report.metrics.map((one) => one["critic/score/mean"])).toEqual([1, 1, 1]);
  });

  test("a sample whose endpoint was down is scored once more, and trained on", async () => {
    const onFailure = { again: true };
    const { samples } = await trained({ reward: "downAtFirst", onFailure }, { schedule });
    const tries = samples.flat().map(({ outcome }) => [outcome.valid, outcome.attempts]);
    expect(tries).toEqual(Array.from({ length: 24 }, () => [true, 2]));
  });

  test("a step with too many that have no score fails, and says why", async () => {
    const failing = trained({ reward: "firstThrows", onFailure: { failAbove: 0.4 } }, { schedule });
    const failure = { code: "REWARD_FAILURES", invalid: 4, total: 8, counts: { SCORE_THREW: 4 } };
    await expect(failing).rejects.toMatchObject(failure);
  });
});

function idOf(prompt: number, sample: number): string {
  return `1:0:${Math.floor(prompt / 4)}:${prompt % 4}/${sample}`;
}

describe("order", () => {
  const calls = async (schedule: ScheduleName, more: More = {}): Promise<string[]> => {
    const log = join(await newFolder(), "calls");
    await trained({ script: { log } }, { schedule, ...more });
    return linesOf(log);
  };

  test("sync", async () => {
    const step = (number: number): string[] => [
      `gen ${number} x8`,
      `old_log_prob ${number} x8`,
      // The policy is as it was when old_log_probs were worked out.
      `update_actor ${number} x4`,
      `update_actor_log_prob ${number} x4`,
      `update_actor ${number} x4`,
    ];
    expect(await calls("sync")).toEqual([...step(1), ...step(2), ...step(3)]);
  });

  test("one step off-policy: the next batch is generated before this one is trained", async () => {
    const lines = await calls("one-step-off-policy", { actor: { ppoMiniBatchSize: 4 } });
    expect(lines).toEqual([
      "gen 1 x8",
      "gen 1 x8",
      "old_log_prob 1 x8",
      "update_actor 1 x8",
      "gen 2 x8",
      "old_log_prob 2 x8",
      "update_actor 2 x8",
      "old_log_prob 3 x8",
      "update_actor 3 x8",
    ]);
  });

  test("several passes over a batch", async () => {
    const lines = await calls("sync", {
      actor: { ppoMiniBatchSize: 4, ppoEpochs: 2 },
      run: { totalTrainingSteps: 1 },
    });
    expect(lines.slice(2)).toEqual([
      "update_actor 1 x8",
      "update_actor_log_prob 1 x8",
      "update_actor 1 x8",
    ]);
  });
});

describe("staleness", () => {
  // "filtered groups" below has the age of all of them.
  const stale: [ScheduleName, number[]][] = [
    ["streaming", [0, 0, 0]],
    ["one-step-pipeline", [0, 1, 1]],
    ["sync", [0, 0, 0]],
    ["mini-batch-pipeline", [0, 0, 0]],
    ["one-step-off-policy", [0, 1, 1]],
  ];
  test.for(sized({ gate: stale.slice(0, 2), full: stale }))("%s", async ([schedule, ages]) => {
    expect(stalenessOf(await trained({}, { schedule }))).toEqual(ages);
  });

  test.for(["wait", "drop"] as const)(
    "streaming ahead, %s: never above the limit",
    async (strategy) => {
      const staleness = { limit: 2, numWarmupBatches: 2, strategy };
      const ran = await trained(
        { count: 24 },
        { schedule: "streaming", staleness, run: { totalEpochs: 2 } },
      );
      expect(stalenessOf(ran).every((age) => (age ?? 9) <= 2)).toBe(true);
      expect(stalenessOf(ran).some((age) => (age ?? 0) > 0)).toBe(true);
      const all = ran.samples.flat();
      expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
      expect(all.filter(({ usedMs }) => usedMs !== undefined)).toHaveLength(96);
      // Where rewards are late for two steps, as on a busy machine, drop has others generated.
      if (strategy === "wait") expect(all).toHaveLength(96);
    },
  );

  test("streaming ahead, wait: what is younger is not taken in the place of what would be too old later", async () => {
    const shared = new SharedArrayBuffer(8);
    // Those that are generated ahead in step 1 are scored last, when step 2 waits for its rewards.
    const updates = [0, 0, 1, 1, 1, 1];
    const ran = await trained(
      { batchSize: 2, count: 10, reward: "afterUpdates", rewardKwargs: { shared, updates } },
      {
        schedule: async (training) => {
          const pool = training.newPool();
          while (training.hasSteps) {
            await training.fill(pool);
            const isSecond = training.finishedSteps === 1;
            if (isSecond) {
              await training.outstanding.at(-1)?.rewards.whenSettled();
              // Whoever waited for them has heard of it by then.
              await new Promise(setImmediate);
            }
            const taken = training.takeFrom(pool, 2);
            if (isSecond) {
              Atomics.store(new Int32Array(shared), 0, 1);
              Atomics.notify(new Int32Array(shared), 0);
            }
            await training.learnFrom(await taken, true);
            await training.endStep(pool);
          }
        },
        staleness: { limit: 2, numWarmupBatches: 2, strategy: "wait" },
      },
    );
    const evicted = ran.report.metrics.map((one) => one["training/off_policy/evicted_samples"]);
    expect(evicted).toEqual([0, 0, 0, 0, 0]);
    expect(new Set(ran.samples.flat().map(({ id }) => id)).size).toBe(20);
    expect(stalenessOf(ran)).toEqual([0, 1, 2, 2, 2]);
  });
});

test("what would be too old is dropped, counted, and given up; others are trained in its place", async () => {
  const shared = new SharedArrayBuffer(4);
  const ran = await trained(
    { batchSize: 2, count: 8, reward: "untilGivenUp", rewardKwargs: { shared } },
    {
      schedule: "streaming",
      staleness: { limit: 1, numWarmupBatches: 1, strategy: "drop" },
      actor: { ppoMiniBatchSize: 1 },
      run: { totalTrainingSteps: 3 },
    },
  );
  const evicted = ran.report.metrics.map((one) => one["training/off_policy/evicted_samples"]);
  expect(evicted).toEqual([0, 4, 0]);
  const batchesOf = (isUsed: boolean): string[] =>
    ran.samples
      .flat()
      .filter(({ usedMs }) => (usedMs !== undefined) === isUsed)
      .map(({ id }) => id.split(":")[2] ?? "");
  // Two prompts of two samples in each batch.
  expect(batchesOf(true).toSorted().join("")).toBe("111122223333");
  // What was scored before is told with its scores. The others are no failures.
  expect(batchesOf(false)).toEqual(["0", "0"]);
  expect(ran.report.metrics.map((one) => one["reward/invalid_rate"])).toEqual([0, 0, 0]);
  await expect.poll(() => Atomics.load(new Int32Array(shared), 0)).toBe(2);
});

test("rewards that are on the way when a training ends are given up, and the loop goes on", async () => {
  const shared = new SharedArrayBuffer(4);
  await using reward = await RewardLoopManager.create({
    reward: { path: fixture, name: "untilGivenUp", rewardKwargs: { shared } },
    workers: 1,
    executors: 1,
  });
  const stop = new Error("stopped");
  const schedule = async (training: Training): Promise<void> => {
    await training.fill(training.newPool());
    // Samples begin in order: with an outcome of the last one all have begun.
    const [{ rewards } = {}] = training.outstanding;
    await expect.poll(() => rewards?.outcomeOf(7)).toBeDefined();
    throw stop;
  };
  await expect(trained({ count: 4, reward }, { schedule })).rejects.toBe(stop);
  await expect.poll(() => Atomics.load(new Int32Array(shared), 0)).toBe(2);
  const sample = { dataSource: "test", response: "prompt 0 #0", groundTruth: "" };
  expect(await reward.computeScore(sample)).toMatchObject({ valid: true, rewardScore: 0 });
});

describe("overlap", () => {
  test.for<ScheduleName>(inParts)(
    "%s trains the groups that are done while others wait",
    async (schedule) => {
      const shared = new SharedArrayBuffer(8);
      const { samples } = await trained(
        {
          script: { shared },
          reward: "secondWaits",
          rewardKwargs: { shared },
          count: 2,
          batchSize: 2,
        },
        { schedule, actor: { ppoMiniBatchSize: 1 } },
      );
      expect(samples.flat()).toHaveLength(4);
    },
  );

  test.for<ScheduleName>(sized({ gate: ["streaming"], full: inParts }))(
    "%s waits for no greedy answers but those to the prompts of its mini-batch",
    async (schedule) => {
      const shared = new SharedArrayBuffer(8);
      const { samples } = await trained(
        {
          script: { shared },
          reward: "secondWaits",
          rewardKwargs: { shared },
          count: 2,
          batchSize: 2,
        },
        { schedule, algorithm: { advEstimator: "remax" }, actor: { ppoMiniBatchSize: 1 } },
      );
      expect(samples.flat()).toHaveLength(4);
    },
  );

  test("streaming scores samples while others are generated", async () => {
    const shared = new SharedArrayBuffer(8);
    const { samples } = await trained(
      { script: { shared, waitsForRewards: true }, reward: "counted", rewardKwargs: { shared } },
      { schedule: "streaming", run: { totalTrainingSteps: 1 } },
    );
    expect(samples.flat()).toHaveLength(8);
  });
});

describe("a mini-batch whose size follows the exposed wait", () => {
  /** What takes how long, in turn: a wait and an update, a wait and an update, ... */
  const scripted = (spans: readonly number[]): (() => number) => {
    let calls = 0;
    return () => {
      const ended = Math.floor(++calls / 2);
      return spans.slice(0, ended).reduce((sum, span) => sum + span, 0);
    };
  };
  const waited = [100, 10];
  const ready = [1, 100];

  test.for<ScheduleName>(sized({ gate: ["one-step-pipeline"], full: inParts }))(
    "%s: half where it was waited for, twice as much where it was not",
    async (schedule) => {
      const log = join(await newFolder(), "calls");
      const shared = new SharedArrayBuffer(8);
      // Four of step 1, then two, one, one; one of step 2, then two, four, and the last one.
      const updates = [0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7];
      const spans = [waited, waited, waited, waited, ready, ready, ready, ready].flat();
      await trained(
        {
          script: { log, shared },
          batchSize: 8,
          count: 16,
          reward: "afterUpdates",
          rewardKwargs: { shared, updates },
        },
        {
          schedule,
          adaptiveMiniBatch: true,
          actor: { ppoMiniBatchSize: 4 },
          now: scripted(spans),
        },
      );
      const groups = linesOf(log)
        .filter((line) => line.startsWith("update_actor "))
        .map((line) => Number(line.split("x")[1]) / 2);
      expect(groups).toEqual([4, 2, 1, 1, 1, 2, 4, 1]);
    },
  );

  test("all that is done comes along, in one update", async () => {
    const log = join(await newFolder(), "calls");
    await trained(
      { script: { log }, batchSize: 8, count: 8 },
      {
        schedule: async (training) => {
          const batch = (await training.rollout()) as RolloutBatch;
          const prepared = await training.prepare(batch);
          await batch.rewards.whenSettled();
          await training.learn(prepared, training.nextPart(batch.rewards.unasked));
          await training.endStep();
        },
        adaptiveMiniBatch: true,
        actor: { ppoMiniBatchSize: 1 },
      },
    );
    expect(linesOf(log).filter((line) => line.startsWith("update_actor "))).toEqual([
      "update_actor 1 x16",
    ]);
  });
});

describe("filtered groups", () => {
  const algorithm = { filterGroups: {} };

  test.for(names)("others are generated in their place: %s", async (schedule) => {
    const ran = await trained(
      { reward: "evenSame", count: 24 },
      { schedule, algorithm, run: { totalTrainingSteps: 2 } },
    );
    const trainedOn = ran.samples.map((step) => step.filter(({ usedMs }) => usedMs !== undefined));
    expect(trainedOn.map((step) => step.length)).toEqual([8, 8]);
    const prompts = trainedOn.flat().map(({ outcome }) => outcome);
    expect(prompts.every((one) => one.valid && one.rewardScore < 2)).toBe(true);
    expect(ran.report.metrics.map((one) => one["training/filtered_groups"])).toEqual([4, 4]);
    // What was filtered out is told, too: it was scored.
    expect(ran.samples.map((step) => step.length)).toEqual([16, 16]);
    const ids = ran.samples.flat().map(({ id }) => id);
    expect(new Set(ids).size).toBe(32);
    expect(stalenessOf(ran)).toEqual(schedule.startsWith("one-step") ? [0, 1] : [0, 0]);
  });

  test.for<[ScheduleName, number[]]>([
    ["sync", [0, 2, 3, 4]],
    // Of three that were generated: the second is the next step's.
    ["one-step-off-policy", [0, 2, 3, 8]],
  ])(
    "%s: of those in their place the ones that came first, whichever are judged first; what is left is dropped, and counted",
    async ([schedule, prompts]) => {
      const shared = new SharedArrayBuffer(4 * 24);
      const { samples, report } = await trained(
        { reward: "lastFirst", rewardKwargs: { shared }, count: 24 },
        { schedule, algorithm, run: { totalTrainingSteps: schedule === "sync" ? 1 : 2 } },
      );
      const [step = []] = samples;
      const used = step.filter(({ usedMs }) => usedMs !== undefined).map(({ id }) => id);
      const ids = prompts.flatMap((prompt) => [idOf(prompt, 0), idOf(prompt, 1)]);
      expect(used.toSorted()).toEqual(ids.toSorted());
      const [metrics] = report.metrics;
      expect(metrics?.["training/filtered_groups"]).toBe(2);
      // Two groups of two.
      expect(metrics?.["training/off_policy/evicted_samples"]).toBe(4);
    },
  );

  test("count in what is told of rewards: they were scored", async () => {
    const { report } = await trained(
      { reward: "evenThrows", count: 24 },
      { schedule: "streaming", algorithm, run: { totalTrainingSteps: 2 } },
    );
    expect(report.metrics.map((one) => one["reward/invalid_rate"])).toEqual([0.5, 0.5]);
  });

  test("count with their greedy answers, which were scored, too", async () => {
    const { report } = await trained(
      { reward: "evenThrows", count: 24 },
      {
        algorithm: { filterGroups: {}, advEstimator: "remax" },
        run: { totalTrainingSteps: 1 },
      },
    );
    // Of 8 prompts: 8 of 16 answers, and 4 of 8 greedy ones.
    expect(report.metrics.map((one) => one["reward/invalid_rate"])).toEqual([0.5]);
  });

  test("one without a valid score counts apart", async () => {
    const { report } = await trained(
      { reward: "evenThrows", count: 24 },
      { schedule: "streaming", algorithm, run: { totalTrainingSteps: 1 } },
    );
    const [metrics] = report.metrics;
    expect(metrics?.["training/filtered_groups"]).toBe(0);
    expect(metrics?.["training/unscored_groups"]).toBe(4);
  });

  test.for<ScheduleName>(sized({ gate: ["streaming"], full: names }))(
    "%s: a judge that is away ends the training, where others would be generated for ever",
    async (schedule) => {
      const training = trained(
        { reward: "noneScores" },
        { schedule, algorithm: { filterGroups: { maxNumGenBatches: 0 } } },
      );
      await expect(training).rejects.toMatchObject({
        code: "NO_SCORES",
        message: expect.stringMatching(
          /^none of the last \d+ samples has a valid score.*: Error: the judge is away$/,
        ),
      });
    },
  );

  test("a judge that is away ends a training whose prompts fill no batch, too", async () => {
    const training = trained(
      { reward: "noneScores", count: 2, dropLast: false },
      { schedule: "streaming", algorithm: { filterGroups: { maxNumGenBatches: 0 } } },
    );
    await expect(training).rejects.toMatchObject({ code: "NO_SCORES" });
  });

  test("by a number of the extra info; one that is not there is an error", async () => {
    const of = (metric: string): Promise<Ran> =>
      trained(
        { reward: "evenSame", count: 24 },
        {
          schedule: "streaming",
          algorithm: { filterGroups: { metric } },
          run: { totalTrainingSteps: 1 },
        },
      );
    expect((await of("half")).samples.flat()).toHaveLength(16);
    await expect(of("acc")).rejects.toThrow(/the extra info of sample 1:0:0:\d\/0 has no number/);
  });

  test.for(two)(
    "%s: a step may be generated as often as it says, and what is generated for the next one does not count",
    async (schedule) => {
      const { report } = await trained(
        { reward: "evenSame", count: 64 },
        {
          schedule,
          algorithm: { filterGroups: { maxNumGenBatches: 2 } },
          run: { totalTrainingSteps: 3 },
        },
      );
      expect(report.metrics).toHaveLength(3);
      for (const metrics of report.metrics) {
        expect(metrics["train/num_gen_batches"]).toBeLessThanOrEqual(2);
      }
    },
  );

  test.for<ScheduleName>(sized({ gate: ["streaming"], full: names }))(
    "%s: a task where no group differs is given up",
    async (schedule) => {
      const training = trained(
        { reward: "evenSame", count: 1, batchSize: 1 },
        {
          schedule,
          algorithm: { filterGroups: { maxNumGenBatches: 3 } },
          actor: {},
        },
      );
      await expect(training).rejects.toMatchObject({
        code: "FILTERED_OUT",
        message: expect.stringMatching(
          /of 3 generations, which is .*max_num_gen_batches\), at most 0 groups may, and the last 3 that were scored do not$/,
        ),
      });
    },
  );

  test.for<ScheduleName>(sized({ gate: ["streaming"], full: names }))(
    "%s: where it may be generated as often as it takes it is, as long as one of all prompts differs",
    async (schedule) => {
      const unbounded = { filterGroups: { maxNumGenBatches: 0 } };
      const more = { schedule, algorithm: unbounded, actor: {}, run: { totalTrainingSteps: 2 } };
      const seldom = { reward: "twelfthDiffers", count: 12, batchSize: 1 };
      const { samples, report } = await trained(seldom, more);
      const used = samples.map((step) => step.flatMap(({ id, usedMs }) => (usedMs ? [id] : [])));
      expect(used).toEqual([0, 1].map((epoch) => [0, 1].map((one) => `1:${epoch}:11:0/${one}`)));
      const filtered = report.metrics.map((one) => one["training/filtered_groups"] as number);
      expect(filtered.reduce((sum, one) => sum + one)).toBe(22);
      await expect(trained({ ...seldom, count: 11 }, more)).rejects.toMatchObject({
        code: "FILTERED_OUT",
        message: expect.stringContaining("none of the last 22 does"),
      });
    },
  );

  describe("streaming, where log-probs take longer than rewards", () => {
    const script: Script = { seconds: { old_log_prob: 0.3 } };

    test("what is generated in the place of others counts", async () => {
      const { report } = await trained(
        { reward: "evenSame", count: 64, script },
        {
          schedule: "streaming",
          algorithm: { filterGroups: { maxNumGenBatches: 2 } },
          run: { totalTrainingSteps: 3 },
        },
      );
      expect(report.metrics.map((one) => one["train/num_gen_batches"])).toEqual([2, 2, 2]);
    });

    test.each([
      ["evenSame", 3, "FILTERED_OUT"],
      ["noneScores", 0, "NO_SCORES"],
    ])("%s, at most %i times: is given up", async (reward, maxNumGenBatches, code) => {
      const training = trained(
        { reward, count: 1, batchSize: 1, script },
        {
          schedule: "streaming",
          algorithm: { filterGroups: { maxNumGenBatches } },
          actor: {},
        },
      );
      await expect(training).rejects.toMatchObject({ code });
    });
  });
});

describe("what does not fit", () => {
  test.for<[string, More]>([
    ["actor.ppoMiniBatchSize", { actor: { ppoMiniBatchSize: 3 } }],
    ["critic", { algorithm: { advEstimator: "gae" } }],
    ["referencePolicy", { actor: { useKlLoss: true } }],
    ["adaptiveMiniBatch", { adaptiveMiniBatch: true }],
    ["staleness.limit", { staleness: { limit: 1 } }],
    ["staleness.numWarmupBatches", { schedule: "streaming", staleness: { numWarmupBatches: 1 } }],
    ["algorithm.advEstimator", { algorithm: { advEstimator: "grop" } }],
    [
      "algorithm.advEstimator",
      { algorithm: { advEstimator: "gdpo" }, schedule: "one-step-pipeline" },
    ],
    [
      "algorithm.rolloutCorrection.rolloutIsBatchNormalize",
      {
        algorithm: { rolloutCorrection: { rolloutIs: "token", rolloutIsBatchNormalize: true } },
        schedule: "streaming",
      },
    ],
    ["rollout.temperature", { rollout: { maxResponseLength: 4, temperature: 0 } }],
    ["usePfPpo", { algorithm: { usePfPpo: true } }],
    [
      "groups",
      { algorithm: { advEstimator: "grpo_passk" }, rollout: { maxResponseLength: 4, n: 1 } },
    ],
    ["rolloutRs", { algorithm: { rolloutCorrection: { rolloutRs: "token_k9" } } }],
    [
      "rolloutIsThreshold",
      { algorithm: { rolloutCorrection: { rolloutIs: "token", rolloutIsThreshold: "banana" } } },
    ],
    [
      "rolloutIsThreshold",
      { algorithm: { rolloutCorrection: { rolloutIs: "token", rolloutIsThreshold: "2_5" } } },
    ],
    ["droBeta", { actor: { lossMode: "dro" } }],
    ["algorithm.rolloutCorrection.bypassMode", { actor: { lossMode: "bypass_mode" } }],
    [
      "actor.lossMode",
      {
        actor: { lossMode: "dro" },
        algorithm: { rolloutCorrection: { bypassMode: true } },
      },
    ],
    ["run.totalTrainingSteps", { run: { totalTrainingSteps: 0 } }],
  ])("%s", async ([input, more]) => {
    const generated: string[] = [];
    const tracking = { ...silentTracker, phase: ({ name }: PhaseRecord) => generated.push(name) };
    await expect(trained({}, { tracking, ...more })).rejects.toMatchObject({
      name: "TrainerInputError",
      input,
    });
    expect(generated).toEqual([]);
  });

  test("is not looked for in what estimators and losses of the user's own do with rows that nobody generated", async () => {
    const told: string[] = [];
    const advantageRegistry = createAdvantageRegistry();
    advantageRegistry.register("own", (batch, settings) => {
      told.push("estimator");
      return advantageRegistry.get("grpo")(batch, settings);
    });
    const policyLossRegistry = createPolicyLossRegistry();
    policyLossRegistry.register("own", (batch, settings) => {
      told.push("loss");
      return policyLossRegistry.get("vanilla")(batch, settings);
    });
    await trained(
      {},
      {
        advantageRegistry,
        policyLossRegistry,
        algorithm: { advEstimator: "own" },
        actor: { lossMode: "own" },
        run: { totalTrainingSteps: 1 },
      },
    );
    expect(told).toEqual(["estimator", "loss"]);
  });

  test.for<[Script["flaw"] & string, string | RegExp]>([
    ["missing", "generated 7 of 8 rollouts; sample 1 of prompt 3 is missing"],
    ["twice", "generated sample 0 of prompt 0 twice"],
    ["log-probs", /sample 0 of prompt 0 with \d+ responseIds and \d+ rolloutLogProbs/],
  ])("a policy whose rollouts are wrong: %s", async ([flaw, message]) => {
    await expect(trained({ script: { flaw } })).rejects.toThrow(message);
  });
});
