/** Trainings by each estimator and each loss, and what some of them need of a training beside its rows: a seed, what the rollout said, the entropy of the policy. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import {
  createAdvantageRegistry,
  createPolicyLossRegistry,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
  TimedCriticActor,
} from "@rayling/trainer";
import type { PPOTrainerOptions, TrainingReport } from "@rayling/trainer";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { BanditActor } from "../fixtures/bandit.ts";
import { sized } from "../../../../test/fixtures/suite.ts";

const prompts = 8;
let loop: RewardLoopManager;
let dataset: PromptDataset;

beforeAll(async () => {
  await ray.init({ isolation: "shared", prewarm: 0 });
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

interface Trained {
  readonly report: TrainingReport;
  readonly weights: readonly number[];
}

async function trained(steps: number, more: Partial<PPOTrainerOptions>): Promise<Trained> {
  const policy = BanditActor.remote({ prompts, lr: 4 });
  await using trainer = await PPOTrainer.create({
    policy,
    prompts: new PromptLoader(dataset, { batchSize: 8 }),
    reward: loop,
    rollout: { n: 4, maxResponseLength: 1 },
    ...more,
    run: { totalTrainingSteps: steps, ...more.run },
  });
  const report = await trainer.fit();
  const { weights } = await ray.get(policy.state.remote());
  return { report, weights: [...(weights["logits"] ?? [])] };
}

/** Of the first steps, and of the last. */
function scoresOf({ metrics }: TrainingReport): readonly [number, number] {
  const scores = metrics.map((one) => one["critic/score/mean"] ?? Number.NaN);
  const mean = (some: readonly number[]): number =>
    some.reduce((sum, one) => sum + one, 0) / some.length;
  return [mean(scores.slice(0, 5)), mean(scores.slice(-5))];
}

/** As few as show that it learns. */
const stepsToLearn = sized({ gate: 30, full: 40 });

/**
 * A training knows of these by name, but for two. Values and gradients of all of them are in
 * policy-losses.test.ts, actor-gradients.test.ts and advantages.test.ts.
 */
const some = ["vanilla", "bypass_mode", "gpg", "grpo", "gae", "remax"];
const isInGate = (name: string): boolean => sized({ gate: some.includes(name), full: true });

describe("a training learns", () => {
  const losses = createPolicyLossRegistry().names();
  test.each(losses.filter(isInGate))("by the loss %s", async (lossMode) => {
    const isBypass = lossMode === "bypass_mode";
    const { report } = await trained(stepsToLearn, {
      actor: { lossMode, ppoMiniBatchSize: 4, droBeta: 0.1 },
      ...(isBypass ? { algorithm: { rolloutCorrection: { bypassMode: true } } } : {}),
    });
    const [first, last] = scoresOf(report);
    expect(last).toBeGreaterThan(first + 0.3);
  });

  // gdpo is made of components, which this reward has none of (scores.test.ts).
  const estimators = createAdvantageRegistry()
    .names()
    .filter((name) => name !== "gdpo");
  test.each(estimators.filter(isInGate))("by the estimator %s", async (advEstimator) => {
    const critic = TimedCriticActor.remote({ seconds: {} });
    const { report } = await trained(stepsToLearn, {
      algorithm: { advEstimator },
      ...(advEstimator === "gae" ? { critic } : {}),
    });
    const [first, last] = scoresOf(report);
    expect(last).toBeGreaterThan(first + 0.3);
  });
});

describe("clip_cov", () => {
  const actor = {
    lossMode: "clip_cov",
    ppoMiniBatchSize: 4,
    clipCovRatio: 0.2,
    clipCovLb: -10,
    clipCovUb: 10,
  };

  test("leaves out the same tokens in each run of a seed, also in one that goes on from a checkpoint", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-losses-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const checkpoints = { folder };
    const first = await trained(2, { actor, checkpoints, run: { saveFreq: 1 } });
    const resumed = await trained(4, { actor, checkpoints });
    const straight = await trained(4, { actor });
    expect(resumed.report.metrics).toHaveLength(2);
    expect(straight.report.metrics[0]?.["actor/pg_clipfrac"]).toBeCloseTo(3 / 16, 6);
    expect(resumed.weights).toEqual(straight.weights);
    expect(first.weights).not.toEqual(straight.weights);
    const other = await trained(4, { actor: { ...actor, permutation: (count) => inOrder(count) } });
    expect(other.weights).not.toEqual(straight.weights);
  });
});

function inOrder(count: number): number[] {
  return Array.from({ length: count }, (_, place) => place);
}

describe("decoupled", () => {
  test("learns from rollouts that are a step old, by what they said of themselves", async () => {
    const { report } = await trained(sized({ gate: 30, full: 60 }), {
      schedule: "one-step-off-policy",
      actor: { lossMode: "decoupled", ppoMiniBatchSize: 4 },
    });
    const last = report.metrics.slice(-5).map((one) => one["critic/score/mean"] ?? 0);
    expect(Math.min(...last)).toBeGreaterThan(0.8);
    expect(report.metrics[1]?.["actor/pg_clipfrac"]).toBeDefined();
  });

  test("learns nothing from tokens that are above its cap", async () => {
    const actor = { lossMode: "decoupled", behavImpWeightCap: 0.5 };
    const { weights } = await trained(1, { actor });
    expect(weights.filter((one) => one !== 0)).toEqual([]);
  });
});

test("the entropy of the policy is told in each step, whether it counts or not", async () => {
  const { report } = await trained(20, {});
  const entropies = report.metrics.map((one) => one["actor/entropy"] ?? Number.NaN);
  expect(entropies[0]).toBeCloseTo(Math.log(4), 5);
  expect(entropies.at(-1)).toBeLessThan(0.5);
});
