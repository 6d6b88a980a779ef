/** Estimators that look at each token: what comes after it, and what could be expected there. */

import { TrainerInputError } from "../../errors.ts";
import { leavesFewerThan } from "../invalid-scores.ts";
import { type Whitening, whiteningOf } from "../masked-sums.ts";
import { type Matrix, type MatrixView, newMatrix, sourceOf } from "../matrix.ts";
import {
  type AdvantageBatch,
  type AdvantageEstimator,
  advantagesOf,
  neededView,
  newColumn,
  type Rows,
  rowsOf,
  whitened,
} from "./batch.ts";

/**
 * Generalised advantage estimation, whitened. Masked tokens are skipped: they take the next value
 * and the last advantage of the token after them. As in verl they are not set to 0, except in
 * invalid rows.
 */
export const gae: AdvantageEstimator = (batch, { gamma = 1, lam = 1 } = {}) => {
  const rows = rowsOf(batch);
  const values = neededView("values", batch.values, rows);
  const advantages = newMatrix(rows.mask.rows, rows.mask.columns);
  const returns = newColumn(rows);
  const estimate = { rows, values, gamma, lam, advantages, returns };
  for (let row = 0; row < advantages.rows; row++) estimateRow(estimate, row);
  return advantagesOf(rows, whitenedRows(advantages, rows, batch), returns);
};

interface Estimate {
  readonly rows: Rows;
  readonly values: MatrixView;
  readonly gamma: number;
  readonly lam: number;
  readonly advantages: Matrix;
  readonly returns: Float32Array;
}

/** A function of its own: V8 optimises one that is called often better than a long loop. */
function estimateRow(
  { rows, values, gamma, lam, advantages, returns }: Estimate,
  row: number,
): void {
  const { rewards, mask } = rows;
  const isValid = rows.isValid(row);
  let nextValue = 0;
  let last = 0;
  for (let at = (row + 1) * mask.columns - 1; at >= row * mask.columns; at--) {
    const value = values.data[at] ?? NaN;
    if (mask.data[at] !== 0) {
      const delta = (rewards.data[at] ?? NaN) + gamma * nextValue - value;
      last = delta + gamma * lam * last;
      nextValue = value;
    }
    advantages.data[at] = last;
    if (isValid) returns[at] = last + value;
  }
}

/** Whitens all tokens of valid rows, masked ones with them. */
function whitenedRows(
  advantages: Matrix,
  rows: Rows,
  { valid }: AdvantageBatch,
): Float32Array<ArrayBuffer> {
  const column = newColumn(rows);
  if (leavesFewerThan(2, rows.mask, valid)) return column;
  const whitening = whiteningOf(sourceOf(advantages), rows.mask);
  for (let row = 0; row < advantages.rows; row++) {
    if (rows.isValid(row)) whitenRow(column, advantages, row, whitening);
  }
  return column;
}

function whitenRow(
  column: Float32Array,
  { columns, data }: Matrix,
  row: number,
  { mean, scale }: Whitening,
): void {
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    column[at] = ((data[at] ?? NaN) - mean) * scale;
  }
}

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
  return advantagesOf(
    rows,
    whitened(sourceOf(returns), rows, batch),
    new Float32Array(returns.data),
  );
};

/** The sum of what follows, less what the greedy answer was rewarded with. */
export const remax: AdvantageEstimator = (batch) => {
  const rows = rowsOf(batch);
  const { rewards, mask } = rows;
  const baselines = batch.rewardBaselines?.data;
  if (baselines?.length !== rewards.rows) {
    throw new TrainerInputError(
      "rewardBaselines",
      `remax needs the reward of the greedy answer for each of ${rewards.rows} rows; there are ${baselines?.length ?? "none"}`,
    );
  }
  const returns = newColumn(rows);
  const advantages = newColumn(rows);
  for (let row = 0; row < rewards.rows; row++) {
    const baseline = baselines[row] ?? NaN;
    let sum = 0;
    for (let at = (row + 1) * rewards.columns - 1; at >= row * rewards.columns; at--) {
      const weight = mask.data[at] ?? NaN;
      if (weight !== 0) sum += (rewards.data[at] ?? NaN) * weight;
      returns[at] = sum;
      // An invalid row has no weight anywhere, and nothing to return.
      advantages[at] = sum - baseline * weight;
    }
  }
  return advantagesOf(rows, advantages, returns);
};
