/**
 * Rollouts of another policy than the one that is trained (an older one, or the same at another
 * precision): weights that make up for it, and a mask without what is too far off
 * (verl/trainer/ppo/rollout_corr_helper.py).
 */

import { asTensor, type Tensor, zeros } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import {
  difference,
  type Matrix,
  type MatrixView,
  matrixOf,
  newMatrix,
  selectedRows,
  tensorOf,
  withRows,
} from "../matrix.ts";
import { leavesFewerThan, validMask } from "../invalid-scores.ts";
import { offPolicyMetrics } from "./off-policy.ts";
import { checkTokens, rejectRollouts } from "./rejection.ts";
import { type RolloutCorrectionSettings, withDefaults } from "./correction-settings.ts";
import { rolloutWeights } from "./weights.ts";

/** All are [rows, tokens]. */
export interface RolloutCorrectionBatch {
  /**
   * Log-probabilities of the trained policy before the step; in the bypass, of the policy as it is
   * now.
   */
  readonly oldLogProbs: Tensor;
  /** Log-probabilities that the policy reported with the rollout. */
  readonly rolloutLogProbs: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
  /**
   * False for a row whose score is invalid: it is not looked at, keeps its mask, and has no weight.
   * Default: all are valid.
   */
  readonly valid?: readonly boolean[];
}

/** Weights, mask and metrics of a rollout correction. */
export interface RolloutCorrection {
  /** For the losses. Absent where no weights are asked for. */
  readonly rolloutIsWeights?: Tensor<"float32">;
  /**
   * Without what was rejected, in the dtype that it had. Takes the place of the mask before
   * advantages are worked out.
   */
  readonly responseMask: Tensor;
  /** `rollout_corr/*`. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Corrects rollouts of another policy (verl `compute_rollout_correction_and_rejection_mask`).
 * Without a valid row nothing is corrected. Throws TrainerInputError for unknown settings, shapes
 * that differ, and where no token counts or no weight is left.
 */
export function correctRollouts(
  batch: RolloutCorrectionBatch,
  settings: RolloutCorrectionSettings = {},
): RolloutCorrection {
  const old = matrixOf("oldLogProbs", batch.oldLogProbs);
  const rollout = matrixOf("rolloutLogProbs", batch.rolloutLogProbs, old);
  const mask = matrixOf("responseMask", batch.responseMask, old);
  const corrected = correction(old, rollout, { mask, valid: batch.valid }, settings);
  return {
    ...(corrected.weights === undefined ? {} : { rolloutIsWeights: tensorOf(corrected.weights) }),
    responseMask: likeTensor(corrected.mask, batch.responseMask),
    metrics: corrected.metrics,
  };
}

export interface Correction {
  readonly weights: Matrix | undefined;
  readonly mask: MatrixView;
  readonly metrics: Readonly<Record<string, number>>;
}

/** Corrects rollouts given as matrices. @throws TrainerInputError */
export function correction(
  logProb: MatrixView,
  rolloutLogProb: MatrixView,
  { mask, valid }: { readonly mask: MatrixView; readonly valid: readonly boolean[] | undefined },
  settings: RolloutCorrectionSettings,
): Correction {
  if (valid?.includes(false) !== true) {
    return correctionOfAll(logProb, rolloutLogProb, mask, settings);
  }
  if (leavesFewerThan(1, validMask(mask, valid), valid)) {
    return { weights: undefined, mask, metrics: {} };
  }
  const rows = [...valid.keys()].filter((row) => valid[row]);
  const own = correctionOfAll(
    selectedRows(logProb, rows),
    selectedRows(rolloutLogProb, rows),
    selectedRows(mask, rows),
    settings,
  );
  const none = newMatrix(mask.rows, mask.columns);
  return {
    weights: own.weights && withRows(none, rows, own.weights),
    mask: withRows(mask, rows, own.mask),
    metrics: own.metrics,
  };
}

function correctionOfAll(
  logProb: MatrixView,
  rolloutLogProb: MatrixView,
  mask: MatrixView,
  settings: RolloutCorrectionSettings,
): Correction {
  checkTokens(mask);
  const { rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize, rolloutRs, rolloutRsThreshold } =
    withDefaults(settings);
  const logRatio = difference(logProb, rolloutLogProb);
  const weighted =
    rolloutIs === null || rolloutIsThreshold === null
      ? undefined
      : rolloutWeights(logRatio, mask, { rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize });
  const rejected =
    rolloutRs === null
      ? { mask, metrics: {} }
      : rejectRollouts(logRatio, mask, rolloutRs, rolloutRsThreshold);
  const metrics = {
    ...weighted?.metrics,
    ...rejected.metrics,
    ...offPolicyMetrics(logProb, rolloutLogProb, mask),
  };
  return { weights: weighted?.weights, mask: rejected.mask, metrics: prefixed(metrics) };
}

/**
 * verl `compute_rollout_corr_metrics_from_logprobs`: how far the policy of now is from the
 * rollout's, while it is trained. Throws TrainerInputError.
 */
export function rolloutCorrectionMetrics(batch: {
  readonly logProb: Tensor;
  readonly rolloutLogProbs: Tensor;
  readonly responseMask: Tensor;
}): Record<string, number> {
  const own = matrixOf("logProb", batch.logProb);
  const rollout = matrixOf("rolloutLogProbs", batch.rolloutLogProbs, own);
  return prefixed(
    offPolicyMetrics(own, rollout, matrixOf("responseMask", batch.responseMask, own)),
  );
}

/**
 * The bypass (verl `apply_bypass_mode`): what the rollout said of its own log-probs is taken for
 * the old policy's, and the loss makes up for the rest. Throws TrainerInputError where the rollout
 * said nothing.
 */
export function bypassed(
  rolloutLogProbs: Tensor | undefined,
  rolloutCorrection: RolloutCorrectionSettings,
): {
  readonly oldLogProbs: Tensor;
  /** Name of the policy loss. */
  readonly lossMode: "bypass_mode";
  readonly rolloutCorrection: RolloutCorrectionSettings;
} {
  if (rolloutLogProbs !== undefined) {
    return { oldLogProbs: rolloutLogProbs, lossMode: "bypass_mode", rolloutCorrection };
  }
  throw new TrainerInputError(
    "rolloutLogProbs",
    "rolloutLogProbs are missing, which bypassMode needs: let the rollout return log-probs",
  );
}

function prefixed(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [`rollout_corr/${name}`, value]),
  );
}

function likeTensor({ data }: MatrixView, { dtype, shape }: Tensor): Tensor {
  const result = zeros(shape, dtype);
  result.data.set(data);
  return asTensor(result.data, shape, dtype);
}
