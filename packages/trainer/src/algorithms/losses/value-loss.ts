/** The loss of a critic, and the entropy of a policy, with their gradients. */

import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { entropyFromLogits } from "../logits.ts";
import { maskedMean } from "../masked.ts";
import { clamp, filled, matrixOf, tensorOf } from "../matrix.ts";
import { aggLoss, type GlobalBatchInfo, type LossAggMode } from "./aggregation.ts";
import { larger, type TokenLoss } from "./policy-loss.ts";

/** All are [rows, tokens]. */
export interface ValueLossBatch {
  /** What the critic says now. */
  readonly vpreds: Tensor;
  /** What it said when the batch was made. */
  readonly values: Tensor;
  readonly returns: Tensor;
  readonly responseMask: Tensor;
}

export interface ValueLossSettings extends GlobalBatchInfo {
  /** How far it may have moved. */
  readonly cliprangeValue: number;
  readonly lossAggMode?: LossAggMode;
}

export interface ValueLossResult {
  readonly loss: number;
  /** The share of tokens where it has moved too far. */
  readonly clipfrac: number;
  readonly gradVpreds: Tensor<"float32">;
}

/** Half of the larger square: of what it says, and of that within its range (verl `compute_value_loss`). Throws TrainerInputError. */
export function valueLoss(
  batch: ValueLossBatch,
  { cliprangeValue: range, lossAggMode, ...info }: ValueLossSettings,
): ValueLossResult {
  const vpreds = matrixOf("vpreds", batch.vpreds);
  const values = matrixOf("values", batch.values, vpreds);
  const returns = matrixOf("returns", batch.returns, vpreds);
  const mask = matrixOf("responseMask", batch.responseMask, vpreds);
  const clipped = filled(mask, () => 0);
  const losses = Array.from(vpreds.data, (vpred, at): TokenLoss => {
    const value = values.data[at] as number;
    const target = returns.data[at] as number;
    const kept = clamp(vpred, value - range, value + range);
    const plain = { value: (vpred - target) ** 2, slope: 2 * (vpred - target) };
    const near = { value: (kept - target) ** 2, slope: kept === vpred ? 2 * (kept - target) : 0 };
    clipped.data[at] = near.value > plain.value ? 1 : 0;
    return larger(plain, near);
  });
  const { loss, weights } = aggLoss(
    filled(mask, (_row, _column, at) => (losses[at] as TokenLoss).value),
    mask,
    lossAggMode,
    info,
  );
  const gradient = filled(mask, (_row, _column, at) => {
    const weight = weights.data[at] as number;
    return weight === 0 ? 0 : 0.5 * weight * (losses[at] as TokenLoss).slope;
  });
  return { loss: 0.5 * loss, clipfrac: maskedMean(clipped, mask), gradVpreds: tensorOf(gradient) };
}

export interface EntropyLossResult {
  readonly loss: number;
  /** [rows, tokens, vocabulary]. */
  readonly gradLogits: Tensor<"float32">;
}

/** The entropy of each token's distribution, put together (verl `compute_entropy_loss`). @param logits [rows, tokens, vocabulary] */
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
    (slope, index) => slope * (weights.data[Math.floor(index / vocabulary)] as number),
  );
  return { loss, gradLogits: { ...gradLogits, data: gradient } };
}
