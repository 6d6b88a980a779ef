/** Rollouts of a checkpoint that are still to be trained: what is asked for them, and what they count for. */

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RewardLoopManager } from "@rayling/reward-loop";
import { PromptDataset, PromptLoader, resumeCheckpoint, saveCheckpoint } from "@rayling/trainer";
import type { EarlierFailures, PPOTrainerOptions, RolloutBatch } from "@rayling/trainer";
import { expect, onTestFinished, test } from "vitest";
import { rewardsPath, scoredTrainings } from "../fixtures/scored-training.ts";
import { ScriptedPolicyActor } from "../fixtures/scripted.ts";
import { inFull, sized } from "../../../../test/fixtures/suite.ts";

const { dataset, trained } = await scoredTrainings();
const scripted = fileURLToPath(new URL("../fixtures/scripted.ts", import.meta.url));

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-outstanding-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Trains one step with the next one's batch generated, and its rewards there, and stops. */
const oneAhead: PPOTrainerOptions["schedule"] = async (training) => {
  const batches = [await training.rollout(), await training.rollout()] as RolloutBatch[];
  await Promise.all(batches.map(({ rewards }) => rewards.whenSettled()));
  const prepared = await training.prepare(batches[0] as RolloutBatch);
  await training.learn(prepared, training.left(prepared));
  await training.endStep();
};

interface Kept {
  readonly number: number;
  readonly samples: readonly { readonly outcome?: unknown; readonly rollout?: object }[];
  readonly baselines?: readonly { readonly outcome?: unknown }[];
  readonly earlierFailures?: EarlierFailures;
}

/** The batches of the last checkpoint that are still to be trained. */
async function keptIn(folder: string): Promise<readonly Kept[]> {
  const found = await resumeCheckpoint({ folder, mode: "auto" });
  return (found?.outstanding ?? []) as Kept[];
}

/** A folder with a checkpoint of step 1, made of one by `change`. The second batch is ahead. */
async function aheadOf(
  change: (batch: Kept) => Kept | readonly Kept[],
  more: Partial<PPOTrainerOptions> = {},
): Promise<string> {
  const folder = await newFolder();
  const run = { totalTrainingSteps: 2, saveFreq: 1 };
  await trained("halves", { ...more, checkpoints: { folder }, schedule: oneAhead, run });
  const found = await resumeCheckpoint({ folder, mode: "auto" });
  if (found === undefined) throw new Error("there is no checkpoint");
  expect(found.outstanding).toHaveLength(1);
  const outstanding = (found.outstanding as Kept[]).flatMap(change);
  await saveCheckpoint({ ...found, outstanding }, { folder });
  return folder;
}

/** Without any score. */
function unscored(batch: Kept): Kept {
  const without = (scored: { readonly outcome?: unknown }): object => {
    const { outcome: _, ...sample } = scored;
    return sample;
  };
  const { samples, baselines } = batch;
  return {
    ...batch,
    samples: samples.map(without),
    ...(baselines && { baselines: baselines.map(without) }),
  };
}

/** What a run that resumes asks the judge for. */
async function judged(
  more: Partial<PPOTrainerOptions>,
  failure?: string,
): Promise<readonly string[]> {
  const log = join(await newFolder(), "judged");
  await using loop = await RewardLoopManager.create({
    reward: { path: scripted, name: "bySample", rewardKwargs: { log } },
    workers: 1,
    executors: 1,
    concurrency: 1,
  });
  const run = trained("", { reward: loop, ...more });
  if (failure === undefined) await run;
  else await expect(run).rejects.toThrow(failure);
  // One slot: what was asked for before is judged before.
  const last = { dataSource: "last", response: "last #0", groundTruth: "" };
  await loop.computeScore({ ...last, rawPrompt: [], extraInfo: {} });
  const lines = existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : [];
  return lines.slice(0, -1).toSorted();
}

const questions = ["0 #0", "1 #0", "2 #0", "3 #0"];

test("are judged where they are trained", async () => {
  const folder = await aheadOf(unscored);
  const more = { checkpoints: { folder }, run: { totalTrainingSteps: 2 } };
  const asked = questions.flatMap((one) => [one, one.replace("#0", "#1")]);
  expect(await judged(more)).toEqual(asked);
});

const twice = (batch: Kept): Kept[] => [batch, { ...batch, number: batch.number + 1 }];

