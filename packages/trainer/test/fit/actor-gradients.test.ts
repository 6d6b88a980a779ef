/** What the losses of a mini-batch are divided by: rows and tokens that have a score, whatever a loss, or a correction before it, rejects of them (verl `batch_num_tokens`, `global_batch_size`). */

import { asTensor, DataProto } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { createAdvantageRegistry, createPolicyLossRegistry } from "@rayling/trainer";
import type {
  LossAggMode,
  PolicyHandle,
  PolicyLossSettings,
  RolloutCorrectionSettings,
  TrainingSettings,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { actorGradients } from "../../src/step/actor-gradients.ts";
import type { ScoredSample } from "../../src/samples/rollout-batch.ts";
import { Learner } from "../../src/step/learner.ts";
import { CollectedMetrics } from "../../src/record/collected-metrics.ts";

const columns = 2;

function matrix(rows: readonly (readonly number[])[]): Tensor<"float32"> {
  return asTensor(Float32Array.from(rows.flat()), [rows.length, columns]);
}

const advantages = [
  [1, 1],
  [-1, -1],
  [0.5, 0.5],
  [2, 2],
];
const old = advantages.map(() => [-1, -1]);
const all = [
  [1, 1],
  [1, 0],
  [1, 1],
  [1, 1],
];
/** The policy has gone far from the rollouts of the last two. */
const now = [
  [-1.05, -0.95],
  [-0.9, -1],
  [-4, -4],
  [-5, -3],
];

interface Given {
  /** Left by a correction; the rollouts' own is `all`. */
  readonly mask?: readonly (readonly number[])[];
  readonly logProbs?: readonly (readonly number[])[];
  readonly valid?: readonly boolean[];
  readonly lossMode?: string;
  readonly settings?: PolicyLossSettings;
  readonly entropyCoeff?: number;
}

function gradientsOf({
  mask = all,
  logProbs = now,
  valid = [true, true, true, true],
  lossMode = "vanilla",
  settings = {},
  entropyCoeff = 0,
}: Given): {
  readonly slopes: number[][];
  readonly entropySlopes: number[];
  readonly loss: number;
} {
  const part = new DataProto({
    batch: {
      old_log_probs: matrix(old),
      advantages: matrix(advantages),
      loss_mask: matrix(all),
      response_mask: matrix(mask),
    },
    nonTensorBatch: { valid: [...valid] },
  });
  const metrics = new CollectedMetrics();
  const { gradLogProbs, gradEntropys } = actorGradients(
    part,
    { logProbs: matrix(logProbs), entropys: matrix(old) },
    {
      actor: {
        ...settings,
        entropyCoeff,
        useKlLoss: false,
        klLossCoef: 0,
        klLossType: "kl",
      },
      policyLoss: createPolicyLossRegistry().get(lossMode),
      permutation: (count) => Array.from({ length: count }, (_, at) => at),
    },
    metrics,
  );
  const { data } = gradLogProbs;
  return {
    slopes: advantages.map((_, row) =>
      Array.from(data.subarray(row * columns, (row + 1) * columns)),
    ),
    entropySlopes: [...(gradEntropys?.data ?? [])],
    loss: metrics.reduced()["actor/pg_loss"] as number,
  };
}

const modes: readonly LossAggMode[] = [
  "token-mean",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
  "seq-mean-token-mean",
];
const bypass = (rolloutRsThreshold?: string): RolloutCorrectionSettings => ({
  bypassMode: true,
  lossType: "reinforce",
  ...(rolloutRsThreshold === undefined ? {} : { rolloutRs: "seq_mean_k1", rolloutRsThreshold }),
});

describe("what the bypass rejects has no gradient, and the others keep theirs", () => {
  test.each(modes)("%s", (lossAggMode) => {
    const of = (threshold?: string): number[][] =>
      gradientsOf({
        lossMode: "bypass_mode",
        settings: { lossAggMode, rolloutCorrection: bypass(threshold) },
      }).slopes;
    const [whole, rejecting] = [of(), of("0.5_2")];
    expect(rejecting.slice(0, 2)).toEqual(whole.slice(0, 2));
    expect(
      rejecting
        .flat()
        .slice(0, 2)
        .every((one) => one !== 0),
    ).toBe(true);
    expect(rejecting.slice(2)).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  test("all of it: the loss is 0", () => {
    const settings = { rolloutCorrection: bypass("2_3") };
    const { slopes, loss } = gradientsOf({ lossMode: "bypass_mode", settings });
    expect(slopes.flat()).toEqual(slopes.flat().map(() => 0));
    expect(loss).toBe(0);
  });
});

describe("a correction that rejected before the loss does not raise the others' weight", () => {
  const mask = [...all.slice(0, 2), [0, 0], [0, 0]];

  test.each(modes)("%s", (lossAggMode) => {
    const given = { settings: { lossAggMode }, entropyCoeff: 1 };
    const whole = gradientsOf(given);
    const rejected = gradientsOf({ ...given, mask });
    expect(rejected.slopes.slice(0, 2)).toEqual(whole.slopes.slice(0, 2));
    expect(rejected.entropySlopes.slice(0, 4)).toEqual(whole.entropySlopes.slice(0, 4));
    expect(whole.slopes[0]?.[0]).not.toBe(0);
    expect(rejected.slopes.slice(2).flat()).toEqual([0, 0, 0, 0]);
  });

  // Verl's worker counts loss_mask, which is the rollout's response_mask, and three of these seven
  // tokens are left in response_mask (verl 0.9.1: loss -1/7, slopes -1/7, -1/7, 1/7).
  test("token-mean divides by the tokens of the rollouts", () => {
    const nowAsOld = { mask, logProbs: old };
    const { loss, slopes } = gradientsOf(nowAsOld);
    expect(loss).toBeCloseTo(-1 / 7, 6);
    expect(slopes.flat().slice(0, 3)).toEqual(
      [-1 / 7, -1 / 7, 1 / 7].map((one) => expect.closeTo(one, 6)),
    );
  });
});

test("a rollout correction leaves loss_mask, by which losses are divided, as the rollouts have it", () => {
  const algorithm = {
    advEstimator: "grpo",
    klCtrl: { klCoef: 0 },
    rolloutCorrection: { rolloutRs: "seq_mean_k1", rolloutRsThreshold: "0.5_2" },
  };
  const settings = { algorithm, run: { seed: 1 } } as unknown as TrainingSettings;
  const learner = new Learner({} as PolicyHandle, undefined, settings, {
    advantages: createAdvantageRegistry(),
    policyLoss: createPolicyLossRegistry().get("vanilla"),
  });
  const data = new DataProto({
    batch: {
      old_log_probs: matrix(old),
      rollout_log_probs: matrix(now),
      response_mask: matrix(all),
    },
  });
  const samples = ["a", "a", "b", "b"].map((uid) => ({ sample: { uid } }) as ScoredSample);
  const rows = { data, scores: matrix(all), valid: samples.map(() => true), samples };
  const { batch } = learner.advantagesOf(rows, 1, new CollectedMetrics()).drawn;
  expect([...(batch?.["response_mask"]?.data ?? [])]).toEqual([1, 1, 1, 0, 0, 0, 0, 0]);
  expect([...(batch?.["loss_mask"]?.data ?? [])]).toEqual(all.flat());
});

test.each(modes)("rows without a valid score are no rows: %s", (lossAggMode) => {
  const settings = { lossAggMode };
  const valid = [true, true, false, false];
  const { slopes, entropySlopes } = gradientsOf({ valid, settings, entropyCoeff: 1 });
  expect(slopes.slice(2).flat()).toEqual([0, 0, 0, 0]);
  const rows = valid.filter(Boolean).length;
  const first = { "token-mean": 3, "seq-mean-token-sum": rows }[lossAggMode as string] ?? rows * 2;
  expect(entropySlopes[0]).toBeCloseTo(-1 / first, 6);
});
