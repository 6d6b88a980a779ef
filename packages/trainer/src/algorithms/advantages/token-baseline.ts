/**
 * The optimal token baselines: what could be expected at a token is the mean of the returns of its
 * group there, weighted by how much the gradient of each row has varied so far.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { exponentialsInto } from "../exponential.ts";
import { lastCounted } from "../masked-sums.ts";
import { type MatrixView, newRoom } from "../matrix.ts";
import {
  type AdvantageBatch,
  type AdvantageEstimator,
  type Advantages,
  type AdvantageSettings,
  advantagesOf,
  type GroupedRows,
  groupedRowsOf,
  neededView,
  newColumn,
} from "./batch.ts";

/** Compares tokens at the same column. */
export const optimalTokenBaseline: AdvantageEstimator = (batch, settings = {}) =>
  tokenBaseline(batch, settings, false);

/**
 * Optimal token baseline for rows of several turns: the n-th token that counts is compared with the
 * n-th of the other rows.
 */
export const tirOptimalTokenBaseline: AdvantageEstimator = (batch, settings = {}) =>
  tokenBaseline(batch, settings, true);

/** A group in comparison: sums over its rows, and columns for the result. */
interface Comparison {
  readonly rows: GroupedRows;
  readonly logProbs: MatrixView;
  readonly squares: MatrixView;
  readonly weights: MatrixView | undefined;
  /** Whether the place of a token is its number among those that count, and not its column. */
  readonly isCounted: boolean;
  /** For each row of the group, what is rewarded from each token on. */
  readonly toGo: Float64Array[];
  /** Room for the probabilities of a row. */
  readonly probabilities: Float64Array;
  /** At each place, over the group: variations, and returns weighted by them. */
  readonly variations: Float64Array;
  readonly weighted: Float64Array;
  readonly advantages: Float32Array<ArrayBuffer>;
  readonly returns: Float32Array<ArrayBuffer>;
}

function tokenBaseline(
  batch: AdvantageBatch,
  { handleZeroTail = true }: AdvantageSettings,
  isCounted: boolean,
): Advantages {
  const rows = groupedRowsOf(batch);
  const { mask } = rows;
  const comparison = comparisonOf(batch, rows, isCounted);
  for (const all of rows.groups.values()) {
    const group = isCounted ? all.filter((row) => lastCounted(mask, row) >= 0) : all;
    comparison.weighted.fill(0);
    comparison.variations.fill(1e-8);
    const lengths = group.map((row, member) => addRow(comparison, row, member));
    const baselines = baselinesOf(comparison);
    const tail = handleZeroTail ? tailOf(group, lengths) : undefined;
    for (const [member, row] of group.entries()) {
      // A row alone is compared with nothing.
      const compared = group.length < 2 ? 0 : tail?.row === row ? tail.from : Infinity;
      const toGo = present(comparison.toGo[member], "the room of a row");
      subtractBaselines(comparison, { row, toGo, baselines, compared });
    }
  }
  return advantagesOf(rows, comparison.advantages, comparison.returns);
}

function comparisonOf(batch: AdvantageBatch, rows: GroupedRows, isCounted: boolean): Comparison {
  const { columns } = rows.mask;
  return {
    rows,
    logProbs: neededView("oldLogProbs", batch.oldLogProbs, rows),
    squares: neededView("sumPiSquared", batch.sumPiSquared, rows),
    weights: batch.rolloutIsWeights && neededView("rolloutIsWeights", batch.rolloutIsWeights, rows),
    isCounted,
    toGo: [],
    probabilities: newRoom(columns),
    variations: newRoom(columns),
    weighted: newRoom(columns),
    advantages: newColumn(rows),
    returns: newColumn(rows),
  };
}

/**
 * Adds a row to what its group is compared by. The gradient varies at each token by 1 - 2 pi + sum
 * pi^2. Returns how many tokens count.
 */
