/**
 * PF-PPO: rows are drawn again by their scores, so that the policy learns from the most informative
 * ones (verl `compute_pf_ppo_reweight_data`, `algorithm.pf_ppo`).
 */

import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { matrixOf, rowSums } from "../matrix.ts";

/** verl `algorithm.pf_ppo`: how rows are weighed by their scores. */
export interface PfPpoSettings {
  /**
   * pow: the score to a power, without its sign. max_min: only the best and the worst. max_random:
   * the best four times as often as others. Default "pow".
   */
  readonly reweightMethod?: "pow" | "max_min" | "max_random";
  /** Exponent of the method "pow". Default 2. */
  readonly weightPow?: number;
}

/** Scores of the rows that are drawn again. */
export interface PfPpoBatch {
  /** [rows, tokens]. */
  readonly tokenLevelScores: Tensor;
  /** False for a row whose score is invalid: it is never drawn. Default: all are valid. */
  readonly valid?: readonly boolean[];
}

/** How often each row is drawn, in proportion. Throws TrainerInputError for an unknown method. */
export function pfPpoWeights(
  { tokenLevelScores, valid }: PfPpoBatch,
  { reweightMethod = "pow", weightPow = 2 }: PfPpoSettings = {},
): Float64Array {
  const scores = rowSums(matrixOf("tokenLevelScores", tokenLevelScores));
  const isValid = (row: number): boolean => valid?.[row] ?? true;
  const used = scores.filter((_, row) => isValid(row));
  let most = -Infinity;
  let least = Infinity;
  for (const score of used) {
    most = Math.max(most, score);
    least = Math.min(least, score);
  }
  const weigh = (score: number): number => {
    switch (reweightMethod) {
      case "pow":
        return Math.abs(score) ** weightPow;
      case "max_min":
        return score === most || score === least ? 1 : 0;
      case "max_random":
        return score === most ? 0.4 : 0.1;
      default:
        throw new TrainerInputError(
          "reweightMethod",
          `there is no reweight_method "${String(reweightMethod)}"; there are pow, max_min, max_random`,
        );
    }
  };
  return scores.map((score, row) => (isValid(row) ? weigh(score) + 1e-8 : 0));
}

/**
 * Draws as many rows as there are, each by its weight, with repeats.
 *
 * @param random numbers from 0 to below 1. Throws TrainerInputError where no row can be drawn.
 */
export function drawRows(weights: Float64Array, random: () => number): Int32Array {
  const sums = new Float64Array(weights.length);
  let sum = 0;
  for (const [row, weight] of weights.entries()) sums[row] = sum += weight;
  if (weights.length > 0 && !(sum > 0 && sum < Infinity)) {
    throw new TrainerInputError(
      "weights",
      `no row can be drawn: the weights of ${weights.length} rows add up to ${sum}`,
    );
  }
  const last = sums.indexOf(sum);
  return Int32Array.from(weights, () => firstAbove(sums, random() * sum, last));
}

/**
 * The first row whose sum is above, or the last that has a weight: rows of weight 0 are never it.
 */
function firstAbove(sums: Float64Array, target: number, last: number): number {
  let low = 0;
  let high = last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle] ?? NaN) > target) high = middle;
    else low = middle + 1;
  }
  return low;
}