const needless: [string, Partial<PPOTrainerOptions>][] = [
  ["too old", { schedule: "streaming", staleness: { limit: 0 } }],
  ["beyond the steps that are left: sync", {}],
  [
    "beyond the steps that are left: streaming",
    { schedule: "streaming", staleness: { limit: 2, numWarmupBatches: 1 } },
  ],
];
test.for(sized({ gate: needless.slice(0, 2), full: needless }))(
  "cost nothing where no step trains on them: %s",
  async ([, more]) => {
    const folder = await aheadOf((batch) => twice(unscored(batch)));
    const run = { totalTrainingSteps: 2 };
    // One batch is trained: that of the checkpoint, or a new one.
    expect(await judged({ checkpoints: { folder }, run, ...more })).toHaveLength(8);
  },
);

test("are judged again by other functions than those of the checkpoint, with the rest of their groups", async () => {
  const folder = await aheadOf((batch) => batch);
  const common = { checkpoints: { folder }, run: { totalTrainingSteps: 2 } };
  const warned: string[] = [];
  const note = ({ message }: Error): number => warned.push(message);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  expect(await judged(common)).toHaveLength(8);
  await new Promise(setImmediate);
  expect(warned).toEqual([
    expect.stringMatching(/^8 scores in the checkpoint of step 1 .* other reward functions/),
  ]);
  // The loop decides, where it goes on with its log.
  const loop = async (stale: "keep" | "refuse"): Promise<PPOTrainerOptions["reward"]> => ({
    reward: { path: scripted, name: "bySample" },
    workers: 1,
    executors: 1,
    record: join(await newFolder(), "rewards.jsonl"),
    resume: { stale },
  });
  await expect(trained("", { ...common, reward: await loop("refuse") })).rejects.toMatchObject({
    name: "TrainerInputError",
    input: "reward.resume.stale",
    message: expect.stringMatching(/global_step_1: 8 scores .*"rescore" or "keep"/) as string,
  });
  const { report } = await trained("", { ...common, reward: await loop("keep") });
  // Nothing was on its way.
  expect(report.steps).toBe(2);
  expect(report.metrics[0]).not.toHaveProperty("reward/inflight");
});

test("of a checkpoint of an earlier version, which does not tell its functions, keep their scores", async () => {
  const folder = await aheadOf((batch) => batch);
  const found = await resumeCheckpoint({ folder, mode: "auto" });
  if (found === undefined) throw new Error("there is no checkpoint");
  const { rewardVersions, ...trainer } = found.trainer as { rewardVersions?: readonly string[] };
  expect(rewardVersions).toHaveLength(1);
  await saveCheckpoint({ ...found, trainer }, { folder });
  expect(await judged({ checkpoints: { folder }, run: { totalTrainingSteps: 2 } })).toEqual([]);
});

test("without a score of their own have the present fallback, whichever they had", async () => {
  const scores: (number | undefined)[] = [];
  const reward = (fallback: number): PPOTrainerOptions["reward"] => {
    const own = { path: rewardsPath, name: "firstThrows" };
    return { reward: own, workers: 1, executors: 1, onFailure: { fallback } };
  };
  const folder = await aheadOf((batch) => batch, { reward: reward(-1) });
  for (const fallback of [-1, 5]) {
    const { report } = await trained("", {
      checkpoints: { folder },
      run: { totalTrainingSteps: 2 },
      reward: reward(fallback),
    });
    scores.push(report.metrics[0]?.["critic/score/mean"]);
  }
  expect(scores).toEqual([0, 3]);
});

const validating: [string, Partial<PPOTrainerOptions>][] = [
  ["with run.valOnly", { run: { valOnly: true, totalTrainingSteps: 2 } }],
  [
    "with a policy that does not train",
    { policy: ScriptedPolicyActor.remote({ trains: false }), run: { totalTrainingSteps: 2 } },
  ],
  ["where all steps are trained", { run: { totalTrainingSteps: 1 } }],
  [
    "with other samples of a prompt",
    { run: { valOnly: true }, rollout: { n: 3, maxResponseLength: 1 } },
  ],
];
test.for(sized({ gate: validating.slice(0, 2), full: validating }))(
  "cost nothing in a run that only validates: %s",
  async ([, more]) => {
    const folder = await aheadOf(unscored);
    const validationPrompts = dataset();
    expect(await judged({ checkpoints: { folder }, validationPrompts, ...more })).toEqual(
      questions,
    );
  },
);

