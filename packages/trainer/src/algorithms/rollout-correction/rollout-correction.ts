/**
 * Rollouts of another policy than the one that is trained (an older one, or the same at another
 * precision): weights that make up for it, and a mask without what is too far off
 * (verl/trainer/ppo/rollout_corr_helper.py).
 */

import { asTensor, type Tensor, zeros } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import {
  type Matrix,
  type MatrixView,
  newMatrix,
  selectedRows,
  tensorOf,
  viewOf,
  withRows,
} from "../matrix.ts";
import { leavesNoToken, validMask } from "../invalid-scores.ts";
import { newOffPolicyCollector, offPolicyMetrics } from "./off-policy.ts";
import { eachRatioRow, type RatioBatch } from "./ratio-rows.ts";
import { checkTokens, newRejectionCollector } from "./rejection.ts";
import { type RolloutCorrectionSettings, withDefaults } from "./correction-settings.ts";
import { newWeightCollector } from "./weights.ts";

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
 * that differ, and where no token counts.
 */
export function correctRollouts(
  batch: RolloutCorrectionBatch,
  settings: RolloutCorrectionSettings = {},
): RolloutCorrection {
  const logProb = viewOf("oldLogProbs", batch.oldLogProbs);
  const rolloutLogProb = viewOf("rolloutLogProbs", batch.rolloutLogProbs, logProb);
  const mask = viewOf("responseMask", batch.responseMask, logProb);
  const { valid } = batch;
  const corrected = correction({ logProb, rolloutLogProb, mask }, settings, { valid });
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

interface CorrectionOptions {
  /** False for a row that is not looked at. */
  readonly valid: readonly boolean[] | undefined;
  /** Whether the weights themselves are wanted. Default true. */
  readonly keepsWeights?: boolean;
}

/** Corrects rollouts given as matrices. @throws TrainerInputError */
export function correction(
  batch: RatioBatch,
  settings: RolloutCorrectionSettings,
  { valid, keepsWeights = true }: CorrectionOptions,
): Correction {
  const { logProb, rolloutLogProb, mask } = batch;
  if (valid?.includes(false) !== true) return correctionOfAll(batch, settings, keepsWeights);
  if (leavesNoToken(validMask(mask, valid), valid)) {
    return { weights: undefined, mask, metrics: {} };
  }
  const rows = [...valid.keys()].filter((row) => valid[row]);
  const own = correctionOfAll(
    {
      logProb: selectedRows(logProb, rows),
      rolloutLogProb: selectedRows(rolloutLogProb, rows),
      mask: selectedRows(mask, rows),
    },
    settings,
    keepsWeights,
  );
  const none = newMatrix(mask.rows, mask.columns);
  return {
    weights: own.weights && withRows(none, rows, own.weights),
    mask: withRows(mask, rows, own.mask),
    metrics: own.metrics,
  };
}

function correctionOfAll(
  batch: RatioBatch,
  settings: RolloutCorrectionSettings,
  keepsWeights: boolean,
): Correction {
  const { mask } = batch;
  checkTokens(mask);
  const { rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize, rolloutRs, rolloutRsThreshold } =
    withDefaults(settings);
  const weights = keepsWeights ? newMatrix(mask.rows, mask.columns) : undefined;
  const weighted =
    rolloutIs === null || rolloutIsThreshold === null
      ? undefined
      : newWeightCollector(
          batch,
          { rolloutIs, rolloutIsThreshold, rolloutIsBatchNormalize },
          weights,
        );
  const rejected =
    rolloutRs === null ? undefined : newRejectionCollector(mask, rolloutRs, rolloutRsThreshold);
  const offPolicy = newOffPolicyCollector(mask.rows);
  eachRatioRow(batch, (row) => {
    weighted?.add(row);
    rejected?.add(row);
    offPolicy.add(row);
  });
  const { mask: kept, metrics } = rejected?.rejection() ?? { mask, metrics: {} };
  return {
    weights: weighted && weights,
    mask: kept,
    metrics: prefixed({ ...weighted?.metrics(), ...metrics, ...offPolicy.metrics() }),
  };
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
  const own = viewOf("logProb", batch.logProb);
  const rollout = viewOf("rolloutLogProbs", batch.rolloutLogProbs, own);
  return prefixed(offPolicyMetrics(own, rollout, viewOf("responseMask", batch.responseMask, own)));
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
