/** The parts of a step: that a policy learns under every schedule, what estimators and losses ask for, validation. */

import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import {
  OpenAIPolicyActor,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
  TimedCriticActor,
} from "@rayling/trainer";
import type { PPOTrainerOptions, ScheduleName, TrainingReport } from "@rayling/trainer";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { OutputFolders } from "../../src/record/output-folders.ts";
import { silentTracker } from "../../src/tracking/step-tracker.ts";
import { BanditActor } from "../fixtures/bandit.ts";
import { HangingCriticActor, ScriptedPolicyActor } from "../fixtures/scripted.ts";
import type { Script } from "../fixtures/scripted.ts";
import { inFull, sized } from "../../../../test/fixtures/suite.ts";

await ray.init({ isolation: "shared", prewarm: 0 });
const prompts = 16;
let loop: RewardLoopManager;
let dataset: PromptDataset;

beforeAll(async () => {
  const reward = fileURLToPath(new URL("../fixtures/bandit-reward.ts", import.meta.url));
  loop = await RewardLoopManager.create({ reward, workers: 1, executors: 1 });
  dataset = await PromptDataset.fromRows(
    Array.from({ length: prompts }, (_, row) => ({
      prompt: [{ role: "user", content: String(row) }],
      data_source: "bandit",
      reward_model: { ground_truth: "" },
    })),
  );
});

afterAll(async () => {
  await loop.close();
  await ray.shutdown();
});

async function trained(more: Partial<PPOTrainerOptions> = {}): Promise<TrainingReport> {
  await using trainer = await PPOTrainer.create({
    policy: BanditActor.remote({ prompts, lr: 4 }),
    prompts: new PromptLoader(dataset, { batchSize: 8 }),
    reward: loop,
    actor: { ppoMiniBatchSize: 4 },
    ...more,
    rollout: { n: 4, maxResponseLength: 1, ...more.rollout },
    run: more.run?.totalTrainingSteps === undefined ? { totalEpochs: 1, ...more.run } : more.run,
  });
  return await trainer.fit();
}

/** Of some steps, on average. */
function scoreOf({ metrics }: TrainingReport, from: number, to: number): number {
  const some = metrics.slice(from, to).map((one) => one["critic/score/mean"] ?? 0);
  return some.reduce((sum, one) => sum + one, 0) / some.length;
}

/** As few as show that it learns, and for how it ends up. */
const stepsToLearn = sized({ gate: 24, full: 60 });
const learned = sized({ gate: 0.7, full: 0.9 });

describe("learning", () => {
  // In which order each of them trains is in schedules.test.ts.
  const schedules: ScheduleName[] = ["one-step-pipeline", "streaming"];
  const others: ScheduleName[] = ["sync", "one-step-off-policy", "mini-batch-pipeline"];
  test.for(sized({ gate: schedules, full: [...others, ...schedules] }))("%s", async (schedule) => {
    const report = await trained({ schedule, run: { totalTrainingSteps: stepsToLearn } });
    expect(scoreOf(report, 0, 4)).toBeLessThan(0.5);
    expect(scoreOf(report, -4, Infinity)).toBeGreaterThan(learned);
  });

  // Others of outcomes have golden values, and losses.test.ts learns by some.
  const estimators = ["remax", "rloo", "opo", "reinforce_plus_plus_baseline"];
  test.for(sized({ gate: estimators.slice(0, 1), full: estimators }))(
    "%s",
    async (advEstimator) => {
      const report = await trained({
        algorithm: { advEstimator },
        run: { totalTrainingSteps: stepsToLearn },
      });
      expect(scoreOf(report, -4, Infinity)).toBeGreaterThan(learned - 0.1);
    },
  );

  test.for<ScheduleName>(
    sized({
      gate: ["streaming"],
      full: ["one-step-off-policy", "mini-batch-pipeline", "one-step-pipeline", "streaming"],
    }),
  )("remax, %s", async (schedule) => {
    const report = await trained({
      schedule,
      algorithm: { advEstimator: "remax" },
      run: { totalTrainingSteps: stepsToLearn },
    });
    expect(scoreOf(report, -4, Infinity)).toBeGreaterThan(learned - 0.1);
  });

  test("in the bypass", async () => {
    const algorithm = { rolloutCorrection: { bypassMode: true } };
    const report = await trained({ algorithm, run: { totalTrainingSteps: stepsToLearn } });
    expect(scoreOf(report, -4, Infinity)).toBeGreaterThan(learned);
    expect(report.metrics[0]?.["timing_s/old_log_prob"]).toBeUndefined();
  });

  test("not while the critic alone is trained", async () => {
    const report = await trained({
      critic: TimedCriticActor.remote({ seconds: {} }),
      algorithm: { advEstimator: "grpo" },
      run: { totalTrainingSteps: 4, criticWarmup: 3 },
    });
    const updated = (norm: string): boolean[] =>
      report.metrics.map((one) => one[norm] !== undefined);
    expect(updated("actor/grad_norm")).toEqual([false, false, true, true]);
    expect(updated("critic/grad_norm")).toEqual([true, true, true, true]);
  });
});

