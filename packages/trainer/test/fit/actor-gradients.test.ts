/** What the losses of a mini-batch are divided by: rows and tokens that have a score, whatever a loss, or a correction before it, rejects of them (verl `batch_num_tokens`, `global_batch_size`). */

import { asTensor, DataProto } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { createPolicyLossRegistry } from "@rayling/trainer";
import type { LossAggMode, PolicyLossSettings, RolloutCorrectionSettings } from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { actorGradients } from "../../src/step/actor-gradients.ts";
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
  readonly mask?: readonly (readonly number[])[];
  readonly valid?: readonly boolean[];
  readonly lossMode?: string;
  readonly settings?: PolicyLossSettings;
  readonly entropyCoeff?: number;
}

function gradientsOf({
  mask = all,
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
      response_mask: matrix(mask),
    },
    nonTensorBatch: { valid: [...valid] },
  });
  const metrics = new CollectedMetrics();
  const { gradLogProbs, gradEntropys } = actorGradients(
    part,
    { logProbs: matrix(now), entropys: matrix(old) },
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

describe("what was rejected before is a row all the same, where rows are counted", () => {
  const mask = [...all.slice(0, 2), [0, 0], [0, 0]];

  test.each(["seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"] as const)(
    "%s",
    (lossAggMode) => {
      const whole = gradientsOf({ settings: { lossAggMode } }).slopes;
      const rejected = gradientsOf({ mask, settings: { lossAggMode } }).slopes;
      expect(rejected.slice(0, 2)).toEqual(whole.slice(0, 2));
      expect(whole[0]?.[0]).not.toBe(0);
    },
  );

  test("token-mean: of the tokens that are left", () => {
    const [[slope = 0] = []] = gradientsOf({ mask }).slopes;
    const [[ofAll = 0] = []] = gradientsOf({}).slopes;
    // Three of seven.
    expect(slope / ofAll).toBeCloseTo(7 / 3, 5);
  });
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
