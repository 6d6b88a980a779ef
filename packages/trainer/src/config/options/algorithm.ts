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
  /**
   * Whether GRPO divides by the deviation of a group; also grpo_vectorized, grpo_passk and gdpo.
   * (In verl's trainer only grpo and grpo_passk: the others always divide.)
   */
  normAdvByStdInGrpo: option(flag, true),
  /** Whether the divergence from the reference policy is in the reward. */
  useKlInReward: option(flag, false),
  /** The estimator of that divergence. */
  klPenalty: option(klPenalty, "kl"),
  klCtrl: z.strictObject({
    /** Whether the weight of the divergence stays, or follows the target. */
    type: option(z.enum(["fixed", "adaptive"]), "fixed"),
    /** The weight of the divergence at first. */
    klCoef: option(amount, 0.001),
    /** The horizon of the adaptive weight, in samples. */
    horizon: option(positive, 10_000),
    /** The divergence that the adaptive weight follows. */
    targetKl: option(positive, 0.1),
  }),
  filterGroups: z.strictObject({
    /**
     * DAPO: whether groups that do not differ in the metric are left out, and others generated in
     * their place. (In a program: true where filter_groups is given.)
     */
    enable: option(flag, false),
    /**
     * The metric in which groups must differ: reward, or a key of the extra info, such as acc;
     * null: the reward. Score, seq_reward and seq_final_reward are the reward where the extra info
     * of a group has no numbers of that name.
     */
    metric: option(text.nullable(), null),
    /**
     * The most batches generated for one step before the run fails; 0: no limit, until no group of
     * two whole epochs, and of ten batches, differs.
     */
    maxNumGenBatches: option(fromZero, 0),
  }),
  rolloutCorrection: z.strictObject({
    /** Importance weights of rollouts, by token or by sequence; null: none. */
    rolloutIs: option(z.enum(["token", "sequence"]).nullable(), null),
    /** The largest importance weight; larger ones are cut. */
    rolloutIsThreshold: option(z.union([positive, text]).nullable(), 2),
    /** Whether importance weights are scaled so that their mean over a batch is 1. */
    rolloutIsBatchNormalize: option(flag, false),
    /** The tests that tokens or rows must pass, such as token_k1; null: none. */
    rolloutRs: option(text.nullable(), null),
    /** The bounds of rollout_rs: tokens or rows beyond them are rejected. */
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
    /** How use_pf_ppo makes weights of scores. */
    reweightMethod: option(z.enum(["pow", "max_min", "max_random"]), "pow"),
    /** The exponent of the method pow of use_pf_ppo. */
    weightPow: option(positive, 2),
  }),
  /** The rewards that gdpo combines, by their keys in the extra info; used by gdpo. */
  gdpoRewardKeys: option(z.array(text).nullable(), null),
  /** The weights of gdpo_reward_keys; null: 1 each. Used by gdpo. */
  gdpoRewardWeights: option(z.array(z.number()).nullable(), null),
});

/** Constants of formulas, which verl has no key for. Each formula knows its own. */
export const constants = {
  /** Added to the standard deviation of a group. Default 1e-6. */
  epsilon: amount.optional(),
  /** The divisor of gpg. Default 1. */
  fNorm: positive.optional(),
  /**
   * Whether the optimal token baselines use no baseline where only the longest row of a group goes
   * on. Default true.
   */
  handleZeroTail: flag.optional(),
};
