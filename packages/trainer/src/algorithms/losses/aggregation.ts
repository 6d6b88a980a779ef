/**
 * One loss from the losses of tokens (verl `agg_loss`). All modes are weighted sums, so the weights
 * are the gradient, too.
 *
 * In token modes masked values do no harm, whatever they are; in sequence modes a masked NaN does,
 * as in verl. The loss of no token at all is NaN where verl divides by the number of tokens, and
 * its gradient is 0.
 */

import { TrainerInputError } from "../../errors.ts";
import { countOf, divisorOf, maskedSum } from "../masked.ts";
import { type Matrix, newMatrix, rowSums } from "../matrix.ts";

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
  losses: Matrix,
  mask: Matrix,
  mode: LossAggMode = "token-mean",
  info: GlobalBatchInfo = {},
): Aggregated {
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

function tokenwise(losses: Matrix, mask: Matrix, factor: number): Aggregated {
  const weights = newMatrix(mask.rows, mask.columns);
  for (let at = 0; at < weights.data.length; at++) {
    weights.data[at] = weightOf(mask.data[at] ?? NaN, factor);
  }
  return { loss: maskedSum(losses, mask) * factor, weights };
}

/** @param ofLength by what the sum of a row counts */
function rowwise(
  losses: Matrix,
  mask: Matrix,
  info: GlobalBatchInfo,
  ofLength: (length: number) => number,
): Aggregated {
  const lengths = rowSums(mask);
  const rows = wholeCount(
    "globalBatchSize",
    info.globalBatchSize,
    info,
    () => lengths.filter((length) => length > 0).length,
  );
  const factor = (info.dpSize ?? 1) / rows;
  const weights = newMatrix(mask.rows, mask.columns);
  let sum = 0;
  for (let row = 0; row < mask.rows; row++) {
    const length = lengths[row] ?? NaN;
    if (length === 0) continue;
    const share = ofLength(length);
    let inRow = 0;
    for (let at = row * mask.columns; at < (row + 1) * mask.columns; at++) {
      const weight = mask.data[at] ?? NaN;
      inRow += (losses.data[at] ?? NaN) * weight;
      weights.data[at] = weightOf(weight, factor * share);
    }
    sum += inRow * share;
  }
  return { loss: sum * factor, weights };
}

function weightOf(mask: number, factor: number): number {
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
