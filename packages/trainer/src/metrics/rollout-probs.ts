/**
 * How far the policy is from what its answers were sampled of, token by token (verl
 * `calculate_debug_metrics`): an engine with other weights, or another precision, shows here first.
 */

import type { Tensor } from "@rayling/data-proto";
import { matrixOf } from "../algorithms/matrix.ts";
import { spreadOf } from "../algorithms/statistics.ts";
import { sumOf } from "../values/sums.ts";

/** All are [rows, tokens]. */
export interface RolloutProbsBatch {
  /** Log-probabilities of the rollout, when each token was sampled. */
  readonly rolloutLogProbs: Tensor;
  /** Log-probabilities of the trained policy, before the update. */
  readonly oldLogProbs: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
}

/**
 * Difference and correlation of the two probabilities of each token that counts (Pearson; NaN where
 * one of them is constant). Where no token counts, `valid` is 0 and the other metrics are missing.
 * Throws TrainerInputError.
 */
export function rolloutProbsMetrics(batch: RolloutProbsBatch): Record<string, number> {
  const mask = matrixOf("responseMask", batch.responseMask);
  const probsOf = (name: "rolloutLogProbs" | "oldLogProbs"): Float64Array =>
    matrixOf(name, batch[name], mask)
      .data.filter((_, at) => mask.data[at] !== 0)
      .map(Math.exp);
  const sampled = probsOf("rolloutLogProbs");
  const trained = probsOf("oldLogProbs");
  if (sampled.length === 0) return { "training/rollout_probs_diff_valid": 0 };
  const { max, mean, std } = spreadOf(
    trained.map((one, at) => Math.abs(one - (sampled[at] ?? NaN))),
  );
  return {
    "training/rollout_probs_diff_valid": 1,
    "training/rollout_probs_diff_max": max,
    "training/rollout_probs_diff_mean": mean,
    "training/rollout_probs_diff_std": std,
    "training/rollout_actor_probs_pearson_corr": pearsonOf(sampled, trained),
  };
}

function pearsonOf(left: Float64Array, right: Float64Array): number {
  const [a, b] = [spreadOf(left), spreadOf(right)];
  const products = left.map((value, at) => (value - a.mean) * ((right[at] ?? NaN) - b.mean));
  return sumOf(products) / ((left.length - 1) * a.std * b.std);
}
