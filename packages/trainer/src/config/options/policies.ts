/**
 * verl `actor_rollout_ref` and `critic`: how policy and critic are trained, and how the policy is
 * asked.
 */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import {
  amount,
  count,
  countOrNot,
  flag,
  klPenalty,
  lossAggMode,
  positive,
  share,
  text,
  whole,
} from "./kinds.ts";

/** With 1 a mean would never move. */
const decay = z.number().min(0).lt(1);

/** verl `optim`, but for what the actor and the critic have defaults of their own for. */
export const optimiser = {
  /** The weight decay of AdamW. */
  weightDecay: option(amount, 0.01),
  /** The two decay rates of AdamW. */
  betas: option(z.tuple([decay, decay]), [0.9, 0.999]),
  /** AdamW adds it to its divisor. */
  eps: option(positive, 1e-8),
  /** The schedule of the learning rate after its warm-up. */
  lrSchedulerType: option(z.enum(["constant", "cosine", "linear"]), "constant"),
  /** Steps in which the learning rate rises; -1: as many as the ratio says. */
  lrWarmupSteps: option(whole.min(-1), -1),
  /** The share of the learning rate at the end. */
  minLrRatio: option(share, 0),
  /** How many waves a cosine schedule has. */
  numCycles: option(amount, 0.5),
  /**
   * Whether steps are counted from 0, as in verl, where the first step of a warm-up learns nothing;
   * false: from 1, by a cosine; null: a warm-up counts from 1, and what follows it from 0. (verl:
   * true.)
   */
  zeroIndexedStep: option(flag.nullable(), null),
  /** The last step of the schedule; -1: the run's last. */
  totalTrainingSteps: option(countOrNot, -1),
};

/** The actor's, but for its optimiser, which in a program is the policy's own. */
export const learning = {
  /** Prompts of one update; with n rollouts each. (In a program: all of the batch.) */
  ppoMiniBatchSize: option(count, 256),
  /** How often each batch is trained on. */
  ppoEpochs: option(count, 1),
  /** The clip range: how far the ratio to the policy of the rollout may be from 1. */
  clipRatio: option(amount, 0.2),
  /**
   * The lower clip range; null: clip_ratio. (verl: 0.2, so that clip_ratio alone does nothing
   * there.)
   */
  clipRatioLow: option(amount.nullable(), null),
  /** The upper clip range; null: clip_ratio. */
  clipRatioHigh: option(amount.nullable(), null),
  /** The bound of dual-clip PPO. */
  clipRatioC: option(z.number().gt(1), 3),
  /** The temperature of loss_mode sapo for advantages above 0. */
  tauPos: option(positive, 1),
  /** The temperature of loss_mode sapo for other advantages. */
  tauNeg: option(positive, 1.05),
  /**
   * How the losses of tokens are combined into one. loss_mode gspo and sapo always take
   * seq-mean-token-mean.
   */
  lossAggMode: option(lossAggMode, "token-mean"),
  /**
   * The divisor of seq-mean-token-sum-norm, equal in all batches; null: data.max_response_length.
   */
  lossScaleFactor: option(count.nullable(), null),
  /** The weight of the entropy in the loss. */
  entropyCoeff: option(z.number(), 0),
  /** Whether the divergence from the reference policy is in the loss. */
  useKlLoss: option(flag, false),
  /** The weight of that divergence. */
  klLossCoef: option(amount, 0.001),
  /** The estimator of that divergence. */
  klLossType: option(klPenalty, "low_var_kl"),
};

/** Below `policy_loss` in a configuration, beside the actor's others in a program. */
export const policyLoss = {
  /** The loss by its name; one of your own is registered in code. */
  lossMode: option(text, "vanilla"),
  /** The share of tokens that loss_mode clip_cov leaves out. */
  clipCovRatio: option(share, 0.0002),
  /** The least covariance of tokens that loss_mode clip_cov may leave out. */
  clipCovLb: option(z.number(), 1),
  /** The largest covariance of tokens that loss_mode clip_cov may leave out. */
  clipCovUb: option(z.number(), 5),
  /** The share of tokens that loss_mode kl_cov penalises. */
  klCovRatio: option(share, 0.0002),
  /** The weight of the penalty of loss_mode kl_cov. */
  ppoKlCoef: option(amount, 0.1),
  /** The weight of the squared log ratio in loss_mode dro, which needs it. */
  droBeta: option(positive.nullable(), null),
  /** The cap of weights in loss_mode decoupled: tokens above it are left out. (verl's recipe.) */
  behavImpWeightCap: option(positive, 5),
};

