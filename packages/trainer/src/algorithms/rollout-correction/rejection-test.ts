/**
 * One test of a rejection: its statistic, which tokens of a row pass, and verl's metrics of it.
 * With r the ratio of the trained policy's probability to the rollout's: k1 is -log r, k2 is (log
 * r)^2 / 2, k3 is r - 1 - log r.
 */

import { divisorOf } from "../masked-sums.ts";
import { clamp, newRoom, unboxed } from "../matrix.ts";
import { spreadOf } from "../statistics.ts";
import type { RatioRow } from "./ratio-rows.ts";
import type { Band } from "./thresholds.ts";
import { meanOf } from "../../values/sums.ts";

export const rejectionOptions = [
  "token_k1",
  "token_k2",
  "token_k3",
  "seq_sum_k1",
  "seq_sum_k2",
  "seq_sum_k3",
  "seq_mean_k1",
  "seq_mean_k2",
  "seq_mean_k3",
  "seq_max_k2",
  "seq_max_k3",
] as const;
export type RejectionOption = (typeof rejectionOptions)[number];

/** Looks at rows that are shown to it one after the other. */
export interface RejectionTest {
  /** Clears `passed` of the tokens that do not pass. Returns whether there are some. */
  readonly add: (row: RatioRow, passed: Uint8Array) => boolean;
  /** Without a prefix. */
  readonly metrics: () => Record<string, number>;
}

interface TokenSums {
  readonly band: Band;
  count: number;
  sum: number;
  max: number;
  min: number;
  /** Tokens above the upper bound, and below the lower one. */
  above: number;
  below: number;
  /** Tokens that do not pass, and rows that have some. */
  failed: number;
  losingRows: number;
  /** Sums of what is within the bounds; what is not counts as the bound. */
  inBand: number;
  squaresInBand: number;
}

/**
 * @param band as logarithms where the statistic is k1
 * @param columns the length of a row
 */
export function newRejectionTest(
  option: RejectionOption,
  band: Band,
  columns: number,
): RejectionTest {
  const values = newRoom(columns);
  const ofRows: number[] = [];
  const isOfRows = !option.startsWith("token");
  const sums: TokenSums = {
    band,
    count: 0,
    sum: 0,
    max: -Infinity,
    min: Infinity,
    above: 0,
    below: 0,
    failed: 0,
    losingRows: 0,
    inBand: 0,
    squaresInBand: 0,
  };
  return {
    add(row, passed) {
      estimatesInto(values, option, row);
      const ofRow = rowStatistic(values, option, row);
      if (row.count > 0) ofRows.push(ofRow);
      if (isOfRows) values.fill(ofRow, 0, row.length);
      return addTokens(sums, values, row, passed);
    },
    metrics: () => metricsOf(`rollout_rs_${option}`, sums, Float64Array.from(ofRows), isOfRows),
  };
}

/** Fills in the estimate of each token of the row. */
function estimatesInto(values: Float64Array, option: RejectionOption, row: RatioRow): void {
  if (option.endsWith("k1")) firstInto(values, row);
  else if (option.endsWith("k2")) secondInto(values, row);
  else thirdInto(values, row);
}

function firstInto(values: Float64Array, { length, bounded }: RatioRow): void {
  for (let index = 0; index < length; index++) values[index] = -(bounded[index] ?? NaN);
}

function secondInto(values: Float64Array, { length, bounded }: RatioRow): void {
  for (let index = 0; index < length; index++) {
    const logRatio = bounded[index] ?? NaN;
    values[index] = 0.5 * logRatio * logRatio;
  }
}

function thirdInto(values: Float64Array, { length, bounded, ratios }: RatioRow): void {
  for (let index = 0; index < length; index++) {
    values[index] = (ratios[index] ?? NaN) - 1 - (bounded[index] ?? NaN);
  }
}