function addRow(comparison: Comparison, row: number, member: number): number {
  const { rows, squares, weights, isCounted, variations, weighted } = comparison;
  const { columns, data: mask } = rows.mask;
  const { data: ofSquares } = squares;
  const from = row * columns;
  const end = lastCounted(rows.mask, row) + 1;
  const toGo = rewardToGo(comparison, row, member, end);
  const probabilities = probabilitiesOf(comparison, row, end);
  let variation = 0;
  let length = 0;
  let counted = 0;
  for (let column = 0; column < end; column++) {
    const weight = mask[from + column] ?? NaN;
    if (weight === 0) continue;
    length += weight;
    const change = 1 - 2 * (probabilities[column] ?? NaN) + (ofSquares[from + column] ?? NaN);
    const scale = weights === undefined ? 1 : (weights.data[from + column] ?? NaN) ** 2;
    variation += change * scale * weight;
    const place = isCounted ? counted++ : column;
    const own = variation * weight;
    weighted[place] = (weighted[place] ?? NaN) + (toGo[column] ?? NaN) * own;
    variations[place] = (variations[place] ?? NaN) + own;
  }
  return length;
}

/** Returns the probabilities of the tokens up to `end`. */
function probabilitiesOf(
  { rows, logProbs, probabilities }: Comparison,
  row: number,
  end: number,
): Float64Array {
  const from = row * rows.mask.columns;
  const { data } = logProbs;
  for (let column = 0; column < end; column++) {
    probabilities[column] = data[from + column] ?? NaN;
  }
  exponentialsInto(probabilities, probabilities, end);
  return probabilities;
}

/**
 * Returns the sum of what is rewarded from each token on, which is its return, too: 0 from `end`
 * on, behind which no token counts.
 */
function rewardToGo(
  { rows, toGo, returns }: Comparison,
  row: number,
  member: number,
  end: number,
): Float64Array {
  const { columns, data: mask } = rows.mask;
  const { data: rewards } = rows.rewards;
  const sums = (toGo[member] ??= newRoom(columns));
  const from = row * columns;
  let sum = 0;
  for (let column = end - 1; column >= 0; column--) {
    const weight = mask[from + column] ?? NaN;
    if (weight !== 0) sum += (rewards[from + column] ?? NaN) * weight;
    sums[column] = sum;
    returns[from + column] = sum;
  }
  return sums;
}

/** Returns the baseline at each place of a group. */
function baselinesOf({ weighted, variations }: Comparison): Float64Array {
  for (let place = 0; place < weighted.length; place++) {
    weighted[place] = (weighted[place] ?? NaN) / (variations[place] ?? NaN);
  }
  return weighted;
}

interface Compared {
  readonly row: number;
  readonly toGo: Float64Array;
  readonly baselines: Float64Array;
  /** How many places of the row are compared. */
  readonly compared: number;
}

function subtractBaselines(
  { rows, isCounted, advantages }: Comparison,
  { row, toGo, baselines, compared }: Compared,
): void {
  const { columns, data: mask } = rows.mask;
  const from = row * columns;
  const end = lastCounted(rows.mask, row) + 1;
  let counted = 0;
  for (let column = 0; column < end; column++) {
    const weight = mask[from + column] ?? NaN;
    if (weight === 0) continue;
    const place = isCounted ? counted++ : column;
    const own = (toGo[column] ?? NaN) * weight;
    advantages[from + column] = place < compared ? own - (baselines[place] ?? NaN) * weight : own;
  }
}

/** Returns the tail of the group's longest row, where it is longer than all others. */
function tailOf(
  group: readonly number[],
  lengths: readonly number[],
): { readonly row: number; readonly from: number } | undefined {
  const sorted = lengths.toSorted((left, right) => right - left);
  const [longest = 0, second = 0] = sorted;
  const row = group[lengths.indexOf(longest)];
  return longest > second && row !== undefined ? { row, from: second } : undefined;
}
