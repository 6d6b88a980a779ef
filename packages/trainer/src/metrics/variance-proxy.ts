/**
 * How much of the gradient is signal, and how much noise (verl `compute_variance_proxy_metrics`):
 * what the optimal token baselines are for.
 */

import type { Tensor } from "@rayling/data-proto";
import { maskedRowMeans, maskedRowSums } from "../algorithms/masked-sums.ts";
import { filled, matrixOf } from "../algorithms/matrix.ts";
import { meanOf } from "../values/sums.ts";

/** All are [rows, tokens]. */
export interface VarianceProxyBatch {
  /** Advantage of each token. */
  readonly advantages: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
  /** Log-probabilities of the policy before the update. */
  readonly oldLogProbs?: Tensor;
  /** Sums of squared probabilities over the vocabulary. */
  readonly sumPiSquared?: Tensor;
  /** Importance weights of the rollout correction. */
  readonly rolloutIsWeights?: Tensor;
}

/**
 * Returns no metrics without old log-probabilities and sums of squared probabilities.
 *
 * @param gradientNorm without it, signal and noise are 0. Throws TrainerInputError.
 */
export function varianceProxyMetrics(
  batch: VarianceProxyBatch,
  gradientNorm?: number,
): Record<string, number> {
  if (batch.oldLogProbs === undefined || batch.sumPiSquared === undefined) return {};
  const mask = matrixOf("responseMask", batch.responseMask);
  const logProbs = matrixOf("oldLogProbs", batch.oldLogProbs, mask);
  const squares = matrixOf("sumPiSquared", batch.sumPiSquared, mask);
  const weights =
    batch.rolloutIsWeights === undefined
      ? undefined
      : matrixOf("rolloutIsWeights", batch.rolloutIsWeights, mask);
  const own = filled(
    mask,
    (_row, _column, at) => 1 - 2 * Math.exp(logProbs.data[at] ?? NaN) + (squares.data[at] ?? NaN),
  );
  const squaredWeight = (at: number): number => (weights?.data[at] ?? 1) ** 2;
  const weighted = filled(mask, (_row, _column, at) => (own.data[at] ?? NaN) * squaredWeight(at));
  // Dividing does not bring back what a weight near 0 has removed.
  const unweighted = filled(
    mask,
    (_row, _column, at) => (weighted.data[at] ?? NaN) / Math.max(squaredWeight(at), 1e-10),
  );
  const advantages = maskedRowMeans(matrixOf("advantages", batch.advantages, mask), mask);
  const scales = weights === undefined ? undefined : maskedRowMeans(weights, mask);
  const powers = maskedRowSums(unweighted, mask).map(
    (sum, row) => ((scales?.[row] ?? 1) * (advantages[row] ?? NaN)) ** 2 * Math.max(sum, 0),
  );
  const power = meanOf(powers);
  const signal = gradientNorm === undefined ? 0 : gradientNorm ** 2;
  const isNoisy = gradientNorm !== undefined && mask.rows > 1;
  return {
    "variance_proxy/proxy1_signal_strength": signal,
    "variance_proxy/proxy2_total_power": power,
    "variance_proxy/proxy3_pure_noise": isNoisy
      ? Math.max(0, (power - signal) / (mask.rows - 1))
      : 0,
    "variance_proxy/expected_a_squared": meanOf(advantages.map((one) => one * one)),
    "variance_proxy/expected_w": meanOf(maskedRowSums(weighted, mask)),
  };
}