describe("what it is told", () => {
  test("a divergence from the reference policy, in the loss and in the reward", async () => {
    const referencePolicy = BanditActor.remote({ prompts, lr: 4 });
    const report = await trained({
      referencePolicy,
      actor: { useKlLoss: true },
      algorithm: { useKlInReward: true },
      run: { totalTrainingSteps: 8 },
    });
    const last = report.metrics.at(-1) ?? {};
    expect(last["actor/kl_loss"]).toBeGreaterThan(0);
    expect(last["actor/kl_coef"]).toBe(0.001);
    expect(last["actor/reward_kl_penalty"]).toBeGreaterThan(0);
    expect(report.metrics[0]?.["actor/reward_kl_penalty"]).toBe(0);
  });

  test("the entropy, if it counts", async () => {
    const report = await trained({ actor: { entropyCoeff: 0.01 }, run: { totalTrainingSteps: 1 } });
    expect(report.metrics[0]?.["actor/entropy_loss"]).toBeCloseTo(Math.log(4), 5);
  });

  test.each<[string, Pick<PPOTrainerOptions, "schedule" | "staleness">]>([
    ["one-step-off-policy", { schedule: "one-step-off-policy" }],
    [
      "streaming ahead",
      { schedule: "streaming", staleness: { limit: 1, numWarmupBatches: 1, strategy: "wait" } },
    ],
  ])("how far rollouts are from the policy that trains on them: %s", async (_, how) => {
    const report = await trained({
      prompts: new PromptLoader(dataset, { batchSize: prompts }),
      ...how,
      actor: { ppoMiniBatchSize: prompts },
      algorithm: { rolloutCorrection: { rolloutIs: "token", rolloutIsThreshold: 2 } },
      run: { totalTrainingSteps: 3 },
    });
    const [first, second] = report.metrics;
    expect(first?.["rollout_corr/kl"]).toBeCloseTo(0, 6);
    expect(second?.["rollout_corr/rollout_is_max"]).toBeGreaterThan(1);
    expect(first?.["training/rollout_probs_diff_max"]).toBeCloseTo(0, 6);
    expect(second?.["training/rollout_probs_diff_max"]).toBeGreaterThan(1e-3);
    // The ratio of the loss begins at 1: it is to the policy before the update, not to the one of the rollout.
    for (const one of report.metrics) expect(one["actor/ppo_kl"]).toBeCloseTo(0, 6);
  });

  test("verl's metrics and those of rewards", async () => {
    const report = await trained({ run: { totalTrainingSteps: 1 } });
    const names = Object.keys(report.metrics[0] ?? {});
    const expected = [
      "training/global_step",
      "critic/score/mean",
      "critic/advantages/max",
      "response_length/mean",
      "prompt_length/clip_ratio",
      "actor/pg_loss",
      "actor/ppo_kl",
      "timing_s/step",
      "timing_s/adv",
      "timing_per_token_ms/update_actor",
      "perf/throughput",
      "reward/latency_p99_s",
      "reward/exposed_wait_s",
      "overlap_ratio",
    ];
    expect(expected.filter((name) => !names.includes(name))).toEqual([]);
  });

  test("a critic's values, with gae", async () => {
    const critic = TimedCriticActor.remote({ seconds: {} });
    const report = await trained({ critic, run: { totalTrainingSteps: 2 } });
    expect(report.metrics[1]?.["critic/vf_loss"]).toBeGreaterThan(0);
    expect(report.metrics[1]?.["timing_s/update_critic"]).toBeGreaterThan(0);
  });
});

