/**
 * How far a policy is from its reference: estimates for each token with their gradients, their
 * coefficient, and what they take off rewards.
 */

import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../errors.ts";
import { masked, maskedRowMeans } from "./masked-sums.ts";
import { clamp, type Matrix, matrixOf, newMatrix, tensorOf } from "./matrix.ts";
import { validMask } from "./invalid-scores.ts";
import { meanOf } from "../values/sums.ts";

/** verl's names; k1, k2 and k3 are others of kl, mse and low_var_kl. */
const names = ["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3"] as const;
/** A kind of estimator. With "+" at its end, the value is of that kind and the gradient is k2's. */
export type KlPenaltyKind = (typeof names)[number] | `${(typeof names)[number]}+`;
export const klPenaltyKinds: readonly KlPenaltyKind[] = [
  ...names,
  ...names.map((name) => `${name}+` as const),
];

/** Estimates of the divergence, with their gradient. Both tensors are [rows, tokens]. */
export interface KlPenalty {
  /** Estimate of the divergence from the reference policy, for each token. */
  readonly kl: Tensor<"float32">;
  /** d kl / d logProb, of each token. */
  readonly gradLogProb: Tensor<"float32">;
}

/** Estimate for one token; the object is used again for the next token. */
interface Estimate {
  value: number;
  slope: number;
}

/** Estimators as functions of d = logProb - refLogProb. */
const kinds: Readonly<Record<string, (estimate: Estimate, difference: number) => void>> = {
  kl(estimate, difference) {
    estimate.value = difference;
    estimate.slope = 1;
  },
  abs(estimate, difference) {
    estimate.value = Math.abs(difference);
    estimate.slope = Math.sign(difference);
  },
  mse(estimate, difference) {
    estimate.value = 0.5 * difference * difference;
    estimate.slope = difference;
  },
  low_var_kl(estimate, difference) {
    const kept = clamp(-difference, -20, 20);
    const ratio = Math.exp(kept);
    const value = ratio - kept - 1;
    estimate.value = clamp(value, -10, 10);
    estimate.slope = kept === -difference && value <= 10 ? 1 - ratio : 0;
  },
};
const aliases: Readonly<Record<string, string>> = { k1: "kl", k2: "mse", k3: "low_var_kl" };

/** Throws TrainerInputError for an unknown kind, and for two that are not of one shape. */
export function klPenalty(logProb: Tensor, refLogProb: Tensor, kind: KlPenaltyKind): KlPenalty {
  const own = matrixOf("logProb", logProb);
  const { values, slopes } = estimatesOf(own, matrixOf("refLogProb", refLogProb, own), kind);
  return { kl: tensorOf(values), gradLogProb: tensorOf(slopes) };
}

function estimatesOf(
  own: Matrix,
  reference: Matrix,
  kind: string,
): { readonly values: Matrix; readonly slopes: Matrix } {
  const isStraight = kind.endsWith("+");
  const name = isStraight ? kind.slice(0, -1) : kind;
  const key = (Object.hasOwn(aliases, name) ? aliases[name] : undefined) ?? name;
  const estimateInto = Object.hasOwn(kinds, key) ? kinds[key] : undefined;
  if (estimateInto === undefined) {
    throw new TrainerInputError(
      "klPenalty",
      `there is no KL penalty "${kind}"; there are kl (k1), abs, mse (k2), low_var_kl (k3), each with a + behind it, too`,
    );
  }
  const values = newMatrix(own.rows, own.columns);
  const slopes = newMatrix(own.rows, own.columns);
  const estimate = { value: 0, slope: 0 };
  for (let at = 0; at < own.data.length; at++) {
    const difference = (own.data[at] ?? NaN) - (reference.data[at] ?? NaN);
    estimateInto(estimate, difference);
    values.data[at] = estimate.value;
    slopes.data[at] = isStraight ? difference : estimate.slope;
  }
  return { values, slopes };
}

