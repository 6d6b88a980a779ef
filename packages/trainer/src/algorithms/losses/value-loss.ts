/** The loss of a critic, and the entropy of a policy, with their gradients. */

import { asTensor, type Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { entropyFromLogits } from "../logits.ts";
import { maskedMean } from "../masked-sums.ts";
import { clamp, matrixOf, newMatrix } from "../matrix.ts";
import { leavesNoToken, validMask } from "../invalid-scores.ts";
import { aggLoss, type GlobalBatchInfo, type LossAggMode } from "./aggregation.ts";
import { slopeOfLarger } from "./policy-loss.ts";

/** All are [rows, tokens]. */
export interface ValueLossBatch {
  /** Values of the critic now. */
  readonly vpreds: Tensor;
  /** Values of the critic when the batch was prepared. */
  readonly values: Tensor;
  /** Targets of the critic. */
  readonly returns: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
  /**
   * False for a row whose score is invalid: the loss leaves it out. Default: all rows are valid.
   */
  readonly valid?: readonly boolean[];
}

/** Settings of the critic's loss. */
export interface ValueLossSettings extends GlobalBatchInfo {
  /** How far it may have moved. */
  readonly cliprangeValue: number;
  /** How losses of tokens become one number. Default token-mean. */
  readonly lossAggMode?: LossAggMode;
}

/** The critic's loss, with its gradient. */
export interface ValueLossResult {
  /** The loss of the batch. */
  readonly loss: number;
  /** The share of tokens where it has moved too far. */
  readonly clipfrac: number;
  /** d loss / d vpreds, [rows, tokens]. */
  readonly gradVpreds: Tensor<"float32">;
}

/**
 * Half of the larger square: of what it says, and of that within its range (verl
 * `compute_value_loss`); 0 where only invalid rows are there. Throws TrainerInputError.
 */
export function valueLoss(
  batch: ValueLossBatch,
  { cliprangeValue: range, lossAggMode, ...info }: ValueLossSettings,
): ValueLossResult {
  const vpreds = matrixOf("vpreds", batch.vpreds);
  const values = matrixOf("values", batch.values, vpreds);
  const returns = matrixOf("returns", batch.returns, vpreds);
  const mask = validMask(matrixOf("responseMask", batch.responseMask, vpreds), batch.valid);
  const losses = newMatrix(mask.rows, mask.columns);
  const slopes = new Float64Array(losses.data.length);
  // torch's bounds are of the type of its values: those that are met exactly are, too.
  const rounded = batch.values.dtype === "float32" ? Math.fround : Number;
  const reach = rounded(range);
  const clipped = newMatrix(mask.rows, mask.columns);
  for (let at = 0; at < slopes.length; at++) {
    const vpred = vpreds.data[at] ?? NaN;
    const value = values.data[at] ?? NaN;
    const target = returns.data[at] ?? NaN;
    const low = rounded(value - reach);
    const high = rounded(value + reach);
    const kept = clamp(vpred, low, high);
    const plain = (vpred - target) ** 2;
    const near = (kept - target) ** 2;
    const slope = 2 * (vpred - target);
    losses.data[at] = Math.max(plain, near);
    slopes[at] = slopeOfLarger(plain, slope, near, slope * keptSlope(vpred, low, high));
    if (near > plain) clipped.data[at] = 1;
  }
  const { loss, weights } = aggLoss(losses, mask, lossAggMode, info);
  const gradient = new Float32Array(slopes.length);
  for (let at = 0; at < slopes.length; at++) {
    const weight = weights.data[at] ?? NaN;
    if (weight !== 0) gradient[at] = 0.5 * weight * (slopes[at] ?? NaN);
  }
  return {
    loss: leavesNoToken(mask, batch.valid) ? 0 : 0.5 * loss,
    clipfrac: maskedMean(clipped, mask),
    gradVpreds: asTensor(gradient, [mask.rows, mask.columns]),
  };
}

/**
 * The slope of torch's `max(min(vpred, high), low)`: of two that are equal each has half of it, so
 * that a bound that is met exactly takes half, and a range of 0 three quarters.
 */
function keptSlope(vpred: number, low: number, high: number): number {
  const below = slopeOfLarger(-vpred, 1, -high, 0);
  return slopeOfLarger(Math.min(vpred, high), below, low, 0);
}

/** An entropy loss, with its gradient. */
export interface EntropyLossResult {
  /** The entropy of the tokens, put together by the aggregation mode. */
  readonly loss: number;
  /** [rows, tokens, vocabulary]. */
  readonly gradLogits: Tensor<"float32">;
}

/**
 * The entropy of each token's distribution, put together (verl `compute_entropy_loss`).
 *
 * @param logits [rows, tokens, vocabulary]
 */
export function entropyLoss(
  logits: Tensor,
  responseMask: Tensor,
  lossAggMode?: LossAggMode,
): EntropyLossResult {
  const [rows = 0, tokens = 0, vocabulary = 0] = logits.shape;
  if (logits.shape.length !== 3) {
    throw new TrainerInputError(
      "logits",
      `logits must have shape [rows, tokens, vocabulary]; it has [${logits.shape.join(", ")}]`,
    );
  }
  const mask = matrixOf("responseMask", responseMask, { rows, columns: tokens });
  const { values, gradLogits } = entropyFromLogits(logits);
  const entropies = matrixOf("entropies", values);
  const { loss, weights } = aggLoss(entropies, mask, lossAggMode);
  const gradient = gradLogits.data.map(
    (slope, index) => slope * (weights.data[Math.floor(index / vocabulary)] ?? NaN),
  );
  return { loss, gradLogits: { ...gradLogits, data: gradient } };
}
