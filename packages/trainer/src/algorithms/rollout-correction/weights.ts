/**
 * Importance weights: how many times more likely the trained policy is to generate the rollout's
 * token than the policy that generated it (verl `compute_rollout_correction_weights`).
 *
 * Nothing is differentiated through them. A masked NaN stays NaN, as in verl; no metric sees it.
 */

import { TrainerInputError } from "../../errors.ts";
import { divisorOf } from "../masked-sums.ts";
import { clamp, type Matrix, newMatrix, newRoom, unboxed } from "../matrix.ts";
import { spreadOf } from "../statistics.ts";
import { eachRatioRow, type RatioBatch, type RatioRow, safetyBound } from "./ratio-rows.ts";
import { checkTokens } from "./rejection.ts";
import { weightBandOf } from "./thresholds.ts";
import { meanOf } from "../../values/sums.ts";

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

/** @param batch at least one of its tokens must count. @throws TrainerInputError */
export function rolloutWeights(batch: RatioBatch, settings: WeightSettings): RolloutWeights {
  checkTokens(batch.mask);
  const weights = newMatrix(batch.mask.rows, batch.mask.columns);
  const collector = newWeightCollector(batch, settings, weights);
  eachRatioRow(batch, collector.add);
  return { weights, metrics: collector.metrics() };
}

/** Looks at rows that are shown to it one after the other. */
export interface WeightCollector {
  readonly add: (row: RatioRow) => void;
  /** Finishes the weights, too. */
  readonly metrics: () => Readonly<Record<string, number>>;
}

interface WeightSums {
  readonly bounds: Bounds;
  /** Whether weights outside of the bounds are 0; else those above are the upper bound. */
  readonly isBand: boolean;
  readonly isOfToken: boolean;
  count: number;
  sum: number;
  squares: number;
  /** Tokens above the upper bound, and below the lower one, before the cut. */
  high: number;
  low: number;
  max: number;
  min: number;
  /** For each row: sums of log ratios, means of the weights after and before the cut, tokens. */
  readonly logRatios: Float64Array;
  readonly means: Float64Array;
  readonly rawMeans: Float64Array;
  readonly counts: Float64Array;
}

interface Bounds {
  readonly lower: number;
  readonly upper: number;
}

/**
 * @param into where the weights go, if somebody wants them
 * @throws TrainerInputError
 */
export function newWeightCollector(
  batch: RatioBatch,
  { rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize }: WeightSettings,
  into: Matrix | undefined,
): WeightCollector {
  if (rolloutIs !== "token" && rolloutIs !== "sequence") {
    throw new TrainerInputError(
      "rolloutIs",
      `there is no rollout_is "${String(rolloutIs)}"; there are token, sequence`,
    );
  }
  const { lower, upper } = weightBandOf(rolloutIsThreshold);
  const { rows, columns } = batch.mask;
  const numbers = (): Float64Array => new Float64Array(rows);
  const sums: WeightSums = {
    bounds: { lower: lower ?? 1 / upper, upper },
    isBand: lower !== null,
    isOfToken: rolloutIs === "token",
    count: 0,
    sum: 0,
    squares: 0,
    high: 0,
    low: 0,
    max: -Infinity,
    min: Infinity,
    logRatios: numbers(),
    means: numbers(),
    rawMeans: numbers(),
    counts: numbers(),
  };
  const ofSequence = newRoom(columns);
  return {
    add(row) {
      sums.logRatios[row.row] = row.logRatioSum;
      sums.counts[row.row] = row.count;
      if (sums.isOfToken) return addWeights(sums, row, row.ratios, into);
      const ratio = Math.exp(clamp(row.logRatioSum, -safetyBound, safetyBound));
      addWeights(sums, row, ofSequence.fill(ratio, 0, row.length), into);
    },
    metrics() {
      const metrics = metricsOf(sums);
      if (into !== undefined && !sums.isBand) spoil(into, batch, sums);
      if (!rolloutIsBatchNormalize) return metrics;
      const mean = sums.isOfToken ? sums.sum / divisorOf(sums.count) : meanOfRows(sums);
      const factor = mean > 1e-8 ? mean : 1;
      const { data } = into ?? newMatrix(0, 0);
      for (let at = 0; at < data.length; at++) data[at] = (data[at] ?? NaN) / factor;
      return { ...metrics, rollout_is_batch_norm_factor: factor };
    },
  };
}

