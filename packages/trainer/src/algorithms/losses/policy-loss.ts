/** What policy losses are given, and give: the loss, verl's metrics, and how the loss changes with each log-probability. */

import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { maskedMean } from "../masked.ts";
import { clamp, filled, type Matrix, matrixOf, tensorOf } from "../matrix.ts";
import type { RolloutCorrectionSettings } from "../rollout-correction/settings.ts";
import { aggLoss, type GlobalBatchInfo, type LossAggMode } from "./aggregation.ts";

/** All are [rows, tokens]. */
export interface PolicyLossBatch {
  readonly oldLogProb: Tensor;
  readonly logProb: Tensor;
  readonly advantages: Tensor;
  readonly responseMask: Tensor;
  readonly rolloutIsWeights?: Tensor;
}

/** verl's `actor_rollout_ref.actor.*` and `policy_loss.*`. */
export interface PolicyLossSettings {
  /** Default "token-mean". */
  readonly lossAggMode?: LossAggMode;
  /** Where the two below are null. Default 0.2. */
  readonly clipRatio?: number;
  /** Default 0.2: it is stronger than `clipRatio`, unless it is null. */
  readonly clipRatioLow?: number | null;
  readonly clipRatioHigh?: number | null;
  /** Of the dual clip, and of dppo. Default 3. */
  readonly clipRatioC?: number;
  /** Of sapo. Default 1. */
  readonly tauPos?: number;
  /** Of sapo. Default 1.05. */
  readonly tauNeg?: number;
  /** Of dro; needed there. */
  readonly droBeta?: number;
  /** Of clip_cov. Default 0.0002. */
  readonly clipCovRatio?: number;
  /** Default 1. */
  readonly clipCovLb?: number;
  /** Default 5. */
  readonly clipCovUb?: number;
  /** Of clip_cov: a permutation of so many. Default: at random. */
  readonly permutation?: (count: number) => readonly number[];
  /** Of kl_cov. Default 0.0002. */
  readonly klCovRatio?: number;
  /** Of kl_cov. Default 1. */
  readonly ppoKlCoef?: number;
  /** Of bypass_mode; needed there. */
  readonly rolloutCorrection?: RolloutCorrectionSettings;
  readonly globalBatchInfo?: GlobalBatchInfo;
}

export interface PolicyLossResult {
  readonly loss: number;
  /** d loss / d logProb. */
  readonly gradLogProb: Tensor<"float32">;
  readonly metrics: Readonly<Record<string, number>>;
}

/** Throws TrainerInputError. */
export type PolicyLoss = (
  batch: PolicyLossBatch,
  settings?: PolicyLossSettings,
) => PolicyLossResult;

/** The batch as matrices. */
export interface PolicyRows {
  readonly logProb: Matrix;
  readonly advantages: Matrix;
  readonly mask: Matrix;
  readonly weights: Matrix | undefined;
  /** logProb - oldLogProb. */
  readonly logRatio: Matrix;
}

export function policyRowsOf(batch: PolicyLossBatch): PolicyRows {
  const logProb = matrixOf("logProb", batch.logProb);
  const old = matrixOf("oldLogProb", batch.oldLogProb, logProb);
  return {
    logProb,
    advantages: matrixOf("advantages", batch.advantages, logProb),
    mask: matrixOf("responseMask", batch.responseMask, logProb),
    weights:
      batch.rolloutIsWeights === undefined
        ? undefined
        : matrixOf("rolloutIsWeights", batch.rolloutIsWeights, logProb),
    logRatio: filled(
      logProb,
      (_row, _column, at) => (logProb.data[at] as number) - (old.data[at] as number),
    ),
  };
}

export interface ClipRange {
  readonly low: number;
  readonly high: number;
}

export function clipRangeOf({
  clipRatio = 0.2,
  clipRatioLow = 0.2,
  clipRatioHigh = 0.2,
}: PolicyLossSettings): ClipRange {
  return { low: clipRatioLow ?? clipRatio, high: clipRatioHigh ?? clipRatio };
}

/** The loss of a token, and how it changes with its log-probability. */
export interface TokenLoss {
  readonly value: number;
  readonly slope: number;
}

/** Weighted, put together, and with its gradient. */
export function policyLossOf(
  rows: PolicyRows,
  losses: readonly TokenLoss[],
  { lossAggMode, globalBatchInfo }: Pick<PolicyLossSettings, "lossAggMode" | "globalBatchInfo">,
  metrics: Readonly<Record<string, number>>,
): PolicyLossResult {
  const scale = (at: number): number =>
    rows.weights === undefined ? 1 : (rows.weights.data[at] as number);
  const values = filled(
    rows.mask,
    (_row, _column, at) => (losses[at] as TokenLoss).value * scale(at),
  );
  const { loss, weights } = aggLoss(values, rows.mask, lossAggMode, globalBatchInfo);
  const gradient = filled(rows.mask, (_row, _column, at) => {
    const weight = weights.data[at] as number;
    return weight === 0 ? 0 : weight * (losses[at] as TokenLoss).slope * scale(at);
  });
  return { loss, gradLogProb: tensorOf(gradient), metrics };
}

/** One loss for each token, in order of the data. */
export function tokenLosses(rows: PolicyRows, lossAt: (at: number) => TokenLoss): TokenLoss[] {
  return Array.from(rows.logProb.data, (_, at) => lossAt(at));
}

/** Of those tokens that count, the share for which it holds. */
export function shareOf({ mask }: PolicyRows, holds: (at: number) => boolean): number {
  return maskedMean(
    filled(mask, (_row, _column, at) => (holds(at) ? 1 : 0)),
    mask,
  );
}

/** The mean of -logRatio, within what is kept of it. */
export function ppoKlOf({ mask, logRatio }: PolicyRows, kept: number = Infinity): number {
  return maskedMean(
    filled(mask, (_row, _column, at) => -clamp(logRatio.data[at] as number, -kept, kept)),
    mask,
  );
}

/** The larger (or, with `sign` -1, the smaller) of two; where they are the same, half of each gradient, as torch has it. */
export function larger(left: TokenLoss, right: TokenLoss, sign: 1 | -1 = 1): TokenLoss {
  if (left.value === right.value)
    return { value: left.value, slope: (left.slope + right.slope) / 2 };
  return sign * left.value > sign * right.value ? left : right;
}

/** -A times the ratio, and times what is left of it within the range: PPO's two losses. */
export function clippedLosses(
  advantage: number,
  ratio: number,
  slope: number,
  { low, high }: ClipRange,
): { readonly plain: TokenLoss; readonly clipped: TokenLoss } {
  const kept = clamp(ratio, 1 - low, 1 + high);
  return {
    plain: { value: -advantage * ratio, slope: -advantage * slope },
    clipped: { value: -advantage * kept, slope: kept === ratio ? -advantage * slope : 0 },
  };
}

/** @throws TrainerInputError */
export function checkDualClip(clipRatioC: number): void {
  if (clipRatioC > 1) return;
  throw new TrainerInputError(
    "clipRatioC",
    `clipRatioC, the lower bound of the dual clip, must be above 1; it is ${clipRatioC}`,
  );
}
