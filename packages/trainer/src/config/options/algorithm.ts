/** verl `algorithm`. */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import { amount, flag, fromZero, klPenalty, positive, share, text } from "./kinds.ts";

export const algorithm = z.strictObject({
  /** The estimator of advantages by its name. (In a program without a critic: grpo.) */
  advEstimator: option(text, "gae"),
  /** How much later rewards count less. */
  gamma: option(share, 1),
  /** Used by gae. */
  lam: option(share, 1),
  /** Whether GRPO divides by the deviation of a group. */
  normAdvByStdInGrpo: option(flag, true),
  /** Whether the divergence from the reference policy is in the reward. */
  useKlInReward: option(flag, false),
  /** How that divergence is estimated. */
  klPenalty: option(klPenalty, "kl"),
  klCtrl: z.strictObject({
    /** Whether the weight of the divergence stays, or follows the target. */
    type: option(z.enum(["fixed", "adaptive"]), "fixed"),
    /** The weight of the divergence at first. */
    klCoef: option(amount, 0.001),
    /** Used by adaptive. */
    horizon: option(positive, 10_000),
    /** Used by adaptive. */
    targetKl: option(positive, 0.1),
  }),
  filterGroups: z.strictObject({
    /**
     * DAPO: groups that do not differ in the metric are left out, and others generated in their
     * place. (In a program: true where filter_groups is given.)
     */
    enable: option(flag, false),
    /** What groups must differ in: a key of the extra info, such as acc; null: the score. */
    metric: option(text.nullable(), null),
    /**
     * Batches generated for one step before it is given up; 0: as many as it takes, until no group
     * of two whole epochs, and of ten batches, differs.
     */
    maxNumGenBatches: option(fromZero, 0),
  }),
  rolloutCorrection: z.strictObject({
    /** Importance weights of rollouts, by token or by sequence; null: none. */
    rolloutIs: option(z.enum(["token", "sequence"]).nullable(), null),
    /** The largest importance weight; larger ones are cut. */
    rolloutIsThreshold: option(z.union([positive, text]).nullable(), 2),
    /** Whether their mean over a batch is 1. */
    rolloutIsBatchNormalize: option(flag, false),
    /** What is rejected; null: nothing. */
    rolloutRs: option(text.nullable(), null),
    /** The bounds outside of which something is rejected. */
    rolloutRsThreshold: option(z.union([positive, text]).nullable(), null),
    /**
     * Whether the log-probabilities of the rollout stand for those of the policy before the update.
     */
    bypassMode: option(flag, false),
    /** The loss of the bypass. */
    lossType: option(z.enum(["ppo_clip", "reinforce"]), "ppo_clip"),
  }),
  /** With gae: whether samples are drawn again by their scores. */
  usePfPpo: option(flag, false),
  pfPpo: z.strictObject({
    /** Used by use_pf_ppo. */
    reweightMethod: option(z.enum(["pow", "max_min", "max_random"]), "pow"),
    /** Used by use_pf_ppo. */
    weightPow: option(positive, 2),
  }),
  /** Used by gdpo: the rewards that it is made of. */
  gdpoRewardKeys: option(z.array(text).nullable(), null),
  /** Used by gdpo: their weights; null: 1 each. */
  gdpoRewardWeights: option(z.array(z.number()).nullable(), null),
});

/** Constants of formulas, which verl has no key for. Each formula knows its own. */
export const constants = {
  /** Beside the standard deviation of a group. Default 1e-6. */
  epsilon: amount.optional(),
  /** Used by gpg. Default 1. */
  fNorm: positive.optional(),
  /**
   * Used by the optimal token baselines: no baseline where only the longest row of a group goes on.
   * Default true.
   */
  handleZeroTail: flag.optional(),
};
