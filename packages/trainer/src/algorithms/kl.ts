/** How far a policy is from its reference: estimates for each token with their gradients, their coefficient, and what they take off rewards. */

import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../errors.ts";
import { masked } from "./masked.ts";
import { clamp, filled, type Matrix, matrixOf, rowSums, tensorOf } from "./matrix.ts";

/** verl's names; with "+" behind it, the value is of that kind and the gradient that of k2. */
export type KlPenaltyKind =
  | "kl"
  | "k1"
  | "abs"
  | "mse"
  | "k2"
  | "low_var_kl"
  | "k3"
  | "kl+"
  | "k1+"
  | "abs+"
  | "mse+"
  | "k2+"
  | "low_var_kl+"
  | "k3+";

export interface KlPenalty {
  readonly kl: Tensor<"float32">;
  /** d kl / d logProb, of each token. */
  readonly gradLogProb: Tensor<"float32">;
}

interface Estimate {
  readonly value: number;
  readonly slope: number;
}

/** Of d = logProb - refLogProb. */
const kinds: Readonly<Record<string, (difference: number) => Estimate>> = {
  kl: (difference) => ({ value: difference, slope: 1 }),
  abs: (difference) => ({ value: Math.abs(difference), slope: Math.sign(difference) }),
  mse: (difference) => ({ value: 0.5 * difference ** 2, slope: difference }),
  low_var_kl: (difference) => {
    const kept = clamp(-difference, -20, 20);
    const value = Math.exp(kept) - kept - 1;
    const isFree = kept === -difference && value <= 10;
    return { value: clamp(value, -10, 10), slope: isFree ? 1 - Math.exp(kept) : 0 };
  },
};
const aliases: Readonly<Record<string, string>> = { k1: "kl", k2: "mse", k3: "low_var_kl" };

/** Throws TrainerInputError for an unknown kind, and for two that are not of one shape. */
export function klPenalty(logProb: Tensor, refLogProb: Tensor, kind: KlPenaltyKind): KlPenalty {
  const own = matrixOf("logProb", logProb);
  const reference = matrixOf("refLogProb", refLogProb, own);
  const estimates = estimatesOf(own, reference, kind);
  const part = (name: keyof Estimate): Tensor<"float32"> =>
    tensorOf(filled(own, (_row, _column, at) => (estimates[at] as Estimate)[name]));
  return { kl: part("value"), gradLogProb: part("slope") };
}

function estimatesOf(own: Matrix, reference: Matrix, kind: string): Estimate[] {
  const isStraight = kind.endsWith("+");
  const name = isStraight ? kind.slice(0, -1) : kind;
  const key = Object.hasOwn(aliases, name) ? (aliases[name] as string) : name;
  const estimate = Object.hasOwn(kinds, key) ? kinds[key] : undefined;
  if (estimate === undefined) {
    throw new TrainerInputError(
      "klPenalty",
      `there is no KL penalty "${kind}"; there are kl (k1), abs, mse (k2), low_var_kl (k3), each with a + behind it, too`,
    );
  }
  return Array.from(own.data, (one, at) => {
    const difference = one - (reference.data[at] as number);
    const { value, slope } = estimate(difference);
    return { value, slope: isStraight ? difference : slope };
  });
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
  if (type !== "adaptive") {
    throw new TrainerInputError(
      "type",
      `there is no KL controller "${String(type)}"; there are fixed, adaptive`,
    );
  }
  const { targetKl = 0.1, horizon = 10_000 } = settings as Extract<
    KlControllerSettings,
    { type: "adaptive" }
  >;
  if (!(horizon > 0))
    throw new TrainerInputError("horizon", `horizon must be above 0; it is ${horizon}`);
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

export interface KlInRewardBatch {
  readonly tokenLevelScores: Tensor;
  readonly oldLogProbs: Tensor;
  readonly refLogProb: Tensor;
  readonly responseMask: Tensor;
}

export interface KlInReward {
  readonly tokenLevelRewards: Tensor<"float32">;
  readonly metrics: {
    readonly "actor/reward_kl_penalty": number;
    /** As it was used. */
    readonly "actor/reward_kl_penalty_coeff": number;
  };
}

/** Takes the divergence off the rewards (verl `apply_kl_penalty`), and updates the controller by its mean over rows. */
export function applyKlPenalty(
  batch: KlInRewardBatch,
  controller: KlController,
  kind: KlPenaltyKind = "kl",
): KlInReward {
  const scores = matrixOf("tokenLevelScores", batch.tokenLevelScores);
  const mask = matrixOf("responseMask", batch.responseMask, scores);
  const old = matrixOf("oldLogProbs", batch.oldLogProbs, scores);
  const reference = matrixOf("refLogProb", batch.refLogProb, scores);
  const estimates = estimatesOf(old, reference, kind);
  const values = filled(mask, (_row, _column, at) => (estimates[at] as Estimate).value);
  const divergence = masked(values, mask);
  const beta = controller.value;
  const rewards = filled(
    scores,
    (_row, _column, at) => (scores.data[at] as number) - beta * (divergence.data[at] as number),
  );
  const lengths = rowSums(mask);
  const sums = rowSums(divergence);
  const means = sums.map((sum, row) => sum / ((lengths[row] as number) + 1e-8));
  const currentKl = means.reduce((total, mean) => total + mean, 0) / mask.rows;
  controller.update(currentKl, mask.rows);
  return {
    tokenLevelRewards: tensorOf(rewards),
    metrics: { "actor/reward_kl_penalty": currentKl, "actor/reward_kl_penalty_coeff": beta },
  };
}
