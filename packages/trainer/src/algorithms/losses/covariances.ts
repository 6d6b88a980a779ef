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

/** What the covariances of a share of the tokens lie above. */
export interface LargestCovariances {
  readonly means: TokenMeans;
  /** Larger covariances are among the largest. NaN where none is. */
  readonly least: number;
  /** How many of those that equal `least` are, too: the first ones. */
  readonly ties: number;
}

/** Returns the bound of the largest ones: this share of the tokens that count, at least one. */
export function largestCovariances(rows: PolicyRows, share: number): LargestCovariances {
  const { mask, advantages, logProb } = rows;
  let valid = 0;
  let advantageSum = 0;
  let logProbSum = 0;
  for (let at = 0; at < mask.data.length; at++) {
    if (!((mask.data[at] ?? NaN) > 0)) continue;
    valid++;
    advantageSum += advantages.data[at] ?? NaN;
    logProbSum += logProb.data[at] ?? NaN;
  }
  const means = { advantage: advantageSum / valid, logProb: logProbSum / valid };
  const count = Math.max(1, Math.trunc(valid * share));
  return { means, ...boundOf(rows, means, count) };
}

/** Numbers that are kept before the smaller ones of them are dropped, at least. */
const leastKept = 1024;

function boundOf(
  { mask, advantages, logProb }: PolicyRows,
  means: TokenMeans,
  count: number,
): Pick<LargestCovariances, "least" | "ties"> {
  const kept = new Float64Array(Math.max(2 * count, leastKept));
  let length = 0;
  let least = -Infinity;
  let unordered = 0;
  for (let at = 0; at < mask.data.length; at++) {
    if (!((mask.data[at] ?? NaN) > 0)) continue;
    const covariance = covarianceOf(means, advantages.data[at] ?? NaN, logProb.data[at] ?? NaN);
    if (Number.isNaN(covariance)) unordered++;
    else if (covariance > least || length < count) kept[length++] = covariance;
    if (length < kept.length) continue;
    least = moveLargestBehind(kept, count);
    kept.copyWithin(0, length - count, length);
    length = count;
  }
  // NaN is above all, as in a sort, and above nothing that is looked for.
  if (count <= unordered) return { least: NaN, ties: 0 };
  const left = kept.subarray(0, length);
  least = moveLargestBehind(left, Math.min(count - unordered, length));
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
