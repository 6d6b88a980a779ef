/** What each key allows, and all of them together do not. verl's own checks (`validate_config`) that have a meaning here, and those of ours. */

import { ConfigError, nearestOf } from "@rayling/config-tree";
import { createAdvantageRegistry } from "../algorithms/advantages/registry.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/registry.ts";
import { isBatchNormalized, misfitOf } from "../fit/schedule-needs.ts";
import type { TrainerConfig } from "./options/index.ts";

/** Throws ConfigError at the first. */
export function checkTogether(config: TrainerConfig): void {
  const { data, trainer, rayling, algorithm, critic } = config;
  const { actor } = config.actorRolloutRef;
  const refuse = (key: string, problem: string, value: unknown): never => {
    throw new ConfigError(key, problem, value);
  };
  if (data.trainBatchSize < actor.ppoMiniBatchSize) {
    refuse(
      "actor_rollout_ref.actor.ppo_mini_batch_size",
      `is ${actor.ppoMiniBatchSize}, more than data.train_batch_size, ${data.trainBatchSize}`,
      actor.ppoMiniBatchSize,
    );
  }
  for (const [key, size] of [
    ["actor_rollout_ref.actor", actor.ppoMiniBatchSize],
    ["critic", critic.ppoMiniBatchSize],
  ] as const) {
    if (data.trainBatchSize % size === 0) continue;
    refuse(
      `${key}.ppo_mini_batch_size`,
      `is ${size}, which does not divide data.train_batch_size, ${data.trainBatchSize}`,
      size,
    );
  }
  if (actor.optim.lrWarmupSteps > 0 && actor.optim.lrWarmupStepsRatio > 0) {
    refuse(
      "actor_rollout_ref.actor.optim.lr_warmup_steps",
      "and lr_warmup_steps_ratio are both given: one of them",
      actor.optim.lrWarmupSteps,
    );
  }
  if (actor.useKlLoss && algorithm.useKlInReward) {
    refuse(
      "algorithm.use_kl_in_reward",
      "and actor_rollout_ref.actor.use_kl_loss are both true: the divergence would count twice",
      true,
    );
  }
  if (critic.enable === false && algorithm.advEstimator === "gae") {
    refuse("critic.enable", "is false, and algorithm.adv_estimator gae needs a critic", false);
  }
  if (trainer.resumeMode === "resume_path" && trainer.resumeFromPath === null) {
    refuse("trainer.resume_from_path", "is needed where trainer.resume_mode is resume_path", null);
  }
  const { resumeFromPath } = trainer;
  if (resumeFromPath !== null && !/global_step_\d+\/*$/.test(resumeFromPath)) {
    refuse(
      "trainer.resume_from_path",
      `is ${resumeFromPath}: must be the path of a folder global_step_N`,
      resumeFromPath,
    );
  }
  checkNames(config);
  checkSchedule(config);
  if (rayling.task === null && data.trainFiles.length === 0) {
    refuse("data.train_files", "are needed where there is no rayling.task", null);
  }
  if (rayling.warmStartSteps > 0 && rayling.policy !== "tiny") {
    refuse(
      "rayling.warm_start_steps",
      `is ${rayling.warmStartSteps}, and only the policy tiny has a warm start; it is ${rayling.policy}`,
      rayling.warmStartSteps,
    );
  }
}

/** Of what is looked up by its name: a configuration has no estimators and losses of its own. */
function checkNames({ algorithm, actorRolloutRef }: TrainerConfig): void {
  const { lossMode } = actorRolloutRef.actor.policyLoss;
  const named = [
    ["algorithm.adv_estimator", algorithm.advEstimator, createAdvantageRegistry().names()],
    ["actor_rollout_ref.actor.policy_loss.loss_mode", lossMode, createPolicyLossRegistry().names()],
  ] as const;
  for (const [key, value, names] of named) {
    if (names.includes(value)) continue;
    const problem = `is "${value}": there is none of that name; there are ${names.join(", ")}`;
    throw new ConfigError(key, problem, value, nearestOf(value, names));
  }
  const { gdpoRewardKeys } = algorithm;
  if (algorithm.advEstimator === "gdpo" && (gdpoRewardKeys ?? []).length === 0) {
    const value = gdpoRewardKeys === null ? "null" : "empty";
    const problem = `is ${value}, and algorithm.adv_estimator gdpo needs the rewards that it is made of`;
    throw new ConfigError("algorithm.gdpo_reward_keys", problem, gdpoRewardKeys);
  }
}

const keyOf = {
  advEstimator: "algorithm.adv_estimator",
  batchNormalize: "algorithm.rollout_correction.rollout_is_batch_normalize",
  adaptiveMiniBatch: "rayling.adaptive_mini_batch",
  stalenessLimit: "rayling.staleness.limit",
} as const;

/** As the trainer would refuse it, before anything is loaded. */
function checkSchedule({ algorithm, rayling }: TrainerConfig): void {
  const { schedule, staleness, adaptiveMiniBatch } = rayling;
  const misfit = misfitOf({
    schedule,
    advEstimator: algorithm.advEstimator,
    normalizesWeights: isBatchNormalized(algorithm.rolloutCorrection),
    adaptsMiniBatch: adaptiveMiniBatch,
    stalenessLimit: staleness.limit,
  });
  if (misfit !== undefined) {
    const { part, schedules, why } = misfit;
    const value = {
      advEstimator: algorithm.advEstimator,
      batchNormalize: true,
      adaptiveMiniBatch: true,
      stalenessLimit: staleness.limit,
    }[part];
    throw new ConfigError(
      keyOf[part],
      `is ${String(value)}, which needs rayling.schedule ${schedules.join(" or ")}, ${why}; it is ${schedule}`,
      value,
      // gae is what stands there where nobody has said anything, a pipeline is what somebody wanted.
      algorithm.advEstimator === "gae" && part === "advEstimator"
        ? "algorithm.adv_estimator=grpo"
        : `rayling.schedule=${schedules[0]}`,
    );
  }
  const { limit, numWarmupBatches } = staleness;
  if (numWarmupBatches === null || numWarmupBatches <= limit) return;
  throw new ConfigError(
    "rayling.staleness.num_warmup_batches",
    `is ${numWarmupBatches}, more than rayling.staleness.limit, ${limit}`,
    numWarmupBatches,
    `rayling.staleness.num_warmup_batches=${limit}`,
  );
}
