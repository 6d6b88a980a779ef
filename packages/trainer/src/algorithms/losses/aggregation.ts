/**
 * One loss from the losses of tokens (verl `agg_loss`). All modes are weighted sums, so the weights
 * are the gradient, too.
 *
 * In token modes masked values do no harm, whatever they are; in sequence modes a masked NaN does,
 * as in verl. The loss of no token at all is NaN where verl divides by the number of tokens, and
 * its gradient is 0.
 */

import { TrainerInputError } from "../../errors.ts";
import { countOf, divisorOf, maskedSum } from "../masked-sums.ts";
import { type Matrix, type MatrixView, newMatrix, rowSums } from "../matrix.ts";

/** verl's names. */
export const lossAggModes = [
  "token-mean",
  "token-sum",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
  "seq-mean-token-mean",
] as const;
/** verl `loss_agg_mode`: how losses of tokens become one number. */
export type LossAggMode = (typeof lossAggModes)[number];

/**
 * Counts of the whole batch for a process that works on a part of it (verl `global_batch_info`).
 */
export interface GlobalBatchInfo {
  /** Default 1. */
  readonly dpSize?: number;
  /** Number of tokens that count. Default: counted in this part. */
  readonly batchNumTokens?: number;
  /** Number of rows. Default: rows of this part with tokens that count. */
  readonly globalBatchSize?: number;
  /** Divisor of seq-mean-token-sum-norm. Default: the width of a row. */
  readonly lossScaleFactor?: number;
}

/** The loss of a batch, with its gradient. */
export interface Aggregated {
  /** The loss of the whole batch. */
  readonly loss: number;
  /** Weight of each token's loss: d loss / d token loss. */
  readonly weights: Matrix;
}

/**
 * @throws TrainerInputError for an unknown mode, and for several parts without the count of the
 * whole
 */
export function aggLoss(
  losses: MatrixView,
  mask: MatrixView,
  mode: LossAggMode = "token-mean",
  info: GlobalBatchInfo = {},
): Aggregated {
  const { loss, factors } = aggregate(losses, mask, mode, info);
  const weights = newMatrix(mask.rows, mask.columns);
  for (let row = 0, at = 0; row < mask.rows; row++) {
    const factor = factors[row] ?? NaN;
    for (const end = at + mask.columns; at < end; at++) {
      weights.data[at] = weightOf(mask.data[at] ?? NaN, factor);
    }
  }
  return { loss, weights };
}

/** A loss, and what the mask of each row's tokens is multiplied by in it. */
export interface RowFactors {
  readonly loss: number;
  readonly factors: Float64Array;
}

/** As `aggLoss`, with a factor of each row in place of a weight of each token. */
export function aggregate(
  losses: MatrixView,
  mask: MatrixView,
  mode: LossAggMode = "token-mean",
  info: GlobalBatchInfo = {},
): RowFactors {
  switch (mode) {
    case "token-mean": {
      const tokens = wholeCount("batchNumTokens", info.batchNumTokens, info, () => countOf(mask));
      return tokenwise(losses, mask, (info.dpSize ?? 1) / tokens);
    }
    case "token-sum":
      return tokenwise(losses, mask, info.dpSize ?? 1);
    case "seq-mean-token-sum":
      return rowwise(losses, mask, info, () => 1);
    case "seq-mean-token-sum-norm": {
      const scale = info.lossScaleFactor ?? mask.columns;
      return rowwise(losses, mask, info, () => 1 / scale);
    }
    case "seq-mean-token-mean":
      return rowwise(losses, mask, info, (length) => 1 / divisorOf(length));
    default:
      throw new TrainerInputError(
        "lossAggMode",
        `there is no loss_agg_mode "${String(mode)}"; there are ${lossAggModes.join(", ")}`,
      );
  }
}

function tokenwise(losses: MatrixView, mask: MatrixView, factor: number): RowFactors {
  const factors = new Float64Array(mask.rows).fill(factor);
  return { loss: maskedSum(losses, mask) * factor, factors };
}

/** @param ofLength by what the sum of a row counts */
function rowwise(
  losses: MatrixView,
  mask: MatrixView,
  info: GlobalBatchInfo,
  ofLength: (length: number) => number,
): RowFactors {
  const lengths = rowSums(mask);
  const rows = wholeCount(
    "globalBatchSize",
    info.globalBatchSize,
    info,
    () => lengths.filter((length) => length > 0).length,
  );
  const factor = (info.dpSize ?? 1) / rows;
  const factors = new Float64Array(mask.rows);
  let sum = 0;
  for (let row = 0; row < mask.rows; row++) {
    const length = lengths[row] ?? NaN;
    if (length === 0) continue;
    const share = ofLength(length);
    let inRow = 0;
    for (let at = row * mask.columns; at < (row + 1) * mask.columns; at++) {
      inRow += (losses.data[at] ?? NaN) * (mask.data[at] ?? NaN);
    }
    factors[row] = factor * share;
    sum += inRow * share;
  }
  return { loss: sum * factor, factors };
}

/** Returns what a token's loss is multiplied by. */
export function weightOf(mask: number, factor: number): number {
  return mask === 0 ? 0 : mask * factor;
}

function wholeCount(
  name: keyof GlobalBatchInfo,
  given: number | undefined,
  { dpSize = 1 }: GlobalBatchInfo,
  here: () => number,
): number {
  if (given !== undefined) return given;
  if (dpSize > 1) {
    throw new TrainerInputError(name, `${name} is needed where dpSize is above 1; it is ${dpSize}`);
  }
  return here();
}
