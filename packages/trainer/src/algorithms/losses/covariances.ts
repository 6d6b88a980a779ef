/**
 * The covariance of a token: how far its advantage and its log-probability lie from their means,
 * multiplied. Which tokens have the largest ones is found by selection, not by a sort.
 */

import { sumOver } from "../masked-sums.ts";
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
  const { valid, means } = meansOf(rows);
  const count = Math.max(1, Math.trunc(valid * share));
  return {
    means,
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

/** Returns the number of tokens whose weight is above 0, and their means. */
function meansOf(rows: PolicyRows): { readonly valid: number; readonly means: TokenMeans } {
  const { runs } = rows;
  const sums = { valid: 0, advantage: 0, logProb: 0 };
  for (const [run, weight] of runs.weights.entries()) {
    if (!(weight > 0)) continue;
    sums.valid += (runs.ends[run] ?? NaN) - (runs.starts[run] ?? NaN);
    addSums(sums, rows, run, 1);
  }
  const { valid, advantage, logProb: ofLogProb } = sums;
  return { valid, means: { advantage: advantage / valid, logProb: ofLogProb / valid } };
}

/**
 * Adds the sums of a run. A function of its own: V8 optimises one that is called often better than
 * a long loop.
 *
 * @param weight by which each of its tokens is multiplied
 */
export function addSums(
  sums: { advantage: number; logProb: number },
  { runs, advantages, logProb }: PolicyRows,
  run: number,
  weight: number,
): void {
  const start = runs.starts[run] ?? NaN;
  const end = runs.ends[run] ?? NaN;
  sums.advantage += weight * sumOver(advantages.data, start, end);
  sums.logProb += weight * sumOver(logProb.data, start, end);
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