describe("validation", () => {
  test("before training, now and then, and at the end; greedy", async () => {
    const report = await trained({
      validationPrompts: dataset,
      run: { totalTrainingSteps: 6, testFreq: 4 },
    });
    const validated = report.metrics.filter((one) => "val-core/bandit/acc/mean@1" in one);
    expect(validated.map((one) => one["training/global_step"])).toEqual([0, 4, 6]);
    expect(report.metrics[0]).toEqual({ "training/global_step": 0, ...report.initialValidation });
    expect(report.warnings).toEqual([]);
    expect(report.validation?.["val-core/bandit/acc/mean@1"]).toBeGreaterThan(0.9);
    expect(report.validation?.["val-aux/invalid_rate"]).toBe(0);
  });

  test.for<[ScheduleName, [number, string][]]>([
    [
      "one-step-off-policy",
      [
        [0, "validation"],
        [1, "step"],
        [2, "step"],
        // Told when the next step is over: it was judged meanwhile.
        [3, "step"],
        [2, "validation"],
        [4, "step"],
      ],
    ],
    [
      "sync",
      [
        [0, "validation"],
        [1, "step"],
        [2, "step"],
        [2, "validation"],
        [3, "step"],
        [4, "step"],
      ],
    ],
  ])("%s: a step is told at once, its validation when it is judged", async ([schedule, wanted]) => {
    const told: [number, string][] = [];
    const report = await trained({
      schedule,
      validationPrompts: dataset,
      run: { totalTrainingSteps: 4, testFreq: 2 },
      tracking: {
        ...silentTracker,
        log: (metrics, step) => {
          if ("critic/score/mean" in metrics) told.push([step, "step"]);
          if ("val-core/bandit/acc/mean@1" in metrics) told.push([step, "validation"]);
        },
      },
    });
    expect(told).toEqual([...wanted, [4, "validation"]]);
    expect(report.metrics.map((one) => one["training/global_step"])).toEqual([0, 1, 2, 3, 4]);
    const isValidated = report.metrics.map((one) => "val-core/bandit/acc/mean@1" in one);
    expect(isValidated).toEqual([true, false, true, false, true]);
    expect(report.metrics[4]?.["timing_s/testing"]).toBeGreaterThan(0);
  });

  test("one below the first is a warning, once for a fall, in the report and to the tracker", async () => {
    const told: [number, string][] = [];
    const report = await trained({
      // Learns what is wrong.
      policy: BanditActor.remote({ prompts, lr: -4 }),
      validationPrompts: dataset,
      run: { totalTrainingSteps: 4, testFreq: 1 },
      tracking: { ...silentTracker, warning: (step, message) => told.push([step, message]) },
    });
    const [before, ...after] = report.metrics.map((one) => one["val-core/bandit/acc/mean@1"] ?? 0);
    expect(after).toHaveLength(4);
    const falls = after.flatMap((one, at) =>
      one < before! && !((after[at - 1] ?? before!) < before!) ? [at + 1] : [],
    );
    expect(falls).toHaveLength(1);
    expect(told.map(([step]) => step)).toEqual(falls);
    expect(report.warnings).toEqual(told.map(([, message]) => message));
    expect(report.warnings[0]).toMatch(
      new RegExp(
        `^the validation of step ${falls[0]} is below that of step 0: accuracy is [\\d.]+ % and was ${(100 * before!).toFixed(1)} %;`,
      ),
    );
  });

  test("without a tracker that takes warnings it is one of the process", async () => {
    const warned = Promise.withResolvers<Error>();
    process.once("warning", warned.resolve);
    const { warnings } = await trained({
      policy: BanditActor.remote({ prompts, lr: -4 }),
      validationPrompts: dataset,
      run: { totalTrainingSteps: 2, testFreq: 2 },
    });
    expect((await warned.promise).message).toBe(warnings[0]);
  });

  test("one that fails while the next step is trained ends the training with what its loop failed with", async () => {
    const reward = fileURLToPath(new URL("../fixtures/bandit-reward.ts", import.meta.url));
    const rewardKwargs = { holdsValidation: true, goOn: join(tmpdir(), "nobody-writes-this") };
    const judges = { reward: { path: reward, rewardKwargs }, workers: 1, executors: 1 };
    const validationLoop = await RewardLoopManager.create(judges);
    const told: number[] = [];
    const training = trained({
      schedule: "one-step-off-policy",
      validationPrompts: dataset,
      rewardArrangement: { validationLoop },
      run: { totalTrainingSteps: 8, testFreq: 2, valBeforeTrain: false },
      tracking: {
        ...silentTracker,
        log: (metrics, step) => {
          if (!("critic/score/mean" in metrics)) return;
          told.push(step);
          if (step === 3) void validationLoop.close();
        },
      },
    });
    await expect(training).rejects.toMatchObject({ code: "REWARD_LOOP_CLOSED" });
    expect(told).toEqual([1, 2, 3]);
  });

  test.runIf(
    inFull(
      "run/run-training.test.ts has a run that only validates, and metrics.test.ts several answers",
    ),
  )("alone, with several answers to each", async () => {
    const report = await trained({
      validationPrompts: dataset,
      run: { valOnly: true },
      rollout: { maxResponseLength: 1, validation: { n: 4, doSample: true } },
    });
    expect(report.steps).toBe(0);
    expect(Object.keys(report.validation ?? {})).toContain("val-core/bandit/acc/best@4/mean");
  });
});

