/**
 * Rejection of tokens and rows that are too far from the rollout to learn from (verl
 * `compute_rollout_rejection_mask`).
 *
 * With r the ratio of the trained policy's probability to the rollout's: k1 is -log r, k2 is (log
 * r)^2 / 2, k3 is r - 1 - log r. Bounds of k1 are bounds of the ratio and are compared as
 * logarithms, with the sign of k1: "0.5_2.0" passes tokens whose -log r is from log 0.5 to log 2.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import {
  countOf,
  maskedMean,
  maskedMeanOf,
  maskedRowMeans,
  maskedRowSums,
} from "../masked-sums.ts";
import { clamp, filled, type Matrix, type MatrixView, newMatrix, rowSums } from "../matrix.ts";
import { shareOf, spreadOf, tokenRange } from "../statistics.ts";
import { type Band, rejectionBandsOf } from "./thresholds.ts";
import { safetyBound } from "./weights.ts";
import { meanOf } from "../../values/sums.ts";

const options = [
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
type Option = (typeof options)[number];

export interface Rejection {
  readonly mask: MatrixView;
  /** Without a prefix. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * @throws TrainerInputError for an unknown option, for bounds that do not fit, and where no token
 * counts
 */
export function rejectRollouts(
  logRatio: MatrixView,
  mask: MatrixView,
  rolloutRs: string,
  rolloutRsThreshold: unknown,
): Rejection {
  if (mask.rows === 0) return { mask, metrics: {} };
  const wanted = optionsOf(rolloutRs);
  const bands = rejectionBandsOf(wanted, rolloutRsThreshold);
  checkTokens(mask);
  const passed = new Uint8Array(mask.data.length).fill(1);
  const metrics: Record<string, number> = {};
  for (const [index, option] of wanted.entries()) {
    const band = boundsOf(present(bands[index], `the bound of ${option}`));
    const statistic = statisticOf(option, logRatio, mask);
    const lower = band.lower ?? -Infinity;
    const passes = (at: number): boolean => {
      const value = statistic.ofTokens.data[at] ?? NaN;
      return value >= lower && value <= band.upper;
    };
    for (let at = 0; at < passed.length; at++) if (!passes(at)) passed[at] = 0;
    const prefix = `rollout_rs_${option}`;
    Object.assign(
      metrics,
      statisticMetrics(prefix, statistic, mask, band),
      maskedFractions(prefix, mask, passes),
    );
  }
  const passesAll = (at: number): boolean => passed[at] === 1;
  Object.assign(metrics, maskedFractions("rollout_rs", mask, passesAll, mask.rows));
  const kept = filled(mask, (_row, _column, at) => (passesAll(at) ? (mask.data[at] ?? NaN) : 0));
  return { mask: kept, metrics };
}

/** @throws TrainerInputError */
export function checkTokens(mask: MatrixView): void {
  if (mask.data.some((weight) => weight !== 0)) return;
  throw new TrainerInputError("responseMask", "at least one token of responseMask must count");
}

function isOption(name: string): name is Option {
  return options.some((option) => option === name);
}

function optionsOf(rolloutRs: string): readonly Option[] {
  const wanted = [
    ...new Set(
      rolloutRs
        .split(",")
        .map((one) => one.trim())
        .filter((one) => one !== ""),
    ),
  ];
  const known = wanted.filter(isOption);
  const unknown = wanted.find((one) => !isOption(one));
  if (unknown === undefined && known.length > 0) return known;
  throw new TrainerInputError(
    "rolloutRs",
    `there is no rollout_rs "${unknown ?? rolloutRs}"; there are ${options.join(", ")}`,
  );
}

/** Returns bounds of k1 as logarithms, and other bounds as they are. */
function boundsOf({ lower, upper }: Band): Band {
  return lower === null ? { lower, upper } : { lower: Math.log(lower), upper: Math.log(upper) };
}

interface Statistic {
  /** Statistic at each token; a statistic of rows stands at each token of its row. */
  readonly ofTokens: Matrix;
  /** Statistic of each row; for a statistic of tokens, its mean. */
  readonly ofRows: Float64Array;
  readonly isOfRows: boolean;
}

const estimates: Readonly<Record<string, (logRatio: number) => number>> = {
  k1: (logRatio) => -logRatio,
  k2: (logRatio) => 0.5 * logRatio * logRatio,
  k3: (logRatio) => Math.exp(logRatio) - 1 - logRatio,
};

