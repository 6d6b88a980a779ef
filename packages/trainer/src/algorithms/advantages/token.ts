/** Estimators that look at each token: what comes after it, and what could be expected there. */

import { TrainerInputError } from "../../errors.ts";
import { type Whitening, whiteningOf } from "../masked-sums.ts";
import { type MatrixView, unboxed } from "../matrix.ts";
import {
  type AdvantageEstimator,
  advantagesOf,
  hasSpread,
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
  const { mask } = rows;
  const data = new Float64Array(mask.columns);
  const estimate = { rows, values, gamma, decay: gamma * lam, data };
  const source = {
    data,
    startOf(row: number): number {
      estimateRow(estimate, row);
      return 0;
    },
  };
  const advantages = newColumn(rows);
  // Behind the last token that counts, a return is the value.
  const returns = new Float32Array(values.data);
  const whitening = hasSpread(rows) ? whiteningOf(source, rows.runs) : undefined;
  for (let row = 0; row < mask.rows; row++) {
    if (!rows.isValid(row)) {
      returns.fill(0, row * mask.columns, (row + 1) * mask.columns);
      continue;
    }
    const end = estimateRow(estimate, row);
    returnsInto(returns, estimate, row, end);
    if (whitening !== undefined) whitenRow(advantages, estimate, { row, end }, whitening);
  }
  return advantagesOf(rows, advantages, returns);
};

/** One row at a time: to work a row out again costs less than memory for all of them. */
interface Estimate {
  readonly rows: Rows;
  readonly values: MatrixView;
  readonly gamma: number;
  /** gamma times lambda. */
  readonly decay: number;
  /** The advantages of a row. */
  readonly data: Float64Array;
}

/**
 * Fills in the advantages of a row up to its last token that counts; behind it they are 0. Returns
 * the column behind that token. A function of its own: V8 optimises one that is called often better
 * than a long loop.
 */
function estimateRow({ rows, values, data, ...rates }: Estimate, row: number): number {
  const { columns, firsts, starts, ends } = rows.runs;
  const { data: rewards } = rows.rewards;
  const { data: given } = values;
  const from = row * columns;
  const first = firsts[row] ?? NaN;
  const last = firsts[row + 1] ?? NaN;
  const gamma = unboxed(rates.gamma);
  const decay = unboxed(rates.decay);
  let nextValue = 0;
  let advantage = 0;
  for (let run = last - 1; run >= first; run--) {
    const start = starts[run] ?? NaN;
    for (let at = (ends[run] ?? NaN) - 1; at >= start; at--) {
      const value = given[at] ?? NaN;
      const delta = (rewards[at] ?? NaN) + gamma * nextValue - value;
      advantage = delta + decay * advantage;
      nextValue = value;
      data[at - from] = advantage;
    }
    // Tokens before it that do not count.
    const behind = run === first ? from : (ends[run - 1] ?? NaN);
    if (behind < start) data.fill(unboxed(advantage), behind - from, start - from);
  }
  return first === last ? 0 : (ends[last - 1] ?? NaN) - from;
}

function returnsInto(
  returns: Float32Array,
  { values: { columns, data: values }, data }: Estimate,
  row: number,
  end: number,
): void {
  const from = row * columns;
  for (let column = 0; column < end; column++) {
    returns[from + column] = (data[column] ?? NaN) + (values[from + column] ?? NaN);
  }
}

/** Whitens all tokens of a row, masked ones with them. */
function whitenRow(
  advantages: Float32Array,
  { values: { columns }, data }: Estimate,
  { row, end }: { readonly row: number; readonly end: number },
  whitening: Whitening,
): void {
  const from = row * columns;
  const mean = unboxed(whitening.mean);
  const scale = unboxed(whitening.scale);
  for (let column = 0; column < end; column++) {
    advantages[from + column] = ((data[column] ?? NaN) - mean) * scale;
  }
  advantages.fill((0 - mean) * scale, from + end, from + columns);
}

/** The discounted sum of what follows, whitened; tokens that do not count are passed over. */
export const reinforcePlusPlus: AdvantageEstimator = (batch, { gamma = 1 } = {}) => {
  const rows = rowsOf(batch);
  const returns = newColumn(rows);
  const sums = { rows, gamma, data: new Float64Array(rows.mask.columns), returns };
  const source = {
    data: sums.data,
    startOf(row: number): number {
      discountRow(sums, row);
      return 0;
    },
  };
  const advantages = whitened(source, rows);
  // Then no row was looked at, but all have returns.
  if (!hasSpread(rows)) {
    for (let row = 0; row < rows.mask.rows; row++) discountRow(sums, row);
  }
  return advantagesOf(rows, advantages, returns);
};

function discountRow(
  {
    rows,
    data,
    returns,
    ...rates
  }: Pick<Estimate, "rows" | "gamma" | "data"> & { readonly returns: Float32Array },
  row: number,
): void {
  const { columns, firsts, starts, ends } = rows.runs;
  const { data: rewards } = rows.rewards;
  const from = row * columns;
  const first = firsts[row] ?? NaN;
  const gamma = unboxed(rates.gamma);
  let running = 0;
  for (let run = (firsts[row + 1] ?? NaN) - 1; run >= first; run--) {
    const start = starts[run] ?? NaN;
    for (let at = (ends[run] ?? NaN) - 1; at >= start; at--) {
      running = (rewards[at] ?? NaN) + gamma * running;
      data[at - from] = running;
      returns[at] = running;
    }
  }
}

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
