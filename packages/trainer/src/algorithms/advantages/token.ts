/** Estimators that look at each token: what comes after it, and what could be expected there. */

import { TrainerInputError } from "../../errors.ts";
import { masked } from "../masked-sums.ts";
import { filled, type Matrix, newMatrix } from "../matrix.ts";
import {
  type AdvantageBatch,
  type AdvantageEstimator,
  type Advantages,
  type AdvantageSettings,
  advantagesOf,
  groupedRowsOf,
  neededMatrix,
  rewardToGo,
  type Rows,
  rowsOf,
  whitened,
} from "./batch.ts";
import { sumOf } from "../../values/sums.ts";

/**
 * Generalised advantage estimation, whitened. Masked tokens are skipped: they take the next value
 * and the last advantage of the token after them. As in verl they are not set to 0, except in
 * invalid rows.
 */
export const gae: AdvantageEstimator = (batch, { gamma = 1, lam = 1 } = {}) => {
  const rows = rowsOf(batch);
  const values = neededMatrix("values", batch.values, rows);
  const { rewards, mask } = rows;
  const advantages = newMatrix(rewards.rows, rewards.columns);
  for (let row = 0; row < rewards.rows; row++) {
    let nextValue = 0;
    let last = 0;
    for (let at = (row + 1) * rewards.columns - 1; at >= row * rewards.columns; at--) {
      const value = values.data[at] ?? NaN;
      const weight = mask.data[at] ?? NaN;
      if (weight !== 0) {
        const delta = (rewards.data[at] ?? NaN) + gamma * nextValue - value;
        last = delta + gamma * lam * last;
        nextValue = value;
      }
      advantages.data[at] = last;
    }
  }
  const returns = filled(values, (row, _column, at) =>
    rows.isValid(row) ? (advantages.data[at] ?? NaN) + (values.data[at] ?? NaN) : 0,
  );
  const scaled = whitened(advantages, rows, batch);
  return advantagesOf(
    filled(scaled, (row, _column, at) => (rows.isValid(row) ? (scaled.data[at] ?? NaN) : 0)),
    returns,
  );
};

/** The discounted sum of what follows, whitened; tokens that do not count are passed over. */
export const reinforcePlusPlus: AdvantageEstimator = (batch, { gamma = 1 } = {}) => {
  const rows = rowsOf(batch);
  const { rewards, mask } = rows;
  const returns = newMatrix(rewards.rows, rewards.columns);
  for (let row = 0; row < rewards.rows; row++) {
    let running = 0;
    for (let at = (row + 1) * rewards.columns - 1; at >= row * rewards.columns; at--) {
      if (mask.data[at] === 0) continue;
      running = (rewards.data[at] ?? NaN) + gamma * running;
      returns.data[at] = running;
    }
  }
  return advantagesOf(masked(whitened(returns, rows, batch), mask), returns);
};

/** The sum of what follows, less what the greedy answer was rewarded with. */
export const remax: AdvantageEstimator = (batch) => {
  const { rewards, mask } = rowsOf(batch);
  const baselines = batch.rewardBaselines?.data;
  if (baselines?.length !== rewards.rows) {
    throw new TrainerInputError(
      "rewardBaselines",
      `remax needs the reward of the greedy answer for each of ${rewards.rows} rows; there are ${baselines?.length ?? "none"}`,
    );
  }
  const returns = rewardToGo(rewards, mask);
  const advantages = filled(returns, (row, _column, at) => {
    const weight = mask.data[at] ?? NaN;
    // An invalid row has no weight anywhere, and nothing to return.
    return (returns.data[at] ?? NaN) - (baselines[row] ?? NaN) * weight;
  });
  return advantagesOf(advantages, returns);
};

/**
 * Per token, the mean of the returns of its group weighted by how much each row has varied up to
 * there.
 */
export const optimalTokenBaseline: AdvantageEstimator = (batch, settings = {}) =>
  tokenBaseline(batch, settings, (_row, { mask }) =>
    Array.from({ length: mask.columns }, (_, column) => column),
  );

