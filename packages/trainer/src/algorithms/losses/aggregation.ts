/**
 * One loss from the losses of tokens (verl `agg_loss`). All modes are weighted sums, so the weights
 * are the gradient, too.
 *
 * In token modes masked values do no harm, whatever they are; in sequence modes a masked NaN does,
 * as in verl. The loss of no token at all is NaN where verl divides by the number of tokens, and
 * its gradient is 0.
 */

import { TrainerInputError } from "../../errors.ts";
import { divisorOf } from "../masked-sums.ts";
import { type Matrix, type MatrixView, newMatrix } from "../matrix.ts";
import { runsOf, type TokenRuns } from "../runs.ts";

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
  const { factor, shares, isOfRows } = rowSharesOf(mask, mode, info);
  const weights = newMatrix(mask.rows, mask.columns);
  let sum = 0;
  for (let row = 0, at = 0; row < mask.rows; row++) {
    const share = shares[row] ?? NaN;
    if (share === 0) {
      at += mask.columns;
      continue;
    }
    let inRow = isOfRows ? 0 : sum;
    for (const end = at + mask.columns; at < end; at++) {
      const counted = mask.data[at] ?? NaN;
      if (counted !== 0) weights.data[at] = counted * (factor * share);
      if (counted !== 0 || isOfRows) inRow += (losses.data[at] ?? NaN) * counted;
    }
    sum = isOfRows ? sum + inRow * share : inRow;
  }
  return { loss: sum * factor, weights };
}

/**
 * The weights of rows in a loss, which is `factor` times the sum of all rows. Each row adds its sum
 * of masked losses times its share.
 */
export interface RowShares {
  readonly factor: number;
  /** 0 for a row that is left out. */
  readonly shares: Float64Array;
  /** Whether the mode is one of rows, in which a masked NaN does harm. */
  readonly isOfRows: boolean;
}

/**
 * @param runsOfMask returns the tokens that count
 * @throws TrainerInputError as aggLoss
 */
export function rowSharesOf(
  mask: MatrixView,
  mode: LossAggMode = "token-mean",
  info: GlobalBatchInfo = {},
  runsOfMask: () => Pick<TokenRuns, "count" | "lengths"> = () => runsOf(mask),
): RowShares {
  switch (mode) {
    case "token-mean": {
      const tokens = wholeCount(
        "batchNumTokens",
        info.batchNumTokens,
        info,
        () => runsOfMask().count,
      );
      return ofTokens(mask, (info.dpSize ?? 1) / tokens);
    }
    case "token-sum":
      return ofTokens(mask, info.dpSize ?? 1);
    case "seq-mean-token-sum":
      return ofRows(runsOfMask().lengths, info, () => 1);
    case "seq-mean-token-sum-norm": {
      const scale = info.lossScaleFactor ?? mask.columns;
      return ofRows(runsOfMask().lengths, info, () => 1 / scale);
    }
    case "seq-mean-token-mean":
      return ofRows(runsOfMask().lengths, info, (length) => 1 / divisorOf(length));
    default:
      throw new TrainerInputError(
        "lossAggMode",
        `there is no loss_agg_mode "${String(mode)}"; there are ${lossAggModes.join(", ")}`,
      );
  }
}

function ofTokens({ rows }: MatrixView, factor: number): RowShares {
  return { factor, shares: new Float64Array(rows).fill(1), isOfRows: false };
}

/** @param shareOf by what the sum of a row counts */
function ofRows(
  lengths: Float64Array,
  info: GlobalBatchInfo,
  shareOf: (length: number) => number,
): RowShares {
  const rows = wholeCount(
    "globalBatchSize",
    info.globalBatchSize,
    info,
    () => lengths.filter((length) => length > 0).length,
  );
  return {
    factor: (info.dpSize ?? 1) / rows,
    shares: lengths.map((length) => (length === 0 ? 0 : shareOf(length))),
    isOfRows: true,
  };
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