test("rollouts and validations are kept where it is told, those without a score with the reason", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [rolloutDataDir, validationDataDir] = [join(folder, "train"), join(folder, "val")];
  const path = fileURLToPath(new URL("../fixtures/scripted.ts", import.meta.url));
  await trained({
    policy: ScriptedPolicyActor.remote(),
    reward: { reward: { path, name: "firstThrows" }, workers: 1, executors: 1 },
    schedule: "one-step-off-policy",
    actor: {},
    validationPrompts: dataset,
    rolloutDataDir,
    validationDataDir,
    run: { totalTrainingSteps: 3, testFreq: 2 },
  });
  const linesIn = (directory: string, step: number): Record<string, unknown>[] =>
    readFileSync(join(directory, `${step}.jsonl`), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect((await readdir(rolloutDataDir)).toSorted()).toEqual(["1.jsonl", "2.jsonl", "3.jsonl"]);
  expect((await readdir(validationDataDir)).toSorted()).toEqual(["0.jsonl", "2.jsonl", "3.jsonl"]);
  const rows = linesIn(rolloutDataDir, 2);
  expect(rows).toHaveLength(32);
  expect(new Set(rows.map(({ uid }) => uid)).size).toBe(8);
  for (const { step, score, error, input, output } of rows) {
    const isFirst = String(output).endsWith("#0");
    expect({ step, score: score === null, error }).toEqual({
      step: 2,
      score: isFirst,
      error: isFirst ? "SCORE_THREW: no score for this one" : null,
    });
    expect(Number(input)).toBeLessThan(prompts);
  }
  expect(linesIn(validationDataDir, 2)).toHaveLength(prompts);
});

test("a log of rewards that fails ends the training with its own error, under `await using`, too", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const reward = fileURLToPath(new URL("../fixtures/bandit-reward.ts", import.meta.url));
  const record = join(folder, "rewards.jsonl");
  const training = trained({
    reward: { reward, workers: 1, executors: 1, record },
    tracking: {
      ...silentTracker,
      phase: ({ step, name }) => {
        if (step === 2 && name === "gen") rmSync(record);
      },
    },
  });
  // Closing fails with the same error: both would be a SuppressedError.
  await expect(training).rejects.toMatchObject({ code: "JSONL_CHANGED", path: record });
});

test("what a score function tells of its own errors stands beside why others have no score", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = fileURLToPath(new URL("../fixtures/partial-rewards.ts", import.meta.url));
  await trained({
    policy: ScriptedPolicyActor.remote(),
    reward: { reward: { path, name: "tellsErrors" }, workers: 1, executors: 1 },
    actor: {},
    rolloutDataDir: folder,
    run: { totalTrainingSteps: 1 },
  });
  const lines = readFileSync(join(folder, "1.jsonl"), "utf8").trimEnd().split("\n");
  const rows = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const errors = new Map(rows.map(({ output, error }) => [String(output).split("#")[1], error]));
  expect(Object.fromEntries(errors)).toEqual({
    0: expect.stringMatching(/^SCORE_THREW: no score for /) as string,
    1: "a small one",
    2: null,
    3: null,
  });
  expect(rows.every(({ uid }) => uid !== "mine")).toBe(true);
});

test("a variable of a validation that is a number in some answers only is told, and no reason to end", async () => {
  const warned: string[] = [];
  const hear = ({ message }: Error): void => void warned.push(message);
  process.on("warning", hear);
  onTestFinished(() => void process.off("warning", hear));
  const path = fileURLToPath(new URL("../fixtures/partial-rewards.ts", import.meta.url));
  const { validation } = await trained({
    policy: ScriptedPolicyActor.remote(),
    reward: { reward: { path, name: "tellsMixed" }, workers: 1, executors: 1 },
    validationPrompts: dataset,
    run: { valOnly: true },
    rollout: { maxResponseLength: 1, validation: { n: 2, doSample: true } },
  });
  expect(validation?.["val-core/bandit/reward/mean@2"]).toBe(0.5);
  expect(Object.keys(validation ?? {}).filter((name) => name.includes("answer"))).toEqual([]);
  // Warnings are told in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warned.filter((one) => one.startsWith('"answer" is a number in some'))).toHaveLength(1);
});

