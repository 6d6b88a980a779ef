/**
 * The covariance of a token: how far its advantage and its log-probability lie from their means,
 * multiplied. Which tokens have the largest ones is found by selection, not by a sort.
 */

import type { PolicyRows } from "./policy-loss.ts";

export interface TokenMeans {
  readonly advantage: number;
  readonly logProb: number;
}

export function covarianceOf(means: TokenMeans, advantage: number, logProb: number): number {
  return (advantage - means.advantage) * (logProb - means.logProb);
}

/** The bound of the largest covariances. */
export interface LargestCovariances {
  readonly means: TokenMeans;
  /** Larger covariances are among the largest. NaN where none is. */
  readonly least: number;
  /** How many of those that equal `least` are, too: the first ones. */
  readonly ties: number;
}

/** Returns the bound of the largest ones: this share of the tokens that count, at least one. */
export function largestCovariances(rows: PolicyRows, share: number): LargestCovariances {
  const sums = { valid: 0, advantage: 0, logProb: 0 };
  for (let row = 0; row < rows.mask.rows; row++) addRow(sums, rows, row);
  const { valid } = sums;
  const means = { advantage: sums.advantage / valid, logProb: sums.logProb / valid };
  const count = Math.max(1, Math.trunc(valid * share));
  const kept = new Float64Array(Math.max(2 * count, leastKept));
  const selection = { means, count, kept, length: 0, least: -Infinity, unordered: 0 };
  for (let row = 0; row < rows.mask.rows; row++) selectIn(selection, rows, row);
  return { means, ...boundOf(selection) };
}

function addRow(
  sums: { valid: number; advantage: number; logProb: number },
  { mask: { data: mask, columns }, advantages, logProb }: PolicyRows,
  row: number,
): void {
  let { valid, advantage, logProb: logProbSum } = sums;
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    if (!((mask[at] ?? NaN) > 0)) continue;
    valid++;
    advantage += advantages.data[at] ?? NaN;
    logProbSum += logProb.data[at] ?? NaN;
  }
  Object.assign(sums, { valid, advantage, logProb: logProbSum });
}

/** Numbers that are kept before the smaller ones of them are dropped, at least. */
const leastKept = 1024;

interface Selection {
  readonly means: TokenMeans;
  /** How many of the largest are wanted. */
  readonly count: number;
  /** Numbers that may be among the largest, up to `length`. */
  readonly kept: Float64Array;
  length: number;
  /** A covariance that is not above it is not among the largest. */
  least: number;
  /** How many are NaN. */
  unordered: number;
}

function selectIn(
  selection: Selection,
  { mask: { data: mask, columns }, advantages, logProb }: PolicyRows,
  row: number,
): void {
  const { means, count, kept } = selection;
  let { length, least, unordered } = selection;
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    if (!((mask[at] ?? NaN) > 0)) continue;
    const covariance = covarianceOf(means, advantages.data[at] ?? NaN, logProb.data[at] ?? NaN);
    if (covariance <= least && length >= count) continue;
    if (Number.isNaN(covariance)) unordered++;
    else kept[length++] = covariance;
    if (length < kept.length) continue;
    least = moveLargestBehind(kept, count);
    kept.copyWithin(0, length - count, length);
    length = count;
  }
  Object.assign(selection, { length, least, unordered });
}

function boundOf({
  count,
  kept,
  length,
  unordered,
}: Selection): Pick<LargestCovariances, "least" | "ties"> {
  // NaN is above all, as in a sort, and above nothing that is looked for.
  if (count <= unordered) return { least: NaN, ties: 0 };
  const left = kept.subarray(0, length);
  const least = moveLargestBehind(left, Math.min(count - unordered, length));
  const above = left.reduce((sum, one) => sum + (one > least ? 1 : 0), 0);
  return { least, ties: count - above };
}

/** Moves so many of the largest numbers behind the others. Returns the least of them. */
function moveLargestBehind(numbers: Float64Array, count: number): number {
  const wanted = numbers.length - count;
  let from = 0;
  let to = numbers.length - 1;
  while (from < to) {
    const pivot = numbers[(from + to) >>> 1] ?? NaN;
    let low = from;
    let high = to;
    while (low <= high) {
      while ((numbers[low] ?? NaN) < pivot) low++;
      while ((numbers[high] ?? NaN) > pivot) high--;
      if (low > high) break;
      const moved = numbers[low] ?? NaN;
      numbers[low++] = numbers[high] ?? NaN;
      numbers[high--] = moved;
    }
    if (wanted <= high) to = high;
    else if (wanted >= low) from = low;
    else break;
  }
  return numbers[wanted] ?? NaN;
}
