/**
 * Sums, means and spreads over the tokens that count (verl/utils/torch_functional.py). Masked
 * values do no harm, NaN included.
 */

import { TrainerInputError } from "../errors.ts";
import {
  type Matrix,
  type MatrixView,
  newMatrix,
  type RowSource,
  rowSums,
  sourceOf,
  unboxed,
} from "./matrix.ts";
import { runsOf, type TokenRuns } from "./runs.ts";

export function maskedSum(values: MatrixView, mask: MatrixView): number {
  return maskedSumOf(sourceOf(values), mask);
}

function maskedSumOf(values: RowSource, mask: MatrixView): number {
  let sum = 0;
  for (let row = 0; row < mask.rows; row++) sum = addRow(sum, values, mask, row);
  return sum;
}

/** A function of its own: V8 optimises one that is called often better than a long loop. */
function addRow(before: number, values: RowSource, mask: MatrixView, row: number): number {
  const { data } = values;
  const start = values.startOf(row);
  const from = row * mask.columns;
  let sum = before;
  for (let column = 0; column < mask.columns; column++) {
    const weight = mask.data[from + column] ?? NaN;
    if (weight !== 0) sum += (data[start + column] ?? NaN) * weight;
  }
  return sum;
}

export function countOf({ data }: MatrixView): number {
  return sumOver(data, 0, data.length);
}

/** Returns the sum of the numbers from a place to before another one. */
export function sumOver(data: MatrixView["data"], from: number, to: number): number {
  const whole = to - ((to - from) % 4);
  // A processor adds four sums at once, but one only as fast as each addition takes.
  let [first, second, third, fourth] = [0, 0, 0, 0];
  for (let at = from; at < whole; at += 4) {
    first += data[at] ?? NaN;
    second += data[at + 1] ?? NaN;
    third += data[at + 2] ?? NaN;
    fourth += data[at + 3] ?? NaN;
  }
  for (let at = whole; at < to; at++) first += data[at] ?? NaN;
  return first + second + (third + fourth);
}

/**
 * Returns the divisor of a sum over so many tokens. verl adds 1e-8, so that the mean of no token is
 * 0. Its float32 does not see that beside one token, and neither may float64 here.
 */
export function divisorOf(count: number): number {
  return count === 0 ? 1e-8 : count;
}

/** Returns 0 where no token counts. */
export function maskedMean(values: MatrixView, mask: MatrixView): number {
  return maskedSum(values, mask) / divisorOf(countOf(mask));
}

/** Returns the sum of each row over its tokens that count. */
export function maskedRowSums(values: MatrixView, mask: MatrixView): Float64Array {
  const sums = new Float64Array(mask.rows);
  const source = sourceOf(values);
  for (let row = 0; row < mask.rows; row++) sums[row] = addRow(0, source, mask, row);
  return sums;
}

/** Returns the mean of each row over its tokens that count; 0 for a row without such tokens. */
export function maskedRowMeans(values: MatrixView, mask: MatrixView): Float64Array {
  const lengths = rowSums(mask);
  return maskedRowSums(values, mask).map((sum, row) => sum / divisorOf(lengths[row] ?? NaN));
}

/**
 * Returns the variance over the tokens that count, divided by n - 1, or by n if `unbiased` is
 * false.
 *
 * @throws TrainerInputError for an unbiased variance of fewer than two tokens
 */
export function maskedVariance(
  values: MatrixView,
  mask: MatrixView,
  { unbiased = true }: { readonly unbiased?: boolean } = {},
): number {
  return momentsOf(sourceOf(values), runsOf(mask), unbiased).variance;
}

/** Weights, their mean and the sum of squared differences from it. */
interface Moments {
  count: number;
  mean: number;
  squares: number;
}

/** Each row is looked at once, and joined to what was before it. */
function momentsOf(values: RowSource, runs: TokenRuns, unbiased: boolean): Spread {
  const moments = { count: 0, mean: 0, squares: 0 };
  for (const row of runs.lengths.keys()) joinRow(moments, values, runs, row);
  return spreadOf(moments, unbiased);
}

interface Spread {
  readonly mean: number;
  readonly variance: number;
}

/** @throws TrainerInputError as maskedVariance */
function spreadOf({ count, mean, squares }: Moments, unbiased: boolean): Spread {
  if (unbiased && (count === 0 || count === 1)) {
    throw new TrainerInputError(
      "responseMask",
      `the variance of ${count === 0 ? "no token" : "one token"} is not defined: at least two tokens must count`,
    );
  }
  return { mean, variance: (squares / divisorOf(count)) * (unbiased ? count / (count - 1) : 1) };
}