/** verl's `kl_ctrl`. */
export type KlControllerSettings =
  | { readonly type?: "fixed"; readonly klCoef: number }
  | {
      readonly type: "adaptive";
      readonly klCoef: number;
      /** Default 0.1. */
      readonly targetKl?: number;
      /** Default 10,000. */
      readonly horizon?: number;
    };

/** verl's KL controller: the coefficient of KL in the reward. */
export interface KlController {
  /** The coefficient now. */
  readonly value: number;
  /** After so many steps in which the divergence was this. */
  update(currentKl: number, steps: number): void;
}

/** Throws TrainerInputError. */
export function createKlController(settings: KlControllerSettings): KlController {
  const { type = "fixed", klCoef } = settings;
  if (type === "fixed") return { value: klCoef, update: () => undefined };
  if (settings.type !== "adaptive") {
    throw new TrainerInputError(
      "type",
      `there is no KL controller "${type}"; there are fixed, adaptive`,
    );
  }
  const { targetKl = 0.1, horizon = 10_000 } = settings;
  if (!(horizon > 0))
    throw new TrainerInputError("horizon", `horizon must be above 0; it is ${horizon}`);
  // verl divides by it at the first update, and fails there.
  if (targetKl === 0 || Number.isNaN(targetKl))
    throw new TrainerInputError("targetKl", `targetKl must be a number but 0; it is ${targetKl}`);
  let value = klCoef;
  return {
    get value() {
      return value;
    },
    update(currentKl, steps) {
      const error = clamp(currentKl / targetKl - 1, -0.2, 0.2);
      value *= 1 + (error * steps) / horizon;
    },
  };
}

/** Input of KL in the reward. All tensors are [rows, tokens]. */
export interface KlInRewardBatch {
  /** Scores of tokens. */
  readonly tokenLevelScores: Tensor;
  /** Log-probabilities of the policy before the update. */
  readonly oldLogProbs: Tensor;
  /** Log-probabilities of the reference policy. */
  readonly refLogProb: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
  /** False for a row whose score is invalid: it does not count. Default: all are valid. */
  readonly valid?: readonly boolean[];
}

/** Rewards that contain the KL penalty. */
export interface KlInReward {
  /** Scores minus the coefficient times the divergence, [rows, tokens]. */
  readonly tokenLevelRewards: Tensor<"float32">;
  /** Mean divergence of the valid rows, and the coefficient, by verl's names. */
  readonly metrics: {
    readonly "actor/reward_kl_penalty": number;
    /** The coefficient that was used. */
    readonly "actor/reward_kl_penalty_coeff": number;
  };
}

/**
 * Subtracts the divergence from the rewards (verl `apply_kl_penalty`) and updates the controller
 * with its mean over the valid rows, each of which counts as a step of the controller. Without a
 * valid row the controller does not change.
 */
export function applyKlPenalty(
  batch: KlInRewardBatch,
  controller: KlController,
  kind: KlPenaltyKind = "kl",
): KlInReward {
  const scores = matrixOf("tokenLevelScores", batch.tokenLevelScores);
  const mask = validMask(matrixOf("responseMask", batch.responseMask, scores), batch.valid);
  const old = matrixOf("oldLogProbs", batch.oldLogProbs, scores);
  const reference = matrixOf("refLogProb", batch.refLogProb, scores);
  const { values } = estimatesOf(old, reference, kind);
  const divergence = masked(values, mask);
  const beta = controller.value;
  for (let at = 0; at < scores.data.length; at++) {
    scores.data[at] = (scores.data[at] ?? NaN) - beta * (divergence.data[at] ?? NaN);
  }
  const means = maskedRowMeans(values, mask).filter((_, row) => batch.valid?.[row] ?? true);
  const isLeftOut = means.length === 0 && mask.rows > 0;
  const currentKl = isLeftOut ? 0 : meanOf(means);
  if (!isLeftOut) controller.update(currentKl, means.length);
  return {
    tokenLevelRewards: tensorOf(scores),
    metrics: { "actor/reward_kl_penalty": currentKl, "actor/reward_kl_penalty_coeff": beta },
  };
}