export const actor = z.strictObject({
  ...learning,
  policyLoss: z.strictObject(policyLoss),
  /** The older name of optim.clip_grad. */
  gradClip: option(positive, 1),
  optim: z.strictObject({
    /** The norm that gradients are clipped to. */
    clipGrad: option(positive, "${actor_rollout_ref.actor.grad_clip}"),
    /** The learning rate of AdamW. */
    lr: option(amount, 1e-6),
    /**
     * The share of all steps in which the learning rate rises; null: none, but after a supervised
     * start the first 20 steps. (verl: 0, which is none.)
     */
    lrWarmupStepsRatio: option(share.nullable(), null),
    ...optimiser,
  }),
});

/** How rollouts are asked for. */
export const rollouts = {
  /** Samples of each prompt. */
  n: option(count, 1),
  /** The temperature that rollouts are sampled with. */
  temperature: option(positive, 1),
  /** Only the k most likely tokens; -1: all. */
  topK: option(countOrNot, -1),
  /** Only the most likely tokens that have this probability together. */
  topP: option(positive.max(1), 1),
};

/** How answers of a validation are generated. */
export const valKwargs = z.strictObject({
  /** Answers to each prompt of a validation. */
  n: option(count, 1),
  /**
   * Whether answers are sampled; false: the most likely token; null: sampled where the temperature
   * is above 0, as verl's agent loop does, whatever do_sample is there. (verl: false.)
   */
  doSample: option(flag.nullable(), null),
  /**
   * The temperature of validation answers; 0: the most likely token. (In a program, where do_sample
   * is asked for by itself: 1.)
   */
  temperature: option(amount, 0),
  /** Only the k most likely tokens of validation answers; -1: all. */
  topK: option(countOrNot, -1),
  /** Only the most likely tokens of validation answers that have this probability together. */
  topP: option(positive.max(1), 1),
});

export const rollout = z.strictObject({
  ...rollouts,
  /** Whether rollouts are sampled, which must be true: a policy learns from what it samples. */
  doSample: option(
    z.literal(true, { error: "a policy learns of what it samples: must be true" }),
    true,
  ),
  /** The longest prompt, in tokens. */
  promptLength: option(count, "${data.max_prompt_length}"),
  /** The longest response, in tokens. */
  responseLength: option(count, "${data.max_response_length}"),
  valKwargs,
});

/** The critic's, but for its optimiser. */
export const valueLearning = {
  /** Prompts of one update. */
  ppoMiniBatchSize: option(count, "${actor_rollout_ref.actor.ppo_mini_batch_size}"),
  /** How often each batch is trained on. */
  ppoEpochs: option(count, "${actor_rollout_ref.actor.ppo_epochs}"),
  /** How far a value may go from the one before the update. */
  cliprangeValue: option(amount, 0.5),
  /** How the losses of tokens become one. */
  lossAggMode: option(lossAggMode, "${actor_rollout_ref.actor.loss_agg_mode}"),
  /**
   * The divisor of seq-mean-token-sum-norm, equal in all batches; null: data.max_response_length.
   */
  lossScaleFactor: option(count.nullable(), "${actor_rollout_ref.actor.loss_scale_factor}"),
};

export const critic = z.strictObject({
  /** Whether there is a critic; null: only with the estimator gae. */
  enable: option(flag.nullable(), null),
  ...valueLearning,
  /** The older name of optim.clip_grad. */
  gradClip: option(positive, 1),
  optim: z.strictObject({
    /** The norm that gradients are clipped to. */
    clipGrad: option(positive, "${critic.grad_clip}"),
    /** The learning rate of AdamW. */
    lr: option(amount, 1e-5),
    /** The share of all steps in which the learning rate rises. */
    lrWarmupStepsRatio: option(share, 0),
    ...optimiser,
  }),
});