test("cost nothing where the policy refuses the weights", async () => {
  const folder = await aheadOf(unscored);
  const policy = ScriptedPolicyActor.remote({ refusesWeights: true });
  const more = { policy, checkpoints: { folder }, run: { totalTrainingSteps: 2 } };
  expect(await judged(more, "weights of another model")).toEqual([]);
});

test("whatever a policy tells besides is no reason for a checkpoint to fail: it comes back as far as it has words", async () => {
  const told: (object | undefined)[] = [];
  const policy = ScriptedPolicyActor.remote({ tellsThings: true });
  const noted = (batch: Kept): Kept => {
    told.push(...batch.samples.map(({ rollout }) => rollout));
    return batch;
  };
  const folder = await aheadOf(noted, { policy });
  expect(told).toHaveLength(8);
  for (const rollout of told) {
    expect(rollout).toMatchObject({
      responseIds: Int32Array.of(1),
      rolloutLogProbs: new Float32Array(1),
      toolError: "RangeError: far",
      pattern: "/a+/g",
      image: null,
      hidden: Float32Array.of(0.5),
      turns: [{ at: new Date(0), why: "Error: late" }],
    });
  }
  const run = { totalTrainingSteps: 2 };
  const { report } = await trained("halves", { policy, checkpoints: { folder }, run });
  expect(report.steps).toBe(2);
});

/** Trains two groups of the batch, or as many as are left of it, and ends the step. */
const twoGroups: PPOTrainerOptions["schedule"] = async (training) => {
  const batch = (await training.rollout()) as RolloutBatch;
  await batch.rewards.whenSettled();
  const prepared = await training.prepare(batch);
  await training.learn(prepared, Math.min(4, training.left(prepared)));
  await training.endStep();
};

function rewardOf(name: string, failAbove: number): PPOTrainerOptions["reward"] {
  const reward = { path: rewardsPath, name };
  return { reward, workers: 1, executors: 1, onFailure: { failAbove } };
}

test("count as the batch that they are of: failures are a share of all of it, however often it is kept", async () => {
  const folder = await newFolder();
  const run = { totalTrainingSteps: 3, saveFreq: 1 };
  const common = { checkpoints: { folder }, run, actor: { ppoMiniBatchSize: 1 } };
  // Half of all rows have no score.
  const reward = rewardOf("firstThrows", 0.5);
  await trained("", { ...common, reward, schedule: twoGroups });
  const [kept] = await keptIn(folder);
  expect(kept?.samples).toHaveLength(4);
  expect(Object.values(kept?.earlierFailures?.samples ?? {})).toEqual([2]);
  const oneGroup: PPOTrainerOptions["schedule"] = async (training) => {
    const batch = (await training.rollout()) as RolloutBatch;
    const prepared = await training.prepare(batch);
    await training.learn(prepared, 2);
    await training.endStep();
  };
  await trained("", { ...common, reward, schedule: oneGroup });
  const [again] = await keptIn(folder);
  expect(again?.samples).toHaveLength(2);
  expect(Object.values(again?.earlierFailures?.samples ?? {})).toEqual([3]);
  const strict = trained("", { ...common, reward: rewardOf("firstThrows", 0.4) });
  await expect(strict).rejects.toMatchObject({ name: "RewardFailuresError", invalid: 4, total: 8 });
  const { report } = await trained("", { ...common, reward: rewardOf("halves", 0.5) });
  expect(report.steps).toBe(3);
});

test.runIf(
  inFull("failures of a batch that is kept again and again are a share of all of it above"),
)(
  "of a checkpoint that does not tell of the rest count as a part of the batch all the same",
  async () => {
    const error = { code: "REWARD_FAILED", name: "Error", message: "no score" };
    const invalid = { valid: false, error, attempts: 1, latencyMs: 0, waitedMs: 0 };
    const folder = await aheadOf((kept) => {
      const { earlierFailures: _, ...batch } = kept;
      const samples = batch.samples
        .slice(-2)
        .map((one, at) => (at === 0 ? { ...one, outcome: invalid } : one));
      return { ...batch, samples };
    });
    const run = { totalTrainingSteps: 2 };
    const resumed = (failAbove: number): ReturnType<typeof trained> =>
      trained("", { checkpoints: { folder }, run, reward: rewardOf("halves", failAbove) });
    await expect(resumed(0.1)).rejects.toMatchObject({ invalid: 1, total: 8 });
    const { report } = await resumed(0.3);
    expect(report.metrics[0]).toMatchObject({ "reward/invalid_rate": 0.5 });
  },
);

