/**
 * How far the policy that is trained is from the one that made the rollouts (verl
 * `compute_offpolicy_metrics`). Rows without tokens count with a mean of 0.
 */

import { maskedMean, maskedMeanOf, maskedRowMeans, maskedRowSums } from "../masked-sums.ts";
import { clamp, difference, type MatrixView } from "../matrix.ts";
import { checkTokens } from "./rejection.ts";
import { spreadOf } from "../statistics.ts";
import { safetyBound } from "./weights.ts";
import { meanOf } from "../../values/sums.ts";

/** Without a prefix. @throws TrainerInputError where no token counts */
export function offPolicyMetrics(
  logProb: MatrixView,
  rolloutLogProb: MatrixView | undefined,
  mask: MatrixView,
): Record<string, number> {
  checkTokens(mask);
  const training = maskedRowMeans(logProb, mask);
  const own = {
    training_ppl: meanOf(training.map((mean) => Math.exp(-mean))),
    training_log_ppl: -meanOf(training),
  };
  if (rolloutLogProb === undefined) return own;
  const rollout = maskedRowMeans(rolloutLogProb, mask);
  const logRatio = difference(logProb, rolloutLogProb);
  const differences = rollout.map((mean, row) => mean - (training[row] ?? NaN));
  const { mean, max, min } = spreadOf(differences);
  return {
    ...own,
    kl: -maskedMean(logRatio, mask),
    k3_kl: maskedMeanOf(logRatio, mask, (one) => Math.exp(one) - one - 1),
    rollout_ppl: meanOf(rollout.map((one) => Math.exp(-one))),
    rollout_log_ppl: -meanOf(rollout),
    log_ppl_diff: mean,
    log_ppl_abs_diff: meanOf(differences.map(Math.abs)),
    log_ppl_diff_max: max,
    log_ppl_diff_min: min,
    ppl_ratio: meanOf(differences.map(Math.exp)),
    chi2_token: maskedMeanOf(logRatio, mask, squaredRatio) - 1,
    chi2_seq: meanOf(maskedRowSums(logRatio, mask).map(squaredRatio)) - 1,
  };
}

function squaredRatio(logRatio: number): number {
  return Math.exp(2 * clamp(logRatio, -safetyBound, safetyBound));
}
