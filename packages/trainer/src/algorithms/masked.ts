/** Sums, means and spreads over the tokens that count (verl/utils/torch_functional.py). Whatever stands where the mask is 0 does no harm, NaN included. */

import { TrainerInputError } from "../errors.ts";
import { type Matrix, newMatrix, rowSums } from "./matrix.ts";

export function maskedSum(values: Matrix, mask: Matrix): number {
  let sum = 0;
  for (let at = 0; at < values.data.length; at++) {
    const weight = mask.data[at] as number;
    if (weight !== 0) sum += (values.data[at] as number) * weight;
  }
  return sum;
}

export function countOf(mask: Matrix): number {
  let count = 0;
  for (let at = 0; at < mask.data.length; at++) count += mask.data[at] as number;
  return count;
}

/** What a sum over so many tokens is divided by. verl adds 1e-8, so that the mean of nothing is 0; beside a token, its float32 does not see that, and here it must not be seen, either. */
export function divisorOf(count: number): number {
  return count === 0 ? 1e-8 : count;
}

/** Of nothing 0. */
export function maskedMean(values: Matrix, mask: Matrix): number {
  return maskedSum(values, mask) / divisorOf(countOf(mask));
}

/** The same, of what each value comes to. */
export function maskedMeanOf(values: Matrix, mask: Matrix, of: (value: number) => number): number {
  let sum = 0;
  let count = 0;
  for (let at = 0; at < mask.data.length; at++) {
    const weight = mask.data[at] as number;
    if (weight === 0) continue;
    sum += of(values.data[at] as number) * weight;
    count += weight;
  }
  return sum / divisorOf(count);
}

/** Of each row. */
export function maskedRowSums(values: Matrix, mask: Matrix): Float64Array {
  const sums = new Float64Array(mask.rows);
  for (let row = 0, at = 0; row < mask.rows; row++) {
    let sum = 0;
    for (const end = at + mask.columns; at < end; at++) {
      const weight = mask.data[at] as number;
      if (weight !== 0) sum += (values.data[at] as number) * weight;
    }
    sums[row] = sum;
  }
  return sums;
}

/** Of each row; of one without tokens 0. */
export function maskedRowMeans(values: Matrix, mask: Matrix): Float64Array {
  const lengths = rowSums(mask);
  return maskedRowSums(values, mask).map((sum, row) => sum / divisorOf(lengths[row] as number));
}

/** Of a sample, by n - 1, unless it is not to be. @throws TrainerInputError for a sample where one token counts, or none */
export function maskedVariance(
  values: Matrix,
  mask: Matrix,
  { unbiased = true }: { readonly unbiased?: boolean } = {},
): number {
  const count = countOf(mask);
  if (unbiased && (count === 0 || count === 1)) {
    throw new TrainerInputError(
      "responseMask",
      `the variance of ${count === 0 ? "no token" : "one token"} is not defined: at least two tokens must count`,
    );
  }
  const mean = maskedMean(values, mask);
  let squares = 0;
  for (let at = 0; at < mask.data.length; at++) {
    const weight = mask.data[at] as number;
    if (weight !== 0) squares += ((values.data[at] as number) - mean) ** 2 * weight;
  }
  return (squares / divisorOf(count)) * (unbiased ? count / (count - 1) : 1);
}

/** Variance 1 over the tokens that count, and mean 0, or what it was; the others are shifted and scaled with them. @throws TrainerInputError as maskedVariance */
export function maskedWhiten(
  values: Matrix,
  mask: Matrix,
  { shiftMean = true }: { readonly shiftMean?: boolean } = {},
): Matrix {
  const mean = maskedMean(values, mask);
  const scale = 1 / Math.sqrt(maskedVariance(values, mask) + 1e-8);
  const shift = shiftMean ? 0 : mean;
  const whitened = newMatrix(values.rows, values.columns);
  for (let at = 0; at < whitened.data.length; at++) {
    whitened.data[at] = ((values.data[at] as number) - mean) * scale + shift;
  }
  return whitened;
}

/** Where the mask is 0, 0: also of NaN. */
export function masked(values: Matrix, mask: Matrix): Matrix {
  const kept = newMatrix(values.rows, values.columns);
  for (let at = 0; at < kept.data.length; at++) {
    const weight = mask.data[at] as number;
    if (weight !== 0) kept.data[at] = (values.data[at] as number) * weight;
  }
  return kept;
}
