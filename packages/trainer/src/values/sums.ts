/** Sums and means. */

/** Returns the sum; 0 for no value. */
export function sumOf(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}

/** Returns the mean; NaN for no value. */
export function meanOf(values: ArrayLike<number> & Iterable<number>): number {
  return sumOf(values) / values.length;
}