test("an update that learns nothing has no part in the length of gradients", async () => {
  const path = fileURLToPath(new URL("../fixtures/partial-rewards.ts", import.meta.url));
  const normsOf = async (batchSize: number): Promise<(number | undefined)[]> => {
    const { metrics } = await trained({
      prompts: new PromptLoader(dataset, { batchSize, shuffle: false }),
      reward: { reward: { path, name: "firstFourScore" }, workers: 1, executors: 1 },
      run: { totalTrainingSteps: 1 },
    });
    return metrics.map((one) => one["actor/grad_norm"]);
  };
  // The last four of eight have no score.
  const [norm] = await normsOf(8);
  expect(norm).toBeGreaterThan(0);
  expect([norm]).toEqual(await normsOf(4));
});

describe("a policy that does not train", () => {
  const policy = OpenAIPolicyActor.remote({ baseUrl: "http://127.0.0.1:9/v1", model: "away" });

  test("is refused where there is nothing to validate on", async () => {
    await expect(trained({ policy })).rejects.toMatchObject({ input: "validationPrompts" });
  });

  test("scores no tokens of a reference, either: said before anything is generated", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const log = join(folder, "calls");
    const training = trained({
      policy: ScriptedPolicyActor.remote({ log }),
      referencePolicy: policy,
      actor: { useKlLoss: true },
    });
    await expect(training).rejects.toMatchObject({
      input: "referencePolicy",
      message: expect.stringMatching(/which actor\.useKlLoss needs; away at http/) as string,
    });
    expect(existsSync(log)).toBe(false);
  });
});

test("a second fit goes on, and tells of its own steps alone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const stop = new Error("stopped");
  let stops = 1;
  await using trainer = await PPOTrainer.create({
    policy: BanditActor.remote({ prompts, lr: 4 }),
    prompts: new PromptLoader(dataset, { batchSize: 8 }),
    reward: loop,
    rollout: { n: 4, maxResponseLength: 1 },
    run: { totalTrainingSteps: 3, saveFreq: 1 },
    checkpoints: { folder },
    tracking: {
      ...silentTracker,
      samples: (step) => {
        if (step === 2 && stops-- > 0) throw stop;
      },
    },
  });
  await expect(trainer.fit()).rejects.toBe(stop);
  const { steps, metrics } = await trainer.fit();
  expect(steps).toBe(3);
  expect(metrics.map((one) => one["training/global_step"])).toEqual([2, 3]);
});

test("each batch has draws of its own, however large the seed is", async () => {
  const answers: string[] = [];
  await trained({
    prompts: new PromptLoader(dataset, { batchSize: prompts, shuffle: false }),
    policy: BanditActor.remote({ prompts, lr: 0 }),
    actor: {},
    run: { totalTrainingSteps: 4, seed: Number.MAX_SAFE_INTEGER },
    tracking: {
      ...silentTracker,
      samples: (_step, samples) =>
        void answers.push(
          samples.map(({ outcome }) => (outcome.valid ? outcome.rewardScore : -1)).join(),
        ),
    },
  });
  expect(new Set(answers).size).toBe(4);
});

test.for<[string, (file: string) => Partial<PPOTrainerOptions>]>([
  [
    "checkpoints.folder",
    (file) => ({
      checkpoints: { folder: file, resumeMode: "disable" },
      run: { totalTrainingSteps: 1, saveFreq: 1 },
    }),
  ],
  ["rolloutDataDir", (file) => ({ rolloutDataDir: file })],
  ["validationDataDir", (file) => ({ validationDataDir: join(file, "of step") })],
])(
  "a folder that cannot be is refused by its name, before anything is generated: %s",
  async ([input, optionsOf]) => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const [log, file] = [join(folder, "calls"), join(folder, "file")];
    await writeFile(file, "");
    const training = trained({ policy: ScriptedPolicyActor.remote({ log }), ...optionsOf(file) });
    await expect(training).rejects.toMatchObject({
      name: "TrainerInputError",
      input,
      message: expect.stringContaining(`${input}: nothing can be written to ${file}`),
    });
    expect(existsSync(log)).toBe(false);
  },
);