function statisticOf(option: Option, logRatio: MatrixView, mask: MatrixView): Statistic {
  const tokens = newMatrix(mask.rows, mask.columns);
  const estimate = present(estimates[option.slice(-2)], option);
  for (let at = 0; at < tokens.data.length; at++) {
    tokens.data[at] = estimate(clamp(logRatio.data[at] ?? NaN, -safetyBound, safetyBound));
  }
  if (option.startsWith("token")) {
    return { ofTokens: tokens, ofRows: maskedRowMeans(tokens, mask), isOfRows: false };
  }
  const ofRows = option.startsWith("seq_sum")
    ? maskedRowSums(tokens, mask)
    : option.startsWith("seq_mean")
      ? maskedRowMeans(tokens, mask)
      : maskedRowMaxima(tokens, mask);
  return { ofTokens: filled(mask, (row) => ofRows[row] ?? NaN), ofRows, isOfRows: true };
}

/** Returns 0 for a row without tokens. */
function maskedRowMaxima(values: MatrixView, mask: MatrixView): Float64Array {
  return Float64Array.from({ length: mask.rows }, (_, row) => {
    let most = -Infinity;
    for (let at = row * mask.columns; at < (row + 1) * mask.columns; at++) {
      if (mask.data[at] !== 0) most = Math.max(most, values.data[at] ?? NaN);
    }
    return most === -Infinity ? 0 : most;
  });
}

function statisticMetrics(
  prefix: string,
  { ofTokens, ofRows, isOfRows }: Statistic,
  mask: MatrixView,
  { lower, upper }: Band,
): Record<string, number> {
  const lengths = rowSums(mask);
  const rows = ofRows.filter((_, row) => (lengths[row] ?? NaN) > 0);
  const ofRow = spreadOf(rows);
  const range = isOfRows ? ofRow : tokenRange(ofTokens, mask);
  const rowsAbove = meanOf(rows.map((one) => (one > upper ? 1 : 0)));
  const rowsBelow = lower === null ? 0 : meanOf(rows.map((one) => (one < lower ? 1 : 0)));
  const above = shareOf(mask, (at) => (ofTokens.data[at] ?? NaN) > upper);
  const below = lower === null ? 0 : shareOf(mask, (at) => (ofTokens.data[at] ?? NaN) < lower);
  return {
    [`${prefix}_mean`]: maskedMean(ofTokens, mask),
    [`${prefix}_max`]: range.max,
    [`${prefix}_min`]: range.min,
    [`${prefix}_fraction_high`]: isOfRows ? rowsAbove : above,
    [`${prefix}_fraction_low`]: isOfRows ? rowsBelow : below,
    [`${prefix}_std`]: clampedStd(ofTokens, mask, lower ?? 0, upper),
    [`${prefix}_seq_mean`]: ofRow.mean,
    [`${prefix}_seq_std`]: ofRow.std,
    [`${prefix}_seq_max`]: ofRow.max,
    [`${prefix}_seq_min`]: ofRow.min,
    [`${prefix}_seq_max_deviation`]: Math.max(Math.abs(ofRow.max), Math.abs(ofRow.min)),
    [`${prefix}_seq_fraction_high`]: rowsAbove,
    ...(lower === null ? {} : { [`${prefix}_seq_fraction_low`]: rowsBelow }),
  };
}

/** Over tokens, of what is within the bounds; what is not counts as the bound. */
function clampedStd(values: MatrixView, mask: MatrixView, lower: number, upper: number): number {
  if (countOf(mask) <= 1) return 0;
  const mean = maskedMeanOf(values, mask, (one) => clamp(one, lower, upper));
  const ofSquares = maskedMeanOf(values, mask, (one) => clamp(one, lower, upper) ** 2);
  return Math.sqrt(Math.max(0, ofSquares - mean * mean));
}

/**
 * Returns the share of tokens that do not pass, and of rows that lose at least one.
 *
 * @param rows divisor of the rows' share. Default: number of rows with tokens
 */
function maskedFractions(
  prefix: string,
  mask: MatrixView,
  passes: (at: number) => boolean,
  rows: number = rowSums(mask).filter((length) => length > 0).length,
): Record<string, number> {
  let losing = 0;
  for (let row = 0; row < mask.rows; row++) {
    let loses = false;
    for (let at = row * mask.columns; at < (row + 1) * mask.columns; at++) {
      if (mask.data[at] !== 0 && !passes(at)) loses = true;
    }
    if (loses) losing += 1;
  }
  return {
    [`${prefix}_masked_fraction`]: shareOf(mask, (at) => !passes(at)),
    [`${prefix}_seq_masked_fraction`]: losing / rows,
  };
}
