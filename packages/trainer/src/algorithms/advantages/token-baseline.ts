/**
 * The optimal token baselines: what could be expected at a token is the mean of the returns of its
 * group there, weighted by how much the gradient of each row has varied so far.
 */

import { present } from "@rayling/reward-manager-registry/values";
import type { MatrixView } from "../matrix.ts";
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
  /** Room for how much the gradient of a row varies at each token. */
  readonly changes: Float64Array;
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
    const group = isCounted ? all.filter((row) => hasTokens(row, mask)) : all;
    comparison.weighted.fill(0);
    comparison.variations.fill(1e-8);
    const lengths = group.map((row, member) => addRow(comparison, row, member));
    const baselines = baselinesOf(comparison);
    const tail = handleZeroTail ? tailOf(group, lengths) : undefined;
    for (const [member, row] of group.entries()) {
      // A row alone is compared with nothing.
      const compared = group.length < 2 ? 0 : tail?.row === row ? tail.from : Infinity;
      const toGo = present(comparison.toGo[member], "the room of a row");
      subtractBaselines({ ...comparison, toGo, baselines, compared }, row);
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
    changes: new Float64Array(columns),
    variations: new Float64Array(columns),
    weighted: new Float64Array(columns),
    advantages: newColumn(rows),
    returns: newColumn(rows),
  };
}

function hasTokens(row: number, { columns, data }: MatrixView): boolean {
  for (let at = row * columns; at < (row + 1) * columns; at++) if (data[at] !== 0) return true;
  return false;
}

/** Adds a row to what its group is compared by. Returns how many tokens count. */
function addRow(comparison: Comparison, row: number, member: number): number {
  const { rows, isCounted, variations, weighted } = comparison;
  const { columns, data: mask } = rows.mask;
  const from = row * columns;
  const toGo = rewardToGo(comparison, row, member);
  const changes = changesOf(comparison, row);
  let variation = 0;
  let length = 0;
  let counted = 0;
  for (let column = 0; column < columns; column++) {
    const weight = mask[from + column] ?? NaN;
    if (weight === 0) continue;
    length += weight;
    variation += (changes[column] ?? NaN) * weight;
    const place = isCounted ? counted++ : column;
    const own = variation * weight;
    weighted[place] = (weighted[place] ?? NaN) + (toGo[column] ?? NaN) * own;
    variations[place] = (variations[place] ?? NaN) + own;
  }
  return length;
}

/** Returns how much the gradient varies at each token that counts: 1 - 2 pi + sum pi^2. */
function changesOf(
  { rows, logProbs, squares, weights, changes }: Comparison,
  row: number,
): Float64Array {
  const { columns, data: mask } = rows.mask;
  const from = row * columns;
  for (let column = 0; column < columns; column++) {
    if (mask[from + column] === 0) continue;
    const probability = Math.exp(logProbs.data[from + column] ?? NaN);
    changes[column] = 1 - 2 * probability + (squares.data[from + column] ?? NaN);
    if (weights === undefined) continue;
    changes[column] = (changes[column] ?? NaN) * (weights.data[from + column] ?? NaN) ** 2;
  }
  return changes;
}

/** Returns the sum of what is rewarded from each token on, which is its return, too. */
function rewardToGo(
  { rows, toGo, returns }: Comparison,
  row: number,
  member: number,
): Float64Array {
  const { columns, data: mask } = rows.mask;
  const sums = (toGo[member] ??= new Float64Array(columns));
  const from = row * columns;
  let sum = 0;
  for (let column = columns - 1; column >= 0; column--) {
    const weight = mask[from + column] ?? NaN;
    if (weight !== 0) sum += (rows.rewards.data[from + column] ?? NaN) * weight;
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

interface Compared extends Omit<Comparison, "toGo"> {
  readonly toGo: Float64Array;
  readonly baselines: Float64Array;
  /** How many places of the row are compared. */
  readonly compared: number;
}

function subtractBaselines(
  { rows, isCounted, toGo, baselines, compared, advantages }: Compared,
  row: number,
): void {
  const { columns, data: mask } = rows.mask;
  const from = row * columns;
  let counted = 0;
  for (let column = 0; column < columns; column++) {
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