test("folders are held while a training lasts: another training there is refused by their names", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  // Both are one folder, which one training may hold.
  const own = {
    checkpoints: { folder },
    rolloutDataDir: join(folder, "..", basename(folder)),
    run: { totalTrainingSteps: 1, saveFreq: 1 },
  };
  const held = await OutputFolders.open({ other: folder });
  const busy = { code: "FOLDER_BUSY", option: "checkpoints.folder", path: folder };
  await expect(trained(own)).rejects.toMatchObject(busy);
  await held.close();
  let during: readonly string[] = [];
  const tracking = { ...silentTracker, phase: () => void (during = readdirSync(folder)) };
  await trained({ ...own, tracking });
  expect(during.filter((name) => name.endsWith(".writer"))).toHaveLength(1);
  expect((await readdir(folder)).filter((name) => name.endsWith(".writer"))).toEqual([]);
});

test("in the bypass nobody asks for log-probabilities before the update", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = join(folder, "calls");
  await trained({
    policy: ScriptedPolicyActor.remote({ log }),
    algorithm: { rolloutCorrection: { bypassMode: true } },
    actor: {},
    run: { totalTrainingSteps: 1 },
  });
  expect(readFileSync(log, "utf8").trimEnd().split("\n")).toEqual([
    "gen 1 x32",
    "update_actor_log_prob 1 x32",
    "update_actor 1 x32",
  ]);
});

describe("a policy that never answers", () => {
  // Each is given a multiple of the time that all of them need beside each other.
  beforeAll(async () => {
    const begun = performance.now();
    await trained({
      policy: ScriptedPolicyActor.remote(),
      actor: {},
      run: { totalTrainingSteps: 2 },
    });
    patienceSeconds = Math.ceil(2 + (performance.now() - begun) / 50);
  });

  // They wait side by side.
  test.concurrent.for<[NonNullable<Script["hangs"]>, string, Partial<PPOTrainerOptions>?]>([
    ["gen", "rollouts"],
    ["rest", "rollouts"],
    ["old_log_prob", "log-probs"],
    ["update_actor_log_prob", "log-probs", { actor: { ppoMiniBatchSize: 4 } }],
    ["update_actor", "an update"],
    ["state", "its weights"],
  ])("%s", async ([hangs, asked, more], { expect: expected }) => {
    const policy = ScriptedPolicyActor.remote({ hangs });
    await ray.get(policy.describe.remote());
    await expected(waited({ policy, ...more })).rejects.toMatchObject(
      tooLate(`the policy, asked for ${asked},`),
    );
    await ray.kill(policy);
  });

  test.concurrent("ref", async ({ expect: expected }) => {
    const policy = ScriptedPolicyActor.remote();
    const referencePolicy = ScriptedPolicyActor.remote({ hangs: "ref" });
    await ray.get([policy.describe.remote(), referencePolicy.describe.remote()]);
    const training = waited({ policy, referencePolicy, actor: { useKlLoss: true } });
    await expected(training).rejects.toMatchObject(
      tooLate("the reference policy, asked for log-probs,"),
    );
    await ray.kill(referencePolicy);
  });

  test.concurrent.for([
    ["values", "values"],
    ["update", "an update"],
    ["state", "its weights"],
  ] as const)("a critic: %s", async ([hangs, asked], { expect: expected }) => {
    const policy = ScriptedPolicyActor.remote();
    const critic = HangingCriticActor.remote(hangs);
    await ray.get(policy.describe.remote());
    const algorithm = { advEstimator: "gae" };
    await expected(waited({ policy, critic, algorithm })).rejects.toMatchObject(
      tooLate(`the critic, asked for ${asked},`),
    );
    await ray.kill(critic);
  });

  test("a bad limit is refused", async () => {
    await expect(trained({ run: { policyTimeoutMs: 0 } })).rejects.toMatchObject({
      input: "run.policyTimeoutMs",
    });
  });
});

let patienceSeconds = 0;

/** Trains with a policy or a critic that does not answer, and saves what it comes to. */
async function waited(more: Partial<PPOTrainerOptions>): Promise<TrainingReport> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-training-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return await trained({
    actor: {},
    run: { totalTrainingSteps: 2, saveFreq: 1, policyTimeoutMs: 1000 * patienceSeconds },
    checkpoints: { folder },
    ...more,
  });
}

function tooLate(asked: string): Record<string, string> {
  return {
    name: "TrainerStateError",
    code: "POLICY_TIMEOUT",
    message: `${asked} has not answered within ${patienceSeconds} s (run.policyTimeoutMs)`,
  };
}
