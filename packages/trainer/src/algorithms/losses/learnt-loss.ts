/**
 * One loss, with its gradient, from the losses of tokens, which are worked out block by block: no
 * matrix of them is kept.
 */

import { asTensor } from "@rayling/data-proto";
import { divisorOf } from "../masked-sums.ts";
import { type RowShares, rowSharesOf } from "./aggregation.ts";
import type { PolicyLossResult, PolicyLossSettings, PolicyRows } from "./policy-loss.ts";
import {
  addLogRatios,
  addLosses,
  newTokenBlock,
  scaleBlock,
  type TokenBlock,
  tokensInto,
  tokensOfBlock,
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
   * A log ratio beyond this counts as this in `ppoKl`. Default: none is too large; null: `ppoKl` is
   * not worked out.
   */
  readonly maxLogRatio?: number | null;
}

/** Works out the losses and slopes of a block of tokens of this row. */
export type BlockLoss = (block: TokenBlock, row: number) => void;

/**
 * The losses of all tokens, weighted and put together, with their gradient; 0 where only invalid
 * rows are there.
 */
export function learntLossOf(
  rows: PolicyRows,
  { lossAggMode, globalBatchInfo, maxLogRatio = Infinity }: LearntSettings,
  fill: BlockLoss,
): LearntLoss {
  const { mask, count, isLeftOut } = rows;
  const shares = rowSharesOf(mask, lossAggMode, globalBatchInfo, () => count);
  const gradient = new Float32Array(mask.data.length);
  const work = { rows, shares, maxLogRatio, fill, block: newTokenBlock(), gradient };
  const sums = { losses: 0, logRatios: 0 };
  for (let row = 0; row < mask.rows; row++) addRow(work, sums, row);
  return {
    loss: isLeftOut ? 0 : sums.losses * shares.factor,
    gradLogProb: asTensor(gradient, [mask.rows, mask.columns]),
    ppoKl: -(sums.logRatios / divisorOf(count)),
  };
}

interface Work {
  readonly rows: PolicyRows;
  readonly shares: RowShares;
  readonly maxLogRatio: number | null;
  readonly fill: BlockLoss;
  readonly block: TokenBlock;
  readonly gradient: Float32Array;
}

/** A function of its own: V8 optimises one that is called often better than a long loop. */
function addRow(
  { rows, shares: { factor, shares, isOfRows }, maxLogRatio, fill, block, gradient }: Work,
  sums: { losses: number; logRatios: number },
  row: number,
): void {
  const { columns } = rows.mask;
  const share = shares[row] ?? NaN;
  const end = (row + 1) * columns;
  let inRow = isOfRows ? 0 : sums.losses;
  for (let from = row * columns; from < end; from += tokensOfBlock) {
    tokensInto(block, rows, [from, Math.min(from + tokensOfBlock, end)], isOfRows);
    if (block.length === 0) continue;
    fill(block, row);
    if (rows.weights !== undefined) scaleBlock(block, rows.weights.data);
    if (maxLogRatio !== null) sums.logRatios = addLogRatios(block, sums.logRatios, maxLogRatio);
    inRow = addLosses(block, inRow, factor * share, gradient);
  }
  if (!isOfRows) sums.losses = inRow;
  else if (share !== 0) sums.losses += inRow * share;
}
