/**
 * One loss, with its gradient, from the losses of tokens, which are worked out block by block: no
 * matrix of them is kept.
 */

import { asTensor } from "@rayling/data-proto";
import { sumOf } from "../../values/sums.ts";
import { divisorOf } from "../masked-sums.ts";
import { type RowShares, rowSharesOf } from "./aggregation.ts";
import type { PolicyLossResult, PolicyLossSettings, PolicyRows } from "./policy-loss.ts";
import {
  addBlock,
  type BlockSource,
  eachBlock,
  newTokenBlock,
  scaleBlock,
  type TokenBlock,
} from "./token-block.ts";

/** The loss without metrics of its own, and verl's estimate of the divergence. */
export interface LearntLoss extends Omit<PolicyLossResult, "metrics"> {
  /** The mean of -logRatio, within what is kept of it. */
  readonly ppoKl: number;
}

export interface LearntSettings extends Pick<
  PolicyLossSettings,
  "lossAggMode" | "globalBatchInfo"
> {
  /**
   * A log ratio beyond this counts as this in `ppoKl`. Default: none is too large.
   */
  readonly maxLogRatio?: number;
}

/** Works out the losses and slopes of a block of tokens of this row. */
export type BlockLoss = (block: TokenBlock, row: number) => void;

/**
 * The losses of all tokens, weighted and put together, with their gradient; 0 where only invalid
 * rows are there.
 */
export function learntLossOf(
  rows: PolicyRows,
  settings: LearntSettings,
  fill: BlockLoss,
): LearntLoss {
  const work = newLossWork(rows, settings);
  for (let row = 0; row < rows.mask.rows; row++) fillRow(work, row, fill);
  return learntOf(work);
}

/** A loss that is being worked out, row by row. */
export interface LossWork extends BlockSource {
  readonly shares: RowShares;
  readonly maxLogRatio: number;
  readonly gradient: Float32Array<ArrayBuffer>;
  /** For each row, before its share. */
  readonly losses: Float64Array;
  readonly logRatios: Float64Array;
}

export function newLossWork(
  rows: PolicyRows,
  { lossAggMode, globalBatchInfo, maxLogRatio = Infinity }: LearntSettings,
): LossWork {
  const { mask, runs } = rows;
  const shares = rowSharesOf(mask, lossAggMode, globalBatchInfo, () => runs);
  return {
    rows,
    shares,
    keepsSpoilt: shares.isOfRows,
    maxLogRatio,
    block: newTokenBlock(),
    gradient: new Float32Array(mask.data.length),
    losses: new Float64Array(mask.rows),
    logRatios: new Float64Array(mask.rows),
  };
}

/**
 * Works out a row, in place of what it was before, if it was worked out already. A function of its
 * own: V8 optimises one that is called often better than a long loop.
 */
export function fillRow(work: LossWork, row: number, fill: BlockLoss): void {
  const { rows, shares, maxLogRatio, gradient } = work;
  const sums = { losses: 0, logRatios: 0 };
  const into = { factor: shares.factor * (shares.shares[row] ?? NaN), kept: maxLogRatio, gradient };
  eachBlock(work, row, (block) => {
    fill(block, row);
    if (rows.weights !== undefined) scaleBlock(block, rows.weights.data);
    addBlock(block, sums, into);
  });
  work.losses[row] = sums.losses;
  work.logRatios[row] = sums.logRatios;
}

export function learntOf({ rows, shares, gradient, losses, logRatios }: LossWork): LearntLoss {
  const { mask, runs, isLeftOut } = rows;
  let loss = 0;
  for (let row = 0; row < mask.rows; row++) {
    const share = shares.shares[row] ?? NaN;
    // A row that is left out may have no number.
    if (share !== 0) loss += (losses[row] ?? NaN) * share;
  }
  return {
    loss: isLeftOut ? 0 : loss * shares.factor,
    gradLogProb: asTensor(gradient, [mask.rows, mask.columns]),
    ppoKl: -(sumOf(logRatios) / divisorOf(runs.count)),
  };
}
