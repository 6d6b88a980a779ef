/** The tiny policy and the tiny critic in the training loop: what begins with a fifth right gets better, and the same seed comes to the same weights. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import {
  arithmeticAlphabet,
  arithmeticTask,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
} from "@rayling/trainer";
import type { PolicyState, PPOTrainerOptions, TrainingReport } from "@rayling/trainer";
import { TinyCriticActor, TinyPolicyActor } from "@rayling/trainer/tiny";
import type { TinySettings } from "@rayling/trainer/tiny";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { bitsOf } from "../policy/tiny-rows.ts";
import { inFull, sized } from "../../../../test/fixtures/suite.ts";

// 36 problems, which a smaller model learns in seconds.
const { train } = arithmeticTask({ low: 0, high: 5, testShare: 0 });
const rollout = { n: 8, maxResponseLength: 3 };
const model: TinySettings = {
  alphabet: arithmeticAlphabet,
  contextLength: 8,
  width: 32,
  seed: 1,
  optim: { lr: 5e-3 },
};

let loop: RewardLoopManager;
let dataset: PromptDataset;
let begun: PolicyState;

beforeAll(async () => {
  await ray.init({ isolation: "shared", prewarm: 0 });
  const reward = fileURLToPath(new URL("../fixtures/exact-reward.ts", import.meta.url));
  loop = await RewardLoopManager.create({ reward, workers: 1, executors: 1 });
  dataset = await PromptDataset.fromRows(train);
  const policy = TinyPolicyActor.remote(model);
  const pairs = train.map(({ prompt, reward_model }) => ({
    prompt,
    answer: reward_model.ground_truth,
  }));
  await ray.get(policy.supervise.remote({ pairs, steps: 40, batchSize: 32 }));
  const { version, weights } = await ray.get(policy.state.remote());
  begun = { version, weights, optimizer: {} };
});

afterAll(async () => {
  await loop.close();
  await ray.shutdown();
});

interface Trained {
  readonly metrics: TrainingReport["metrics"];
  readonly weights: string;
}

async function trained(
  { steps, batchSize }: { readonly steps: number; readonly batchSize: number },
  more: Partial<PPOTrainerOptions> = {},
): Promise<Trained> {
  const policy = TinyPolicyActor.remote(model);
  await ray.get(policy.setState.remote(begun));
  await using trainer = await PPOTrainer.create({
    policy,
    prompts: new PromptLoader(dataset, { batchSize }),
    reward: loop,
    rollout,
    run: { totalTrainingSteps: steps },
    ...more,
  });
  const { metrics } = await trainer.fit();
  const weights = bitsOf(await ray.get(policy.state.remote()));
  await ray.kill(policy);
  return { metrics, weights };
}

const valuesOf = ({ metrics }: Trained, name: string): number[] =>
  metrics.map((one) => one[name] ?? Number.NaN);
const meanOf = (some: readonly number[]): number => some.reduce((a, b) => a + b, 0) / some.length;

test("GRPO makes more of its answers right", async () => {
  const { gain, ...size } = sized({
    gate: { steps: 12, batchSize: 24, gain: 0.05 },
    full: { steps: 24, batchSize: train.length, gain: 0.15 },
  });
  const scores = valuesOf(await trained(size), "critic/score/mean");
  const [from, to] = [meanOf(scores.slice(0, 4)), meanOf(scores.slice(-4))];
  expect(from).toBeLessThan(0.4);
  expect(to - from).toBeGreaterThan(gain);
});

test("PPO learns what answers are worth beside, and holds on to a reference policy", async () => {
  const referencePolicy = TinyPolicyActor.remote(model);
  await ray.get(referencePolicy.setState.remote(begun));
  const run = await trained(
    { steps: sized({ gate: 4, full: 8 }), batchSize: 12 },
    {
      critic: TinyCriticActor.remote({ ...model, optim: { lr: 2e-3 } }),
      referencePolicy,
      actor: { useKlLoss: true, entropyCoeff: 0.001, ppoMiniBatchSize: 6 },
    },
  );
  const losses = valuesOf(run, "critic/vf_loss");
  expect(losses.at(-1)).toBeLessThan(losses[0]! * 0.9);
  const divergences = valuesOf(run, "actor/kl_loss");
  expect(divergences.at(-1)).toBeGreaterThan(divergences[0]!);
});

test.runIf(
  inFull("a run that goes on with a checkpoint comes to the same weights below, bit by bit"),
)("the same seed comes to the same weights, bit by bit", async () => {
  const few = { steps: 2, batchSize: 9 };
  const { weights } = await trained(few);
  expect((await trained(few)).weights).toBe(weights);
  const run = { totalTrainingSteps: 2, seed: 2 };
  expect((await trained(few, { run })).weights).not.toBe(weights);
});

test("a run that goes on with a checkpoint comes to the weights of one that was never ended, and its critic, too", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-tiny-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const referencePolicy = TinyPolicyActor.remote(model);
  await ray.get(referencePolicy.setState.remote(begun));
  const until = async (steps: number, more: Partial<PPOTrainerOptions>): Promise<string[]> => {
    const critic = TinyCriticActor.remote({ ...model, optim: { lr: 2e-3 } });
    const klCtrl = { type: "adaptive", klCoef: 0.05, horizon: 1000, targetKl: 0.01 } as const;
    const { metrics, weights } = await trained(
      { steps, batchSize: 9 },
      {
        critic,
        referencePolicy,
        algorithm: { useKlInReward: true, klCtrl },
        actor: { entropyCoeff: 0.01, ppoMiniBatchSize: 3, ppoEpochs: 2 },
        run: { totalTrainingSteps: steps, saveFreq: steps },
        ...more,
      },
    );
    const ofCritic = bitsOf(await ray.get(critic.state.remote()));
    await ray.kill(critic);
    const coefficient = metrics.at(-1)?.["actor/reward_kl_penalty_coeff"];
    return [weights, ofCritic, String(coefficient)];
  };
  const [some, all] = sized({ gate: [1, 2] as const, full: [2, 4] as const });
  const straight = await until(all, { run: { totalTrainingSteps: all } });
  const half = await until(some, { checkpoints: { folder } });
  expect(half).not.toEqual(straight);
  expect(await until(all, { checkpoints: { folder } })).toEqual(straight);
});
