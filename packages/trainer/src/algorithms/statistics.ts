/** Mean, spread and range of rows. */

import { meanOf } from "../values/sums.ts";

export interface Spread {
  readonly mean: number;
  /** Standard deviation of the sample, divided by n - 1; 0 for one value. */
  readonly std: number;
  readonly max: number;
  readonly min: number;
}

export function spreadOf(values: Float64Array): Spread {
  const mean = meanOf(values);
  let squares = 0;
  let max = -Infinity;
  let min = Infinity;
  for (const value of values) {
    squares += (value - mean) ** 2;
    max = Math.max(max, value);
    min = Math.min(min, value);
  }
  return { mean, std: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0, max, min };
}

/**
 * The standard deviation of the whole: by n.
 *
 * @param mean the mean of `values`, where it is known
 */
export function wholeStdOf(values: Float64Array, mean: number = meanOf(values)): number {
  const count = values.length;
  if (count <= 1) return count === 1 ? 0 : Number.NaN;
  let squares = 0;
  for (let at = 0; at < count; at++) {
    const distance = (values[at] ?? NaN) - mean;
    squares += distance * distance;
  }
  return Math.sqrt(squares / (count - 1)) * Math.sqrt((count - 1) / count);
}
