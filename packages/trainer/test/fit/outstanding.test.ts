/** Rollouts of a checkpoint that are still to be trained: what is asked for them, and what they count for. */

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RewardLoopManager } from "@rayling/reward-loop";
import { resumeCheckpoint, saveCheckpoint } from "@rayling/trainer";
import type { PPOTrainerOptions, RolloutBatch } from "@rayling/trainer";
import { expect, onTestFinished, test } from "vitest";
import { scoredTrainings } from "../fixtures/scored-training.ts";
import { ScriptedPolicyActor } from "../fixtures/scripted.ts";

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
  readonly samples: readonly { readonly outcome?: unknown; readonly rollout?: object }[];
  readonly baselines?: readonly { readonly outcome?: unknown }[];
}

/** A folder with a checkpoint of step 1, made of one by `change`. The second batch is ahead. */
async function aheadOf(
  change: (batch: Kept) => Kept,
  more: Partial<PPOTrainerOptions> = {},
): Promise<string> {
  const folder = await newFolder();
  const run = { totalTrainingSteps: 2, saveFreq: 1 };
  await trained("halves", { ...more, checkpoints: { folder }, schedule: oneAhead, run });
  const found = await resumeCheckpoint({ folder, mode: "auto" });
  if (found === undefined) throw new Error("there is no checkpoint");
  const outstanding = (found.outstanding as Kept[]).map(change);
  expect(outstanding).toHaveLength(1);
  await saveCheckpoint({ ...found, outstanding }, { folder });
  return folder;
}

/** Without any score. */
function unscored(batch: Kept): Kept {
  const without = ({ outcome: _, ...sample }: { readonly outcome?: unknown }): object => sample;
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

test.for<[string, Partial<PPOTrainerOptions>]>([
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
])("cost nothing in a run that only validates: %s", async ([, more]) => {
  const folder = await aheadOf(unscored);
  const validationPrompts = dataset();
  expect(await judged({ checkpoints: { folder }, validationPrompts, ...more })).toEqual(questions);
});

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
