/**
 * Importance weights: how many times more likely the trained policy is to generate the rollout's
 * token than the policy that generated it (verl `compute_rollout_correction_weights`).
 *
 * Nothing is differentiated through them. A masked NaN stays NaN, as in verl; no metric sees it.
 */

import { TrainerInputError } from "../../errors.ts";
import {
  countOf,
  maskedMean,
  maskedMeanOf,
  maskedRowMeans,
  maskedRowSums,
} from "../masked-sums.ts";
import { clamp, type Matrix, type MatrixView, newMatrix, rowSums } from "../matrix.ts";
import { shareOf, spreadOf, tokenRange } from "../statistics.ts";
import { weightBandOf } from "./thresholds.ts";
import { meanOf } from "../../values/sums.ts";

/** A log ratio beyond this is taken for this: exp of it is still a number to work with. */
export const safetyBound = 20;

export interface WeightSettings {
  readonly rolloutIs: "token" | "sequence";
  readonly rolloutIsThreshold: number | string;
  readonly rolloutIsBatchNormalize: boolean;
}

export interface RolloutWeights {
  readonly weights: Matrix;
  /** Without a prefix. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** @param mask at least one token must count. @throws TrainerInputError */
export function rolloutWeights(
  logRatio: MatrixView,
  mask: MatrixView,
  { rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize }: WeightSettings,
): RolloutWeights {
  if (rolloutIs !== "token" && rolloutIs !== "sequence") {
    throw new TrainerInputError(
      "rolloutIs",
      `there is no rollout_is "${String(rolloutIs)}"; there are token, sequence`,
    );
  }
  const { lower, upper } = weightBandOf(rolloutIsThreshold);
  const sums = maskedRowSums(logRatio, mask);
  const isOfToken = rolloutIs === "token";
  const raw = newMatrix(mask.rows, mask.columns);
  const weights = newMatrix(mask.rows, mask.columns);
  for (let row = 0, at = 0; row < mask.rows; row++) {
    for (const end = at + mask.columns; at < end; at++) {
      const own = (isOfToken ? logRatio.data[at] : sums[row]) ?? NaN;
      const weight = Math.exp(clamp(own, -safetyBound, safetyBound)) * (mask.data[at] ?? NaN);
      raw.data[at] = weight;
      if (lower === null) weights.data[at] = Math.min(weight, upper);
      else if (weight >= lower && weight <= upper) weights.data[at] = weight;
    }
  }
  const bounds = { lower: lower ?? 1 / upper, upper };
  const metrics: Record<string, number> = {
    ...(isOfToken
      ? tokenMetrics(weights, raw, mask, bounds)
      : sequenceMetrics(weights, sums, mask, bounds)),
    ...spreadMetrics(weights, mask, upper),
    ...rowMetrics(weights, raw, mask, bounds),
  };
  if (lower !== null) {
    metrics["rollout_is_oob_ratio"] = shareOf(mask, (at) => {
      const weight = raw.data[at] ?? NaN;
      return weight < lower || weight > upper;
    });
  }
  if (!rolloutIsBatchNormalize) return { weights, metrics };
  const mean = isOfToken ? maskedMean(weights, mask) : meanOfRows(weights, mask);
  const factor = mean > 1e-8 ? mean : 1;
  metrics["rollout_is_batch_norm_factor"] = factor;
  for (let at = 0; at < weights.data.length; at++) {
    weights.data[at] = (weights.data[at] ?? NaN) / factor;
  }
  return { weights, metrics };
}

interface Bounds {
  readonly lower: number;
  readonly upper: number;
}

function tokenMetrics(
  weights: Matrix,
  raw: MatrixView,
  mask: MatrixView,
  { lower, upper }: Bounds,
): Record<string, number> {
  const range = tokenRange(weights, mask);
  return {
    rollout_is_mean: maskedMean(weights, mask),
    rollout_is_ratio_fraction_high: shareOf(mask, (at) => (raw.data[at] ?? NaN) > upper),
    rollout_is_ratio_fraction_low: shareOf(mask, (at) => (raw.data[at] ?? NaN) < lower),
    rollout_is_max: range.max,
    rollout_is_min: range.min,
  };
}

/**
 * Largest and smallest are of what the weights were before they were cut. Rows without tokens
 * count: their ratio is 1.
 */
function sequenceMetrics(
  weights: Matrix,
  sums: Float64Array,
  mask: MatrixView,
  { lower, upper }: Bounds,
): Record<string, number> {
  const { max, min } = spreadOf(sums);
  return {
    rollout_is_mean: maskedMean(weights, mask),
    rollout_is_ratio_fraction_high: meanOf(sums.map((sum) => (sum > Math.log(upper) ? 1 : 0))),
    rollout_is_ratio_fraction_low: meanOf(sums.map((sum) => (sum < Math.log(lower) ? 1 : 0))),
    rollout_is_max: Math.exp(Math.min(max, safetyBound)),
    rollout_is_min: Math.exp(min),
  };
}

/**
 * Returns metrics of the weights as they are applied, before the normalisation.
 *
 * @throws TrainerInputError where all of them are 0
 */
function spreadMetrics(weights: Matrix, mask: MatrixView, upper: number): Record<string, number> {
  const mean = maskedMean(weights, mask);
  const ofSquares = maskedMeanOf(weights, mask, (weight) => weight * weight);
  if (ofSquares === 0) {
    throw new TrainerInputError(
      "rolloutIsThreshold",
      `every importance weight is outside of rolloutIsThreshold (at most ${upper}): nothing is left to learn from`,
    );
  }
  return {
    rollout_is_std: countOf(mask) > 1 ? Math.sqrt(Math.max(0, ofSquares - mean * mean)) : 0,
    rollout_is_eff_sample_size: (mean + 1e-8) ** 2 / ofSquares,
  };
}

function rowMetrics(
  weights: Matrix,
  raw: MatrixView,
  mask: MatrixView,
  { lower, upper }: Bounds,
): Record<string, number> {
  const { mean, std, max, min } = spreadOf(maskedRowMeans(weights, mask));
  const rawMeans = maskedRowMeans(raw, mask);
  return {
    rollout_is_seq_mean: mean,
    rollout_is_seq_std: std,
    rollout_is_seq_max: max,
    rollout_is_seq_min: min,
    rollout_is_seq_max_deviation: Math.max(Math.abs(max - 1), Math.abs(min - 1)),
    rollout_is_seq_fraction_high: meanOf(rawMeans.map((one) => (one > upper ? 1 : 0))),
    rollout_is_seq_fraction_low: meanOf(rawMeans.map((one) => (one < lower ? 1 : 0))),
  };
}

/**
 * Returns the mean over rows of their means, in which each row counts alike and rows without tokens
 * do not count.
 */
function meanOfRows(weights: Matrix, mask: MatrixView): number {
  const lengths = rowSums(mask);
  const used = maskedRowMeans(weights, mask).filter((_, row) => (lengths[row] ?? NaN) > 0);
  return used.length === 0 ? 0 : meanOf(used);
}
