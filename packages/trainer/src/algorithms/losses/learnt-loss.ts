/**
 * One loss, with its gradient, from the losses of tokens, which are worked out block by block: no
 * matrix of them is kept.
 */

import { asTensor } from "@rayling/data-proto";
import { divisorOf } from "../masked-sums.ts";
import { rowSharesOf } from "./aggregation.ts";
import type { PolicyLossResult, PolicyLossSettings, PolicyRows } from "./policy-loss.ts";
import {
  addLogRatios,
  addLosses,
  gradientOf,
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

/**
 * The losses of all tokens, weighted and put together, with their gradient; 0 where only invalid
 * rows are there.
 *
 * @param fill works out the losses and slopes of a block of tokens of this row
 */
export function learntLossOf(
  rows: PolicyRows,
  { lossAggMode, globalBatchInfo, maxLogRatio = Infinity }: LearntSettings,
  fill: (block: TokenBlock, row: number) => void,
): LearntLoss {
  const { mask, weights, count, isLeftOut } = rows;
  const { factor, shares, isOfRows } = rowSharesOf(mask, lossAggMode, globalBatchInfo, () => count);
  const gradient = new Float32Array(mask.data.length);
  const block = newTokenBlock();
  let sum = 0;
  let logRatios = 0;
  for (let row = 0; row < mask.rows; row++) {
    const share = shares[row] ?? NaN;
    const end = (row + 1) * mask.columns;
    let inRow = isOfRows ? 0 : sum;
    for (let from = row * mask.columns; from < end; from += tokensOfBlock) {
      tokensInto(block, rows, [from, Math.min(from + tokensOfBlock, end)], isOfRows);
      if (block.length === 0) continue;
      fill(block, row);
      if (weights !== undefined) scaleBlock(block, weights.data);
      if (maxLogRatio !== null) logRatios = addLogRatios(block, logRatios, maxLogRatio);
      inRow = addLosses(block, inRow);
      gradientOf(block, factor * share, gradient);
    }
    if (!isOfRows) sum = inRow;
    else if (share !== 0) sum += inRow * share;
  }
  return {
    loss: isLeftOut ? 0 : sum * factor,
    gradLogProb: asTensor(gradient, [mask.rows, mask.columns]),
    ppoKl: -(logRatios / divisorOf(count)),
  };
}
