/**
 * The covariance of a token: how far its advantage and its log-probability lie from their means,
 * multiplied. Which tokens have the largest ones is found by selection, not by a sort.
 */

import { unboxed } from "../matrix.ts";
import type { PolicyRows } from "./policy-loss.ts";
import type { TokenBlock } from "./token-block.ts";

export interface TokenMeans {
  readonly advantage: number;
  readonly logProb: number;
}

export function covarianceOf(means: TokenMeans, advantage: number, logProb: number): number {
  return (advantage - means.advantage) * (logProb - means.logProb);
}

/** The bound of the largest covariances. */
export interface LargestCovariances {
  /** Larger covariances are among the largest. NaN where none is. */
  readonly least: number;
  /** How many of those that equal `least` are, too: the first ones. */
  readonly ties: number;
}

/** The largest covariances among the tokens that were looked at. */
export interface Selection {
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
  /** The largest of each row. */
  readonly most: Float64Array;
}

/** @param share of the tokens that count: so many are selected, and at least one */
export function newSelection(rows: PolicyRows, share: number): Selection {
  const sums = { valid: 0, advantage: 0, logProb: 0 };
  for (const run of rows.runs.starts.keys()) addRun(sums, rows, run);
  const { valid } = sums;
  const count = Math.max(1, Math.trunc(valid * share));
  return {
    means: { advantage: sums.advantage / valid, logProb: sums.logProb / valid },
    count,
    kept: new Float64Array(Math.max(2 * count, leastKept)),
    length: 0,
    least: -Infinity,
    unordered: 0,
    most: new Float64Array(rows.mask.rows).fill(-Infinity),
  };
}

/** Numbers that are kept before the smaller ones of them are dropped, at least. */
const leastKept = 1024;

function addRun(
  sums: { valid: number; advantage: number; logProb: number },
  { runs, advantages: { data: advantages }, logProb: { data: logProbs } }: PolicyRows,
  run: number,
): void {
  if (!((runs.weights[run] ?? NaN) > 0)) return;
  const start = runs.starts[run] ?? NaN;
  const end = runs.ends[run] ?? NaN;
  let { advantage, logProb: logProbSum } = sums;
  for (let at = start; at < end; at++) {
    advantage += advantages[at] ?? NaN;
    logProbSum += logProbs[at] ?? NaN;
  }
  sums.valid += end - start;
  sums.advantage = advantage;
  sums.logProb = logProbSum;
}

/** Looks at the tokens of a block of this row. */
export function selectIn(
  selection: Selection,
  { length: tokens, weight, advantages, logProbs }: TokenBlock,
  row: number,
): void {
  const { count, kept } = selection;
  const meanAdvantage = unboxed(selection.means.advantage);
  const meanLogProb = unboxed(selection.means.logProb);
  let { length, least, unordered } = selection;
  let most = selection.most[row] ?? NaN;
  if (!(weight > 0)) return;
  for (let index = 0; index < tokens; index++) {
    const covariance =
      ((advantages[index] ?? NaN) - meanAdvantage) * ((logProbs[index] ?? NaN) - meanLogProb);
    if (covariance > most) most = covariance;
    if (covariance <= least && length >= count) continue;
    if (Number.isNaN(covariance)) unordered++;
    else kept[length++] = covariance;
    if (length < kept.length) continue;
    least = moveLargestBehind(kept, count);
    kept.copyWithin(0, length - count, length);
    length = count;
  }
  selection.length = length;
  selection.least = least;
  selection.unordered = unordered;
  selection.most[row] = most;
}

export function boundOf({ count, kept, length, unordered }: Selection): LargestCovariances {
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
