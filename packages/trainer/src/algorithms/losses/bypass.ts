/**
 * The loss of the bypass: what the rollout said of its own log-probs stands for the old policy's,
 * so that what is too far off is found, and weighted, while the loss is worked out (verl
 * `compute_policy_loss_bypass_mode`). Mask and weights are not part of what is differentiated.
 */

import { TrainerInputError } from "../../errors.ts";
import { correction } from "../rollout-correction/rollout-correction.ts";
import { runsOf } from "../runs.ts";
import { type PolicyLoss, type PolicyLossResult, policyRowsOf } from "./policy-loss.ts";
import { dualClip, weightedGradient } from "./tokenwise.ts";

/**
 * The loss of the bypass, where `oldLogProb` is the rollout's. It ignores weights of the batch.
 * Without a valid row nothing is corrected, and no metrics of the correction are returned.
 */
export const bypassMode: PolicyLoss = (batch, settings = {}) => {
  // null where it comes from a configuration.
  const rolloutCorrection = settings.rolloutCorrection ?? undefined;
  if (rolloutCorrection === undefined) {
    throw new TrainerInputError(
      "rolloutCorrection",
      "rolloutCorrection is missing, which bypass_mode needs",
    );
  }
  const given = policyRowsOf(batch);
  const { lossType = "ppo_clip" } = rolloutCorrection;
  const { weights, mask, metrics } = correction(
    {
      logProb: given.logProb,
      rolloutLogProb: given.oldLogProb,
      mask: given.mask,
      runs: given.runs,
    },
    rolloutCorrection,
    { valid: batch.valid, keepsWeights: lossType === "reinforce" },
  );
  const rows = mask === given.mask ? given : { ...given, mask, runs: runsOf(mask) };
  const withMetrics = (result: PolicyLossResult): PolicyLossResult => ({
    ...result,
    metrics: { ...result.metrics, ...metrics },
  });
  switch (lossType) {
    case "ppo_clip":
      // The ratio of the clip is that of the weights: with both it would count twice.
      return withMetrics(dualClip({ ...rows, weights: undefined }, settings));
    case "reinforce":
      return withMetrics(weightedGradient({ ...rows, weights }, settings));
    default:
      throw new TrainerInputError(
        "lossType",
        `there is no loss_type "${String(lossType)}" of bypass_mode; there are ppo_clip, reinforce`,
      );
  }
};