test("whose failures end the run are judged again by the next", async () => {
  const folder = await newFolder();
  const rows = Array.from({ length: 8 }, (_, row) => ({
    prompt: [{ role: "user", content: String(row) }],
    data_source: "scripted",
    reward_model: { ground_truth: "" },
  }));
  const prompts = new PromptLoader(await PromptDataset.fromRows(rows), {
    batchSize: 4,
    shuffle: false,
  });
  const run = { totalTrainingSteps: 2, saveFreq: 1 };
  const common = { checkpoints: { folder }, prompts, run };
  await trained("", {
    ...common,
    reward: rewardOf("laterThrow", 0.5),
    schedule: async (training) => {
      const batches = [await training.rollout(), await training.rollout()] as RolloutBatch[];
      await expect(batches[1]?.rewards.whenSettled()).rejects.toMatchObject({ total: 8 });
      const prepared = await training.prepare(batches[0] as RolloutBatch);
      await training.learn(prepared, training.left(prepared));
      await training.endStep();
    },
  });
  const { report } = await trained("", { ...common, reward: rewardOf("halves", 0.5) });
  expect(report.steps).toBe(2);
  expect(report.metrics.at(-1)).toMatchObject({ "reward/invalid_rate": 0 });
});

test("end the training by their failures only while they are of a step", async () => {
  const isFailed: boolean[] = [];
  await trained("", {
    run: { totalTrainingSteps: 2 },
    reward: rewardOf("firstThrows", 0.4),
    schedule: async (training) => {
      for (const isDropped of [false, true]) {
        const pool = training.newPool();
        const batch = (await training.rollout()) as RolloutBatch;
        pool.add(batch);
        if (isDropped) {
          pool.dropAll();
          await batch.rewards.whenSettled();
        } else await expect(batch.rewards.whenSettled()).rejects.toThrow("4 of 8");
        await new Promise(setImmediate);
        try {
          pool.throwIfFailed();
          isFailed.push(false);
        } catch {
          isFailed.push(true);
        }
      }
    },
  });
  expect(isFailed).toEqual([true, false]);
});

test("of a validation end no training by their failures, however many", async () => {
  const rows = ["4", "5"].map((content) => ({
    prompt: [{ role: "user", content }],
    data_source: "scripted",
    reward_model: { ground_truth: "" },
  }));
  const { report } = await trained("", {
    validationPrompts: await PromptDataset.fromRows(rows),
    reward: rewardOf("laterThrow", 0),
    run: { totalTrainingSteps: 2, testFreq: 1 },
  });
  expect(report).toMatchObject({ steps: 2, validation: { "val-aux/invalid_rate": 1 } });
});

const remax = { advEstimator: "remax" };

test("without greedy answers are refused where they are to be compared with these", async () => {
  const folder = await aheadOf(unscored);
  const more = { checkpoints: { folder }, algorithm: remax };
  const refused = "resume with that one";
  const run = { totalTrainingSteps: 2 };
  expect(await judged({ ...more, run }, refused)).toEqual([]);
  await expect(trained("halves", { ...more, run })).rejects.toMatchObject({
    name: "TrainerInputError",
    input: "algorithm.advEstimator",
    message: expect.stringMatching(/is remax, .* without greedy answers/) as string,
  });
  // Nothing is left to train, and so there is nothing to compare.
  const { report } = await trained("halves", { ...more, run: { totalTrainingSteps: 1 } });
  expect(report.steps).toBe(1);
});

test("with greedy answers are compared with these, which nobody judges where no estimator uses them", async () => {
  const folder = await aheadOf(unscored, { algorithm: remax });
  const more = { checkpoints: { folder }, run: { totalTrainingSteps: 2 } };
  const samples = questions.flatMap((one) => [one, one.replace("#0", "#1")]);
  expect(await judged(more)).toEqual(samples);
  const greedy = await judged({ ...more, algorithm: remax });
  expect(greedy).toEqual([...samples, ...questions].toSorted());
});
