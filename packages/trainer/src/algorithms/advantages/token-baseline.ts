/**
 * The optimal token baselines: what could be expected at a token is the mean of the returns of its
 * group there, weighted by how much the gradient of each row has varied so far.
 */

import { exponentialsInto } from "../exponential.ts";
import { type MatrixView, newRoom, unboxed } from "../matrix.ts";
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
  const { firsts } = rows.runs;
  const comparison = comparisonOf(batch, rows, isCounted);
  for (const all of rows.groups.values()) {
    const group = isCounted ? all.filter((row) => firsts[row] !== firsts[row + 1]) : all;
    compareGroup(comparison, group, handleZeroTail);
  }
  return advantagesOf(rows, comparison.advantages, comparison.returns);
}

/** A function of its own: V8 optimises one that is called often better than a long loop. */
function compareGroup(
  comparison: Comparison,
  group: readonly number[],
  handleZeroTail: boolean,
): void {
  comparison.weighted.fill(0);
  comparison.variations.fill(1e-8);
  for (const [member, row] of group.entries()) addRow(comparison, row, member);
  const baselines = baselinesOf(comparison);
  const tail = handleZeroTail ? tailOf(group, comparison.rows.runs.lengths) : undefined;
  for (const [member, row] of group.entries()) {
    // A row alone is compared with nothing.
    const compared = group.length < 2 ? 0 : tail?.row === row ? tail.from : Infinity;
    const toGo = comparison.toGo[member] ?? none;
    subtractBaselines(comparison, { row, toGo, baselines, compared });
  }
}

/** A row without tokens that count has nothing to go. */
const none = new Float64Array(0);

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
 * pi^2.
 */
function addRow(comparison: Comparison, row: number, member: number): void {
  const { rows, isCounted } = comparison;
  const { columns, firsts, starts, ends } = rows.runs;
  const from = row * columns;
  const first = firsts[row] ?? NaN;
  const last = firsts[row + 1] ?? NaN;
  if (first === last) return;
  const toGo = (comparison.toGo[member] ??= newRoom(columns));
  rewardToGo(comparison, row, toGo);
  probabilitiesInto(comparison, from, (ends[last - 1] ?? NaN) - from);
  const sums = { from, toGo, variation: 0, place: 0 };
  for (let run = first; run < last; run++) {
    if (!isCounted) sums.place = (starts[run] ?? NaN) - from;
    addRun(comparison, run, sums);
  }
}

/** @param sums where the row begins in the matrix, its sums up to this run, and the run's place */
function addRun(
  { rows: { runs }, squares, weights, probabilities, variations, weighted }: Comparison,
  run: number,
  sums: { from: number; toGo: Float64Array; variation: number; place: number },
): void {
  const { from, toGo } = sums;
  const { data: ofSquares } = squares;
  const scales = weights?.data;
  const weight = unboxed(runs.weights[run] ?? NaN);
  const end = runs.ends[run] ?? NaN;
  let { variation, place } = sums;
  for (let at = runs.starts[run] ?? NaN; at < end; at++, place++) {
    const change = 1 - 2 * (probabilities[at - from] ?? NaN) + (ofSquares[at] ?? NaN);
    const scale = scales === undefined ? 1 : (scales[at] ?? NaN) ** 2;
    variation += change * scale * weight;
    const own = variation * weight;
    weighted[place] = (weighted[place] ?? NaN) + (toGo[at - from] ?? NaN) * own;
    variations[place] = (variations[place] ?? NaN) + own;
  }
  sums.variation = variation;
  sums.place = place;
}

/** Fills in the probabilities of the first `length` tokens of a row. */
function probabilitiesInto(
  { logProbs, probabilities }: Comparison,
  from: number,
  length: number,
): void {
  probabilities.set(logProbs.data.subarray(from, from + length));
  exponentialsInto(probabilities, probabilities, length);
}

/**
 * Fills in the sum of what is rewarded from each token on, which is its return, too: 0 behind the
 * last token that counts.
 */
function rewardToGo({ rows, returns }: Comparison, row: number, toGo: Float64Array): void {
  const { columns, firsts, starts, ends, weights } = rows.runs;
  const { data: rewards } = rows.rewards;
  const from = row * columns;
  const first = firsts[row] ?? NaN;
  let sum = 0;
  for (let run = (firsts[row + 1] ?? NaN) - 1; run >= first; run--) {
    const start = starts[run] ?? NaN;
    const weight = unboxed(weights[run] ?? NaN);
    for (let at = (ends[run] ?? NaN) - 1; at >= start; at--) {
      sum += (rewards[at] ?? NaN) * weight;
      toGo[at - from] = sum;
      returns[at] = sum;
    }
    // Tokens before it that do not count.
    const behind = run === first ? from : (ends[run - 1] ?? NaN);
    if (behind < start) returns.fill(unboxed(sum), behind, start);
  }
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
  { rows: { runs }, isCounted, advantages }: Comparison,
  { row, toGo, baselines, compared }: Compared,
): void {
  const { columns, firsts, starts, ends, weights } = runs;
  const from = row * columns;
  const last = firsts[row + 1] ?? NaN;
  let counted = 0;
  for (let run = firsts[row] ?? NaN; run < last; run++) {
    const start = starts[run] ?? NaN;
    const end = ends[run] ?? NaN;
    const weight = unboxed(weights[run] ?? NaN);
    const skipped = isCounted ? start - counted : from;
    // A whole number, or V8 counts in fractions.
    const to = Math.ceil(Math.max(start, Math.min(end, compared + skipped))) | 0;
    for (let at = start; at < to; at++) {
      const own = (toGo[at - from] ?? NaN) * weight;
      advantages[at] = own - (baselines[at - skipped] ?? NaN) * weight;
    }
    for (let at = to; at < end; at++) advantages[at] = (toGo[at - from] ?? NaN) * weight;
    counted += end - start;
  }
}

/** Returns the tail of the group's longest row, where it is longer than all others. */
function tailOf(
  group: readonly number[],
  lengths: Float64Array,
): { readonly row: number; readonly from: number } | undefined {
  let longest = { row: NaN, length: -Infinity };
  let second = group.length < 2 ? 0 : -Infinity;
  for (const row of group) {
    const length = lengths[row] ?? NaN;
    second = Math.max(second, Math.min(length, longest.length));
    if (length > longest.length) longest = { row, length };
  }
  return longest.length > second ? { row: longest.row, from: second } : undefined;
}