function joinRow(moments: Moments, values: RowSource, runs: TokenRuns, row: number): void {
  const count = runs.lengths[row] ?? NaN;
  if (count === 0) return;
  const { data } = values;
  const shift = values.startOf(row) - row * runs.columns;
  const first = runs.firsts[row] ?? NaN;
  const last = runs.firsts[row + 1] ?? NaN;
  let sum = 0;
  for (let run = first; run < last; run++) {
    const weight = unboxed(runs.weights[run] ?? NaN);
    const end = (runs.ends[run] ?? NaN) + shift;
    for (let at = (runs.starts[run] ?? NaN) + shift; at < end; at++) {
      sum += (data[at] ?? NaN) * weight;
    }
  }
  const mean = sum / count;
  let squares = 0;
  for (let run = first; run < last; run++) {
    const weight = unboxed(runs.weights[run] ?? NaN);
    const end = (runs.ends[run] ?? NaN) + shift;
    for (let at = (runs.starts[run] ?? NaN) + shift; at < end; at++) {
      const difference = (data[at] ?? NaN) - mean;
      squares += difference * difference * weight;
    }
  }
  join(moments, { count, mean, squares });
}

/** Joins moments of other tokens to moments (Chan, Golub and LeVeque, 1979). */
function join(moments: Moments, { count, mean, squares }: Moments): void {
  if (moments.count === 0) return void Object.assign(moments, { count, mean, squares });
  const whole = moments.count + count;
  const between = mean - moments.mean;
  moments.squares += squares + between * between * ((moments.count * count) / whole);
  moments.mean += between * (count / whole);
  moments.count = whole;
}

/** A whitened value is (value - mean) x scale + shift. */
export interface Whitening {
  readonly mean: number;
  readonly scale: number;
  readonly shift: number;
}

/**
 * Returns what gives the tokens that count variance 1, and mean 0, or the mean that they have.
 *
 * @throws TrainerInputError as maskedVariance
 */
export function whiteningOf(
  values: RowSource,
  runs: TokenRuns,
  { shiftMean = true }: { readonly shiftMean?: boolean } = {},
): Whitening {
  return whiteningBy(momentsOf(values, runs, true), shiftMean);
}

/**
 * As `whiteningOf`, where each token of a row has the row's value times its weight.
 *
 * @throws TrainerInputError as maskedVariance
 */
export function whiteningOfRows(values: Float64Array, runs: TokenRuns): Whitening {
  const moments = { count: 0, mean: 0, squares: 0 };
  for (const [row, value] of values.entries()) {
    const last = runs.firsts[row + 1] ?? NaN;
    for (let run = runs.firsts[row] ?? NaN; run < last; run++) {
      const weight = runs.weights[run] ?? NaN;
      const count = weight * ((runs.ends[run] ?? NaN) - (runs.starts[run] ?? NaN));
      join(moments, { count, mean: value * weight, squares: 0 });
    }
  }
  return whiteningBy(spreadOf(moments, true), true);
}

function whiteningBy({ mean, variance }: Spread, shiftMean: boolean): Whitening {
  return { mean, scale: 1 / Math.sqrt(variance + 1e-8), shift: shiftMean ? 0 : mean };
}

/**
 * Variance 1 over the tokens that count, and mean 0, or what it was; the others are shifted and
 * scaled with them.
 *
 * @throws TrainerInputError as maskedVariance
 */
export function maskedWhiten(
  values: Matrix,
  mask: Matrix,
  options: { readonly shiftMean?: boolean } = {},
): Matrix {
  const { mean, scale, shift } = whiteningOf(sourceOf(values), runsOf(mask), options);
  const whitened = newMatrix(values.rows, values.columns);
  for (let at = 0; at < whitened.data.length; at++) {
    whitened.data[at] = ((values.data[at] ?? NaN) - mean) * scale + shift;
  }
  return whitened;
}

/** Returns values times the mask; 0 where the mask is 0, even for NaN. */
export function masked(values: Matrix, mask: Matrix): Matrix {
  const kept = newMatrix(values.rows, values.columns);
  for (let at = 0; at < kept.data.length; at++) {
    const weight = mask.data[at] ?? NaN;
    if (weight !== 0) kept.data[at] = (values.data[at] ?? NaN) * weight;
  }
  return kept;
}
