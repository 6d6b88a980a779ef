/** verl `algorithm`. */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import { amount, flag, fromZero, klPenalty, positive, share, text } from "./kinds.ts";

export const algorithm = z.strictObject({
  advEstimator: option(text, "gae", "The estimator of advantages by its name."),
  gamma: option(share, 1, "How much later rewards count less."),
  lam: option(share, 1, "Used by gae."),
  normAdvByStdInGrpo: option(flag, true, "Whether GRPO divides by the deviation of a group."),
  useKlInReward: option(
    flag,
    false,
    "Whether the divergence from the reference policy is in the reward.",
  ),
  klPenalty: option(klPenalty, "kl", "How that divergence is estimated."),
  klCtrl: z.strictObject({
    type: option(
      z.enum(["fixed", "adaptive"]),
      "fixed",
      "Whether the weight of the divergence stays, or follows the target.",
    ),
    klCoef: option(amount, 0.001, "The weight of the divergence at first."),
    horizon: option(positive, 10_000, "Used by adaptive."),
    targetKl: option(positive, 0.1, "Used by adaptive."),
  }),
  filterGroups: z.strictObject({
    enable: option(
      flag,
      false,
      "DAPO: groups that do not differ in the metric are left out, and others generated in their place.",
    ),
    metric: option(text.nullable(), null, "null: the score."),
    maxNumGenBatches: option(
      fromZero,
      0,
      "Batches generated for one step; 0: as many as it takes.",
    ),
  }),
  rolloutCorrection: z.strictObject({
    rolloutIs: option(
      z.enum(["token", "sequence"]).nullable(),
      null,
      "Importance weights of rollouts, by token or by sequence; null: none.",
    ),
    rolloutIsThreshold: option(
      z.union([positive, text]).nullable(),
      2,
      "The largest importance weight; larger ones are cut.",
    ),
    rolloutIsBatchNormalize: option(flag, false, "Whether their mean over a batch is 1."),
    rolloutRs: option(text.nullable(), null, "What is rejected; null: nothing."),
    rolloutRsThreshold: option(
      z.union([positive, text]).nullable(),
      null,
      "The bounds outside of which something is rejected.",
    ),
    bypassMode: option(
      flag,
      false,
      "Whether the log-probabilities of the rollout stand for those of the policy before the update.",
    ),
    lossType: option(z.enum(["ppo_clip", "reinforce"]), "ppo_clip", "The loss of the bypass."),
  }),
  usePfPpo: option(flag, false, "With gae: whether samples are drawn again by their scores."),
  pfPpo: z.strictObject({
    reweightMethod: option(z.enum(["pow", "max_min", "max_random"]), "pow", "Used by use_pf_ppo."),
    weightPow: option(positive, 2, "Used by use_pf_ppo."),
  }),
  gdpoRewardKeys: option(
    z.array(text).nullable(),
    null,
    "Used by gdpo: the rewards that it is made of.",
  ),
  gdpoRewardWeights: option(
    z.array(z.number()).nullable(),
    null,
    "Used by gdpo: their weights; null: 1 each.",
  ),
});