/** Returns the statistic of a row; of its tokens, the mean. 0 for a row without tokens. */
function rowStatistic(
  values: Float64Array,
  option: RejectionOption,
  { length, count, mask }: RatioRow,
): number {
  if (length === 0) return 0;
  if (option.startsWith("seq_max")) return mostOf(values, length);
  let sum = 0;
  for (let index = 0; index < length; index++) {
    sum += (values[index] ?? NaN) * (mask[index] ?? NaN);
  }
  return option.startsWith("seq_sum") ? sum : sum / divisorOf(count);
}

function mostOf(values: Float64Array, length: number): number {
  let most = -Infinity;
  for (let index = 0; index < length; index++) most = Math.max(most, values[index] ?? NaN);
  return most;
}

function addTokens(
  sums: TokenSums,
  values: Float64Array,
  { length, count, mask }: RatioRow,
  passed: Uint8Array,
): boolean {
  const upper = unboxed(sums.band.upper);
  const lower = unboxed(sums.band.lower ?? -Infinity);
  const least = unboxed(sums.band.lower ?? 0);
  let { sum, max, min, above, below, failed, inBand, squaresInBand } = sums;
  let losing = 0;
  for (let index = 0; index < length; index++) {
    const value = values[index] ?? NaN;
    const counted = mask[index] ?? NaN;
    sum += value * counted;
    max = Math.max(max, value);
    min = Math.min(min, value);
    const kept = value >= least && value <= upper ? value : clamp(value, least, upper);
    inBand += kept * counted;
    squaresInBand += kept * kept * counted;
    if (value >= lower && value <= upper) continue;
    if (value > upper) above += counted;
    if (value < lower) below += counted;
    failed += counted;
    passed[index] = 0;
    losing = 1;
  }
  sums.count += count;
  sums.losingRows += losing;
  sums.sum = sum;
  sums.max = max;
  sums.min = min;
  sums.above = above;
  sums.below = below;
  sums.failed = failed;
  sums.inBand = inBand;
  sums.squaresInBand = squaresInBand;
  return losing > 0;
}

function metricsOf(
  prefix: string,
  sums: TokenSums,
  ofRows: Float64Array,
  isOfRows: boolean,
): Record<string, number> {
  const { lower, upper } = sums.band;
  const divisor = divisorOf(sums.count);
  const ofRow = spreadOf(ofRows);
  const range = isOfRows ? ofRow : sums;
  const rowsAbove = meanOf(ofRows.map((one) => (one > upper ? 1 : 0)));
  const rowsBelow = lower === null ? 0 : meanOf(ofRows.map((one) => (one < lower ? 1 : 0)));
  const mean = sums.inBand / divisor;
  const variance = Math.max(0, sums.squaresInBand / divisor - mean * mean);
  return {
    [`${prefix}_mean`]: sums.sum / divisor,
    [`${prefix}_max`]: range.max,
    [`${prefix}_min`]: range.min,
    [`${prefix}_fraction_high`]: isOfRows ? rowsAbove : sums.above / divisor,
    [`${prefix}_fraction_low`]: isOfRows ? rowsBelow : sums.below / divisor,
    [`${prefix}_std`]: sums.count <= 1 ? 0 : Math.sqrt(variance),
    [`${prefix}_seq_mean`]: ofRow.mean,
    [`${prefix}_seq_std`]: ofRow.std,
    [`${prefix}_seq_max`]: ofRow.max,
    [`${prefix}_seq_min`]: ofRow.min,
    [`${prefix}_seq_max_deviation`]: Math.max(Math.abs(ofRow.max), Math.abs(ofRow.min)),
    [`${prefix}_seq_fraction_high`]: rowsAbove,
    ...(lower === null ? {} : { [`${prefix}_seq_fraction_low`]: rowsBelow }),
    [`${prefix}_masked_fraction`]: sums.failed / divisor,
    [`${prefix}_seq_masked_fraction`]: sums.losingRows / ofRows.length,
  };
}
