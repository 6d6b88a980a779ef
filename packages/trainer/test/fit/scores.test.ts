/** What scores do to a step when some are missing, are of several parts, or depend on more than the text: in whole trainings. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TimedCriticActor } from "@rayling/trainer";
import type { PPOTrainerOptions, SampleRecord } from "@rayling/trainer";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  GradientLogActor,
  GradientLogCriticActor,
  SilentFirstActor,
} from "../fixtures/gradient-log.ts";
import { silentTracker } from "../../src/tracking/step-tracker.ts";
import type { StepTracker } from "../../src/tracking/step-tracker.ts";
import { rewardsPath, scoredTrainings } from "../fixtures/scored-training.ts";
import { sized } from "../../../../test/fixtures/suite.ts";

const { dataset, trained } = await scoredTrainings();

describe("a run goes on, and learns nothing from them, where the scores are invalid of", () => {
  const reference = GradientLogActor.remote("");
  const cases: readonly [string, Partial<PPOTrainerOptions>][] = [
    ["grpo_passk", { algorithm: { advEstimator: "grpo_passk" } }],
    ["reinforce_plus_plus", { algorithm: { advEstimator: "reinforce_plus_plus" } }],
    ["gdpo", { algorithm: { advEstimator: "gdpo", gdpoRewardKeys: ["score", "half"] } }],
    ["gae", { critic: TimedCriticActor.remote({ seconds: {} }) }],
    ["PF-PPO", { critic: TimedCriticActor.remote({ seconds: {} }), algorithm: { usePfPpo: true } }],
    [
      "the bypass",
      {
        algorithm: {
          rolloutCorrection: { bypassMode: true, lossType: "reinforce", rolloutIs: "token" },
        },
        actor: { ppoMiniBatchSize: 1 },
      },
    ],
    ["corrected rollouts", { algorithm: { rolloutCorrection: { rolloutIs: "token" } } }],
    [
      "divergences and entropy",
      {
        referencePolicy: reference,
        algorithm: { useKlInReward: true },
        actor: { useKlLoss: true, klLossType: "kl", entropyCoeff: 0.1 },
      },
    ],
  ];

  // No estimator hears of rows that are all invalid.
  test.for(sized({ gate: cases.slice(-3), full: cases }))("all rows: %s", async ([, more]) => {
    const { report, updates } = await trained("allThrow", more);
    expect(report.metrics[0]?.["reward/invalid_rate"]).toBe(1);
    expect(report.metrics[0]).not.toHaveProperty("actor/pg_loss");
    const gradients = updates.flatMap(({ logProbs, entropys }) => [...logProbs, ...entropys]);
    // Only the last update of the step is asked for, which the learning rate goes on with.
    expect(updates.map(({ learns }) => learns)).toEqual([false]);
    expect(gradients.filter((one) => one !== 0)).toEqual([]);
  });

  test("no row, where the correction rejects all tokens", async () => {
    const { report, updates } = await trained("halves", {
      algorithm: { rolloutCorrection: { rolloutRs: "token_k1", rolloutRsThreshold: "2_3" } },
    });
    expect(report.metrics[0]?.["rollout_corr/rollout_rs_masked_fraction"]).toBe(1);
    expect(report.metrics[0]).not.toHaveProperty("actor/pg_loss");
    expect(updates.map(({ learns }) => learns)).toEqual([false]);
  });

  test.for(cases)("all rows but one: %s", async ([, more]) => {
    const { report, updates } = await trained("oneScores", more);
    expect(report.metrics[0]?.["reward/invalid_rate"]).toBe(7 / 8);
    const own = updates.flatMap(({ logProbs }) => logProbs);
    // PF-PPO draws that row alone, again and again.
    if (more.algorithm?.usePfPpo !== true) {
      expect(own.filter((one) => one !== 0).length).toBeLessThanOrEqual(1);
    }
    expect(own.every(Number.isFinite)).toBe(true);
  });
});

test("scores of tokens are rewards of these; estimators of outcomes have their sum", async () => {
  const rollout = { maxResponseLength: 2 };
  const byToken = async (advEstimator: string): Promise<number[]> => {
    const { report, updates } = await trained(
      "byToken",
      { algorithm: { advEstimator }, rollout },
      2,
    );
    expect(report.metrics[0]).toMatchObject({
      "critic/score/max": 0.75,
      "critic/score/mean": 0.375,
    });
    return (updates[0]?.logProbs ?? []).slice(0, 4);
  };
  // Of a row: what is rewarded from each token on, whitened over all of them; the second token has less of it.
  const [, , first = 0, second = 0] = await byToken("reinforce_plus_plus");
  expect(first).toBeLessThan(second);
  const [low, lowAgain, high, highAgain] = await byToken("grpo");
  expect([lowAgain, highAgain]).toEqual([low, high]);
  expect(high).toBeLessThan(0);
});

test.each(["grpo", "rloo", "opo", "reinforce_plus_plus_baseline"])(
  "an answer without a token keeps its score, and its group is compared with it: %s",
  async (advEstimator) => {
    const { report, updates } = await trained(
      "halves",
      { algorithm: { advEstimator } },
      1,
      SilentFirstActor,
    );
    expect(report.metrics[0]?.["reward/invalid_rate"]).toBe(0);
    expect(report.metrics[0]?.["response/aborted_ratio"]).toBe(0.5);
    const [update] = updates;
    // Of eight rows the second of each group has a token, and a better score than the first.
    const silent = update?.logProbs.filter((_, row) => row % 2 === 0);
    const said = update?.logProbs.filter((_, row) => row % 2 === 1);
    expect(silent).toEqual([0, 0, 0, 0]);
    if (advEstimator === "grpo") {
      expect(said).toEqual([0, 0, 0, 0].map(() => expect.closeTo(-Math.SQRT1_2 / 4, 5) as number));
    } else if (advEstimator === "rloo") expect(said).toEqual([0, 0, 0, 0].map(() => -1 / 4));
    expect(said?.every(Number.isFinite)).toBe(true);
  },
);

test.each([
  ["token-mean", 4],
  ["seq-mean-token-sum", 8],
  ["seq-mean-token-sum-norm", 8],
  ["seq-mean-token-mean", 8],
] as const)(
  "the critic's loss counts an answer without a token where it counts rows, as the policy's does: %s",
  async (lossAggMode, divisor) => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-critic-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const log = join(folder, "updates");
    const more = {
      critic: GradientLogCriticActor.remote(log),
      actor: { lossAggMode, entropyCoeff: 1 },
      criticOptions: { lossAggMode },
    };
    const { report, updates } = await trained("halves", more, 1, SilentFirstActor);
    const gradients = JSON.parse(await readFile(log, "utf8")) as number[];
    // Its values are 0, and the second answer to each of four prompts has a return of 1.
    const ofRows = (slope: number): number[] => [0, 1, 2, 3].flatMap(() => [0, slope]);
    expect(gradients).toEqual(ofRows(-1 / divisor));
    expect(updates[0]?.entropys.map((one) => one + 0)).toEqual(ofRows(-1 / divisor));
    expect(report.metrics[0]?.["critic/vf_loss"]).toBeCloseTo(2 / divisor, 6);
  },
);

test("a row without a valid score has no gradient of the divergence and of the entropy, either", async () => {
  const { report, updates } = await trained("firstThrows", {
    referencePolicy: GradientLogActor.remote(""),
    algorithm: { useKlInReward: true },
    actor: { useKlLoss: true, klLossType: "kl", klLossCoef: 0.5, entropyCoeff: 0.1 },
  });
  const [update] = updates;
  // Of 4 valid rows each: 0.5, since none has another to be compared with, and -0.1.
  const alternating = (value: number): unknown[] =>
    [0, 1, 2, 3].flatMap(() => [0, expect.closeTo(value, 5)]);
  expect(update?.logProbs).toEqual(alternating(0.5 / 4));
  expect(update?.entropys).toEqual(alternating(-0.1 / 4));
  expect(report.metrics[0]?.["actor/kl_loss"]).toBe(0);
});

test("seq-mean-token-sum-norm divides by the longest response there may be, or by what it is told, and not by the longest of the batch", async () => {
  const slopesOf = async (lossScaleFactor?: number): Promise<number[]> => {
    const { updates } = await trained(
      "halves",
      {
        rollout: { maxResponseLength: 8 },
        actor: { lossAggMode: "seq-mean-token-sum-norm", lossScaleFactor, entropyCoeff: 0.1 },
      },
      2,
    );
    const [{ logProbs, entropys } = { logProbs: [], entropys: [] }] = updates;
    return [Math.max(...logProbs), Math.min(...entropys)];
  };
  // Of 8 rows with two tokens each, whose advantages are -+0.5 / 0.7071.
  const expected = (scale: number): unknown[] => [
    expect.closeTo(Math.SQRT1_2 / 8 / scale, 5),
    expect.closeTo(-0.1 / 8 / scale, 6),
  ];
  expect(await slopesOf()).toEqual(expected(8));
  expect(await slopesOf(4)).toEqual(expected(4));
});

test("remax learns nothing from the answers to a prompt whose greedy answer has no score", async () => {
  const { report, updates } = await trained("evenFirstThrows", {
    algorithm: { advEstimator: "remax" },
  });
  // Of 4 rows with both: their second answers are 1 better than the greedy ones, which are as the first.
  const gradient = expect.closeTo(-1 / 4, 5);
  expect(updates[0]?.logProbs.map((one) => one + 0)).toEqual([
    0,
    0,
    0,
    gradient,
    0,
    0,
    0,
    gradient,
  ]);
  expect(report.metrics[0]?.["critic/advantages/max"]).toBeCloseTo(1, 6);
  expect(report.metrics[0]?.["critic/score/mean"]).toBeCloseTo(0.5, 6);
  // The first of two answers to two prompts, and their greedy ones.
  expect(report.metrics[0]?.["reward/invalid_rate"]).toBeCloseTo(4 / 12, 6);
});

test("valid answers that tell different things beside their score are validated, each variable by those that tell it", async () => {
  const { report } = await trained("tellsSome", {
    validationPrompts: dataset(),
    rollout: { maxResponseLength: 1, validation: { n: 2, doSample: true } },
  });
  const { validation } = report;
  // Of both answers to each of the questions that tell it, and of the one answer that does.
  expect(validation?.["val-aux/scripted/half/mean@2"]).toBe(0.25);
  expect(validation?.["val-aux/scripted/first/mean@1"]).toBe(1);
  expect(validation?.["val-core/scripted/reward/mean@2"]).toBe(0.5);
});

test("dapo's penalty is by the tokens of the rollout, not by its text", async () => {
  const reward = {
    reward: { path: rewardsPath, name: "tellsSome" },
    manager: "dapo",
    managerOptions: { maxRespLen: 8, overlongBuffer: { len: 4, penaltyFactor: 2 } },
    workers: 1,
    executors: 1,
  };
  const { report } = await trained("tellsSome", { reward, rollout: { maxResponseLength: 8 } }, 6);
  const [metrics] = report.metrics;
  expect(metrics?.["reward/invalid_rate"]).toBe(0);
  // 2 of the buffer's 4 tokens: half of the factor off each score, which are 0 and 1.
  expect(metrics?.["critic/score/mean"]).toBeCloseTo(0.5 - 1, 6);
  expect(metrics?.["critic/score/min"]).toBeCloseTo(-1, 6);
});

describe("components of gdpo", () => {
  const algorithm = { advEstimator: "gdpo", gdpoRewardKeys: ["score", "half"] };

  test("that a valid sample lacks are named, with the sample", async () => {
    await expect(trained("tellsSome", { algorithm })).rejects.toMatchObject({
      name: "TrainerStateError",
      code: "NO_METRIC",
      message: expect.stringMatching(
        /^algorithm.gdpoRewardKeys is half, but the extra info of sample \S+\/0 has no number/,
      ),
    });
  });

  test("are not asked of samples without a score", async () => {
    const { report } = await trained("firstThrows", { algorithm });
    expect(report.metrics[0]?.["critic/advantages/mean"]).toBeCloseTo(0, 6);
  });
});

test("a score beyond float32 is an invalid one that names its sample: the rest of its update is as without it", async () => {
  const reported: SampleRecord[] = [];
  const tracking = Object.assign(Object.create(silentTracker) as StepTracker, {
    samples: (_step: number, samples: readonly SampleRecord[]) => reported.push(...samples),
  });
  const huge = await trained("firstHuge", { tracking }, 2);
  const thrown = await trained("firstThrows", {}, 2);
  expect(huge.updates).toEqual(thrown.updates);
  const [metrics = {}] = huge.report.metrics;
  expect(metrics["reward/invalid_rate"]).toBe(0.5);
  for (const name of ["critic/score/mean", "critic/advantages/mean", "actor/pg_loss"])
    expect(metrics[name]).toBe(thrown.report.metrics[0]?.[name]);
  const failed = reported.flatMap(({ outcome }) => (outcome.valid ? [] : [outcome.error]));
  expect(failed).toHaveLength(4);
  expect(failed[0]).toMatchObject({
    code: "INVALID_SCORE",
    message: expect.stringMatching(
      /^the score 1e\+39 of sample .+\/0 \(row 0 of the data, data source scripted\) is beyond float32/,
    ) as string,
  });
});