/**
 * Optimal token baseline for rows of several turns: the n-th token that counts is compared with the
 * n-th of the other rows.
 */
export const tirOptimalTokenBaseline: AdvantageEstimator = (batch, settings = {}) =>
  tokenBaseline(batch, settings, (row, { mask }) => {
    const columns = Array.from({ length: mask.columns }, (_, column) => column);
    return columns.filter((column) => mask.data[row * mask.columns + column] !== 0);
  });

/**
 * @param placesOf the columns of a row, in the order in which they are compared with those of
 *   others
 */
function tokenBaseline(
  batch: AdvantageBatch,
  { handleZeroTail = true }: AdvantageSettings,
  placesOf: (row: number, rows: Rows) => readonly number[],
): Advantages {
  const rows = groupedRowsOf(batch);
  const { mask } = rows;
  const returns = rewardToGo(rows.rewards, mask);
  const variation = variationOf(batch, rows);
  const places = Array.from({ length: mask.rows }, (_, row) => placesOf(row, rows));
  const advantages = masked(returns, mask);
  for (const all of rows.groups.values()) {
    const group = all.filter((row) => (places[row]?.length ?? 0) > 0);
    if (group.length < 2) continue;
    const tail = handleZeroTail ? tailOf(group, mask) : undefined;
    const longest = Math.max(...group.map((row) => places[row]?.length ?? 0));
    for (let place = 0; place < longest; place++) {
      const baseline = baselineAt(group, place, { places, returns, variation, mask });
      for (const row of group) {
        const column = places[row]?.[place];
        if (column === undefined || (tail?.row === row && place >= tail.from)) continue;
        const at = row * mask.columns + column;
        advantages.data[at] = (advantages.data[at] ?? NaN) - baseline * (mask.data[at] ?? NaN);
      }
    }
  }
  return advantagesOf(advantages, returns);
}

function baselineAt(
  group: readonly number[],
  place: number,
  {
    places,
    returns,
    variation,
    mask,
  }: {
    readonly places: readonly (readonly number[])[];
    readonly returns: Matrix;
    readonly variation: Matrix;
    readonly mask: Matrix;
  },
): number {
  let weighted = 0;
  let weight = 1e-8;
  for (const row of group) {
    const column = places[row]?.[place];
    if (column === undefined) continue;
    const at = row * mask.columns + column;
    const own = (variation.data[at] ?? NaN) * (mask.data[at] ?? NaN);
    weighted += (returns.data[at] ?? NaN) * own;
    weight += own;
  }
  return weighted / weight;
}

/** How much the gradient of a row has varied up to each token: the sum of 1 - 2 pi + sum pi^2. */
function variationOf(batch: AdvantageBatch, rows: Rows): Matrix {
  const { mask } = rows;
  const logProbs = neededMatrix("oldLogProbs", batch.oldLogProbs, rows);
  const squares = neededMatrix("sumPiSquared", batch.sumPiSquared, rows);
  const weights =
    batch.rolloutIsWeights === undefined
      ? undefined
      : neededMatrix("rolloutIsWeights", batch.rolloutIsWeights, rows);
  let sum = 0;
  return filled(mask, (_row, column, at) => {
    if (column === 0) sum = 0;
    const own = 1 - 2 * Math.exp(logProbs.data[at] ?? NaN) + (squares.data[at] ?? NaN);
    const scale = weights === undefined ? 1 : (weights.data[at] ?? NaN) ** 2;
    const weight = mask.data[at] ?? NaN;
    if (weight !== 0) sum += own * scale * weight;
    return sum;
  });
}

/** Returns the tail of the group's longest row, where it is longer than all others. */
function tailOf(
  group: readonly number[],
  mask: Matrix,
): { readonly row: number; readonly from: number } | undefined {
  const lengths = group.map((row) => {
    const start = row * mask.columns;
    return sumOf(mask.data.subarray(start, start + mask.columns));
  });
  const sorted = lengths.toSorted((left, right) => right - left);
  const [longest = 0, second = 0] = sorted;
  const row = group[lengths.indexOf(longest)];
  return longest > second && row !== undefined ? { row, from: second } : undefined;
}
