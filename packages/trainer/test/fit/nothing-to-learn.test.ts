/** A training goes on where a batch, or a mini-batch, has nothing to learn from: empty answers, and importance weights that are all 0. */

import { TimedCriticActor } from "@rayling/trainer";
import type { PPOTrainerOptions, RolloutCorrectionSettings, ScheduleName } from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import {
  BarelySpeakingActor,
  FarActor,
  GradientLogActor,
  SilentActor,
  SilentGroupActor,
} from "../fixtures/gradient-log.ts";
import { scoredTrainings } from "../fixtures/scored-training.ts";

const { trained } = await scoredTrainings();

type More = Partial<PPOTrainerOptions>;

const critic = TimedCriticActor.remote({ seconds: {} });
const reference = GradientLogActor.remote("");
const correcting = {
  rolloutIs: "token",
  rolloutRs: "token_k1",
  rolloutRsThreshold: 2,
} satisfies RolloutCorrectionSettings;

describe("a batch of empty answers", () => {
  const cases: readonly [string, More][] = [
    // What `rayling train` sets if nothing is said.
    ["a correction that has nothing to do", { algorithm: { rolloutCorrection: {} } }],
    ["a correction", { algorithm: { rolloutCorrection: correcting } }],
    ["the bypass", { algorithm: { rolloutCorrection: { ...correcting, bypassMode: true } } }],
    ["gae", { critic }],
    ["PF-PPO", { critic, algorithm: { usePfPpo: true } }],
    ["reinforce_plus_plus", { algorithm: { advEstimator: "reinforce_plus_plus" } }],
    [
      "reinforce_plus_plus_baseline",
      { algorithm: { advEstimator: "reinforce_plus_plus_baseline" } },
    ],
    ["gdpo", { algorithm: { advEstimator: "gdpo", gdpoRewardKeys: ["score", "half"] } }],
    ["remax", { algorithm: { advEstimator: "remax" } }],
    ["optimal_token_baseline", { algorithm: { advEstimator: "optimal_token_baseline" } }],
    [
      "divergences and entropy",
      {
        referencePolicy: reference,
        algorithm: { useKlInReward: true },
        actor: { useKlLoss: true, entropyCoeff: 0.1 },
      },
    ],
  ];

  test.for(cases)("%s", async ([, more]) => {
    const { report, updates } = await trained("halves", more, 1, SilentActor);
    expect(report.metrics[0]?.["response/aborted_ratio"]).toBe(1);
    expect(report.metrics[0]).not.toHaveProperty("actor/pg_loss");
    expect(updates.map(({ learns }) => learns)).toEqual([false]);
  });

  test.for(cases)("but one, of one token: %s", async ([, more]) => {
    const { updates } = await trained("halves", more, 1, BarelySpeakingActor);
    const gradients = updates.flatMap(({ logProbs }) => logProbs);
    expect(gradients.every(Number.isFinite)).toBe(true);
  });
});

describe("a group of empty answers, in a mini-batch of its own", () => {
  test.for<ScheduleName>([
    "sync",
    "one-step-off-policy",
    "mini-batch-pipeline",
    "one-step-pipeline",
    "streaming",
  ])("%s", async (schedule) => {
    const more = {
      schedule,
      algorithm: { rolloutCorrection: correcting },
      actor: { ppoMiniBatchSize: 1 },
    };
    const { report, updates } = await trained("halves", more, 1, SilentGroupActor);
    expect(report.metrics[0]?.["response/aborted_ratio"]).toBe(1 / 4);
    expect(report.metrics[0]?.["rollout_corr/rollout_is_mean"]).toBe(1);
    expect(updates.filter(({ learns }) => learns)).toHaveLength(3);
  });
});

describe("importance weights that are all 0", () => {
  const icePop = { rolloutIs: "token", rolloutIsThreshold: "0.5_5" } as const;
  const cases: readonly [string, RolloutCorrectionSettings][] = [
    ["by token", icePop],
    ["by sequence", { ...icePop, rolloutIs: "sequence" }],
    ["normalised", { ...icePop, rolloutIsBatchNormalize: true }],
    ["in the bypass", { ...icePop, bypassMode: true, lossType: "reinforce" }],
    ["beside the clip of the bypass", { ...icePop, bypassMode: true }],
  ];

  test.for(cases)("%s", async ([, rolloutCorrection]) => {
    const { report, updates } = await trained(
      "halves",
      { algorithm: { rolloutCorrection } },
      1,
      FarActor,
    );
    expect(report.metrics[0]?.["rollout_corr/rollout_is_oob_ratio"]).toBe(1);
    expect(updates.map(({ learns }) => learns)).toEqual([true]);
    const gradients = updates.flatMap(({ logProbs }) => logProbs);
    expect(gradients.every(Number.isFinite)).toBe(true);
    // The clip of the bypass goes without weights.
    const { bypassMode = false, lossType = "ppo_clip" } = rolloutCorrection;
    if (bypassMode && lossType === "ppo_clip") return;
    expect(gradients.filter((one) => one !== 0)).toEqual([]);
  });
});
