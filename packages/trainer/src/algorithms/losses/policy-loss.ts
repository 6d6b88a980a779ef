/**
 * Input and output of the policy losses: the loss, verl's metrics, and the gradient of each
 * log-probability. The loops over tokens create no objects.
 */

import type { Tensor } from "@rayling/data-proto";
import { divisorOf } from "../masked-sums.ts";
import { type MatrixView, viewOf } from "../matrix.ts";
import { runsOf, type TokenRuns } from "../runs.ts";
import type { RolloutCorrectionSettings } from "../rollout-correction/correction-settings.ts";
import { leavesNoToken, validMask } from "../invalid-scores.ts";
import type { GlobalBatchInfo, LossAggMode } from "./aggregation.ts";

/** All are [rows, tokens]. */
export interface PolicyLossBatch {
  /** Log-probabilities of the policy before the update. */
  readonly oldLogProb: Tensor;
  /** Log-probabilities of the policy now. */
  readonly logProb: Tensor;
  /** Advantage of each token. */
  readonly advantages: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
  /** Importance weights of the rollout correction. Default: none. */
  readonly rolloutIsWeights?: Tensor;
  /** Log-probabilities that the policy reported with the rollout; needed by decoupled. */
  readonly rolloutLogProbs?: Tensor;
  /**
   * False for a row whose score is invalid: the loss leaves it out. Default: all rows are valid.
   */
  readonly valid?: readonly boolean[];
}

/** verl's `actor_rollout_ref.actor.*` and `policy_loss.*`. */
export interface PolicyLossSettings {
  /** Default "token-mean". */
  readonly lossAggMode?: LossAggMode;
  /** Range of the clip where `clipRatioLow` or `clipRatioHigh` is null. Default 0.2. */
  readonly clipRatio?: number;
  /** Lower range of the clip. Default 0.2; null takes `clipRatio`. */
  readonly clipRatioLow?: number | null;
  /** Upper range of the clip. Default 0.2; null takes `clipRatio`. */
  readonly clipRatioHigh?: number | null;
  /** Bound of the dual clip and of dppo. Default 3. */
  readonly clipRatioC?: number;
  /** Temperature of sapo for advantages above 0. Default 1. */
  readonly tauPos?: number;
  /** Temperature of sapo for the other advantages. Default 1.05. */
  readonly tauNeg?: number;
  /** Weight of the squared log ratio; needed by dro. */
  readonly droBeta?: number;
  /** Share of the tokens that clip_cov leaves out. Default 0.0002. */
  readonly clipCovRatio?: number;
  /** Default 1. */
  readonly clipCovLb?: number;
  /** Default 5. */
  readonly clipCovUb?: number;
  /**
   * Returns a permutation of so many numbers for clip_cov. Default: random; a training draws it by
   * its seed.
   */
  readonly permutation?: (count: number) => readonly number[];
  /** Share of the tokens that kl_cov penalises. Default 0.0002. */
  readonly klCovRatio?: number;
  /** Weight of kl_cov's penalty. Default 0.1. */
  readonly ppoKlCoef?: number;
  /** Decoupled leaves out tokens whose weight is above this cap. Default 5. */
  readonly behavImpWeightCap?: number;
  /** Needed by bypass_mode. */
  readonly rolloutCorrection?: RolloutCorrectionSettings;
  /** Counts of the whole batch, for a loss of a part of it. */
  readonly globalBatchInfo?: GlobalBatchInfo;
}

/** A policy loss, with its gradient and metrics. */
export interface PolicyLossResult {
  /** The loss of the batch. */
  readonly loss: number;
  /** d loss / d logProb. */
  readonly gradLogProb: Tensor<"float32">;
  /** Metrics by verl's names, as `actor/pg_clipfrac`. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Throws TrainerInputError. */
export type PolicyLoss = (
  batch: PolicyLossBatch,
  settings?: PolicyLossSettings,
) => PolicyLossResult;

/** The batch as matrices. */
export interface PolicyRows {
  readonly logProb: MatrixView;
  readonly advantages: MatrixView;
  /** Response mask, 0 in invalid rows. */
  readonly mask: MatrixView;
  readonly weights: MatrixView | undefined;
  readonly oldLogProb: MatrixView;
  /** The tokens that count. */
  readonly runs: TokenRuns;
  readonly isValid: (row: number) => boolean;
  /** Whether nothing is left of it without the invalid rows: its loss is 0. */
  readonly isLeftOut: boolean;
}

export function policyRowsOf(batch: PolicyLossBatch): PolicyRows {
  const logProb = viewOf("logProb", batch.logProb);
  const mask = validMask(viewOf("responseMask", batch.responseMask, logProb), batch.valid);
  return {
    logProb,
    advantages: viewOf("advantages", batch.advantages, logProb),
    mask,
    runs: runsOf(mask),
    weights:
      batch.rolloutIsWeights === undefined
        ? undefined
        : viewOf("rolloutIsWeights", batch.rolloutIsWeights, logProb),
    oldLogProb: viewOf("oldLogProb", batch.oldLogProb, logProb),
    isValid: (row) => batch.valid?.[row] ?? true,
    isLeftOut: leavesNoToken(mask, batch.valid),
  };
}

/** Returns the share of tokens, of which that many are marked, among the tokens that count. */
export function shareOfTokens({ runs }: PolicyRows, marked: number): number {
  return marked / divisorOf(runs.count);
}

/** How the larger of two changes; where they are the same, by half of each, as torch has it. */
export function slopeOfLarger(
  left: number,
  leftSlope: number,
  right: number,
  rightSlope: number,
): number {
  if (left === right) return (leftSlope + rightSlope) / 2;
  return left > right ? leftSlope : rightSlope;
}
