/** verl `actor_rollout_ref` and `critic`: how policy and critic are trained, and how the policy is asked. */

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

/** @param at where it stands, for the older name of its clipping */
const optim = (at: string, lr: number) =>
  z.strictObject({
    clipGrad: option(positive, `\${${at}.grad_clip}`, "The norm that gradients are clipped to."),
    lr: option(amount, lr, "The learning rate of AdamW."),
    weightDecay: option(amount, 0.01, "The weight decay of AdamW."),
    betas: option(z.tuple([share, share]), [0.9, 0.999], "The two decay rates of AdamW."),
    lrSchedulerType: option(
      z.enum(["constant", "cosine", "linear"]),
      "constant",
      "How the learning rate goes on after its warm-up.",
    ),
    lrWarmupSteps: option(
      whole.min(-1),
      -1,
      "Steps in which the learning rate rises; -1: as many as the ratio says.",
    ),
    lrWarmupStepsRatio: option(
      share,
      0,
      "The share of all steps in which the learning rate rises.",
    ),
    minLrRatio: option(share, 0, "What is left of the learning rate at the end."),
    numCycles: option(amount, 0.5, "How many waves a cosine schedule has."),
    totalTrainingSteps: option(countOrNot, -1, "Where the schedule ends. -1: with the run."),
  });

export const actor = z.strictObject({
  ppoMiniBatchSize: option(count, 256, "Prompts of one update; with n rollouts each."),
  ppoEpochs: option(count, 1, "How often each batch is trained on."),
  clipRatio: option(amount, 0.2, "How far a policy may go from the one that made the rollout."),
  clipRatioLow: option(
    amount.nullable(),
    null,
    "null: clip_ratio. (verl: 0.2, so that clip_ratio alone does nothing there.)",
  ),
  clipRatioHigh: option(amount.nullable(), null, "null: clip_ratio."),
  clipRatioC: option(z.number().gt(1), 3, "The bound of dual-clip PPO."),
  tauPos: option(positive, 1, "Used by loss_mode sapo."),
  tauNeg: option(positive, 1.05, "Used by loss_mode sapo."),
  lossAggMode: option(lossAggMode, "token-mean", "How the losses of tokens become one."),
  lossScaleFactor: option(
    count.nullable(),
    null,
    "What seq-mean-token-sum-norm divides by; null: data.max_response_length.",
  ),
  entropyCoeff: option(z.number(), 0, "The weight of the entropy in the loss."),
  useKlLoss: option(
    flag,
    false,
    "Whether the divergence from the reference policy is in the loss.",
  ),
  klLossCoef: option(amount, 0.001, "The weight of that divergence."),
  klLossType: option(klPenalty, "low_var_kl", "How that divergence is estimated."),
  policyLoss: z.strictObject({
    lossMode: option(
      text,
      "vanilla",
      "The loss by its name; one of your own is registered in code.",
    ),
    clipCovRatio: option(share, 0.0002, "Used by loss_mode clip_cov."),
    clipCovLb: option(z.number(), 1, "Used by loss_mode clip_cov."),
    clipCovUb: option(z.number(), 5, "Used by loss_mode clip_cov."),
    klCovRatio: option(share, 0.0002, "Used by loss_mode kl_cov."),
    ppoKlCoef: option(amount, 0.1, "Used by loss_mode kl_cov."),
    droBeta: option(positive.nullable(), null, "Used by loss_mode dro."),
    behavImpWeightCap: option(positive, 5, "Used by loss_mode decoupled, the recipe's."),
  }),
  gradClip: option(positive, 1, "The older name of optim.clip_grad."),
  optim: optim("actor_rollout_ref.actor", 1e-6),
});

const sampling = {
  topK: (help: string) => option(countOrNot, -1, help),
  topP: (help: string) => option(positive.max(1), 1, help),
};

export const rollout = z.strictObject({
  n: option(count, 1, "Samples of each prompt."),
  temperature: option(positive, 1, "The temperature that rollouts are sampled with."),
  topK: sampling.topK("Only the k most likely tokens; -1: all."),
  topP: sampling.topP("Only the most likely tokens that have this probability together."),
  doSample: option(
    z.literal(true, { error: "a policy learns of what it samples: must be true" }),
    true,
    "A policy learns from what it samples.",
  ),
  promptLength: option(count, "${data.max_prompt_length}", "In tokens."),
  responseLength: option(count, "${data.max_response_length}", "In tokens."),
  valKwargs: z.strictObject({
    n: option(count, 1, "Answers to each prompt of a validation."),
    doSample: option(flag, false, "false: the most likely token."),
    temperature: option(amount, 0, "0: as without do_sample."),
    topK: sampling.topK("As for rollouts."),
    topP: sampling.topP("As for rollouts."),
  }),
});

export const critic = z.strictObject({
  enable: option(flag.nullable(), null, "null: where the estimator is gae."),
  ppoMiniBatchSize: option(
    count,
    "${actor_rollout_ref.actor.ppo_mini_batch_size}",
    "Prompts of one update.",
  ),
  ppoEpochs: option(
    count,
    "${actor_rollout_ref.actor.ppo_epochs}",
    "How often each batch is trained on.",
  ),
  cliprangeValue: option(amount, 0.5, "How far a value may go from the one before the update."),
  lossAggMode: option(
    lossAggMode,
    "${actor_rollout_ref.actor.loss_agg_mode}",
    "How the losses of tokens become one.",
  ),
  gradClip: option(positive, 1, "The older name of optim.clip_grad."),
  optim: optim("critic", 1e-5),
});