function addWeights(
  sums: WeightSums,
  { row, length, count, places, mask }: RatioRow,
  ratios: Float64Array,
  into: Matrix | undefined,
): void {
  const lower = unboxed(sums.bounds.lower);
  const upper = unboxed(sums.bounds.upper);
  const { isBand } = sums;
  let { squares, high, low, max, min } = sums;
  let sum = 0;
  let rawSum = 0;
  for (let index = 0; index < length; index++) {
    const counted = mask[index] ?? NaN;
    const raw = (ratios[index] ?? NaN) * counted;
    if (raw > upper) high += counted;
    if (raw < lower) low += counted;
    const inBand = raw >= lower && raw <= upper ? raw : 0;
    const weight = isBand ? inBand : Math.min(raw, upper);
    if (into !== undefined) into.data[places[index] ?? 0] = weight;
    rawSum += raw * counted;
    sum += weight * counted;
    squares += weight * weight * counted;
    max = Math.max(max, weight);
    min = Math.min(min, weight);
  }
  sums.means[row] = sum / divisorOf(count);
  sums.rawMeans[row] = rawSum / divisorOf(count);
  sums.count += count;
  sums.sum += sum;
  sums.squares = squares;
  sums.high = high;
  sums.low = low;
  sums.max = max;
  sums.min = min;
}

/** A masked token whose weight would be NaN has it. */
function spoil(weights: Matrix, { logProb, rolloutLogProb, mask }: RatioBatch, sums: WeightSums) {
  for (let at = 0; at < weights.data.length; at++) {
    if (mask.data[at] !== 0) continue;
    const own = sums.isOfToken
      ? (logProb.data[at] ?? NaN) - (rolloutLogProb.data[at] ?? NaN)
      : (sums.logRatios[Math.floor(at / mask.columns)] ?? NaN);
    if (Number.isNaN(own)) weights.data[at] = NaN;
  }
}

/**
 * Returns metrics of the weights as they are applied, before the normalisation. verl divides by 0
 * where all of them are 0, and so ends a training whose rollouts are all out of the band for once;
 * here they have no effective sample size.
 */
function metricsOf(sums: WeightSums): Record<string, number> {
  const { isBand, isOfToken, count, high, low } = sums;
  const mean = sums.sum / divisorOf(count);
  const ofSquares = sums.squares / divisorOf(count);
  return {
    rollout_is_mean: mean,
    ...(isOfToken ? tokenMetrics(sums) : sequenceMetrics(sums)),
    rollout_is_std: count > 1 ? Math.sqrt(Math.max(0, ofSquares - mean * mean)) : 0,
    ...(ofSquares === 0 ? {} : { rollout_is_eff_sample_size: (mean + 1e-8) ** 2 / ofSquares }),
    ...rowMetrics(sums),
    ...(isBand ? { rollout_is_oob_ratio: (high + low) / divisorOf(count) } : {}),
  };
}

function tokenMetrics({ count, high, low, max, min }: WeightSums): Record<string, number> {
  return {
    rollout_is_ratio_fraction_high: high / divisorOf(count),
    rollout_is_ratio_fraction_low: low / divisorOf(count),
    rollout_is_max: max,
    rollout_is_min: min,
  };
}

/**
 * Largest and smallest are of what the weights were before they were cut. Rows without tokens
 * count: their ratio is 1.
 */
function sequenceMetrics({ bounds, logRatios }: WeightSums): Record<string, number> {
  const { max, min } = spreadOf(logRatios);
  return {
    rollout_is_ratio_fraction_high: shareOfRows(logRatios, (sum) => sum > Math.log(bounds.upper)),
    rollout_is_ratio_fraction_low: shareOfRows(logRatios, (sum) => sum < Math.log(bounds.lower)),
    rollout_is_max: Math.exp(Math.min(max, safetyBound)),
    rollout_is_min: Math.exp(min),
  };
}

function rowMetrics({ bounds, means, rawMeans }: WeightSums): Record<string, number> {
  const { mean, std, max, min } = spreadOf(means);
  return {
    rollout_is_seq_mean: mean,
    rollout_is_seq_std: std,
    rollout_is_seq_max: max,
    rollout_is_seq_min: min,
    rollout_is_seq_max_deviation: Math.max(Math.abs(max - 1), Math.abs(min - 1)),
    rollout_is_seq_fraction_high: shareOfRows(rawMeans, (one) => one > bounds.upper),
    rollout_is_seq_fraction_low: shareOfRows(rawMeans, (one) => one < bounds.lower),
  };
}

function shareOfRows(values: Float64Array, holds: (value: number) => boolean): number {
  return meanOf(values.map((one) => (holds(one) ? 1 : 0)));
}

/**
 * Returns the mean over rows of their means, in which each row counts alike and rows without tokens
 * do not count.
 */
function meanOfRows({ means, counts }: WeightSums): number {
  const used = means.filter((_, row) => (counts[row] ?? NaN) > 0);
  return used.length === 0 ? 0 : meanOf(used);
}
