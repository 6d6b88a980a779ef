/** Mean, spread and range of rows, and of tokens that count. */

import { countOf, divisorOf } from "./masked-sums.ts";
import type { MatrixView } from "./matrix.ts";
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

/** The standard deviation of the whole: by n. */
export function wholeStdOf(values: Float64Array): number {
  return spreadOf(values).std * Math.sqrt((values.length - 1) / values.length);
}

/** Returns the range over the tokens that count. */
export function tokenRange(
  values: MatrixView,
  mask: MatrixView,
): { readonly max: number; readonly min: number } {
  let max = -Infinity;
  let min = Infinity;
  for (let at = 0; at < mask.data.length; at++) {
    if (mask.data[at] === 0) continue;
    max = Math.max(max, values.data[at] ?? NaN);
    min = Math.min(min, values.data[at] ?? NaN);
  }
  return { max, min };
}

/** Returns the share of the tokens that count for which `holds` is true. */
export function shareOf(mask: MatrixView, holds: (at: number) => boolean): number {
  let sum = 0;
  for (let at = 0; at < mask.data.length; at++) {
    const weight = mask.data[at] ?? NaN;
    if (weight !== 0 && holds(at)) sum += weight;
  }
  return sum / divisorOf(countOf(mask));
}
