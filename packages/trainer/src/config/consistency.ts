/** What each key allows, and all of them together do not. verl's own checks (`validate_config`) that have a meaning here, and those of ours. */

import { RewardConfigError } from "@rayling/reward-loop/config";
import type { TrainerConfig } from "./trainer-config.ts";

/** Throws RewardConfigError at the first. */
export function checkTogether(config: TrainerConfig): void {
  const { data, trainer, rayling, algorithm, critic } = config;
  const { actor, rollout } = config.actorRolloutRef;
  const refuse = (key: string, problem: string, value: unknown): never => {
    throw new RewardConfigError(key, problem, value);
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
  if (rollout.valKwargs.n > 1 && !samples(config)) {
    refuse(
      "actor_rollout_ref.rollout.val_kwargs.n",
      `is ${rollout.valKwargs.n}, and without do_sample and a temperature all of them would be the same`,
      rollout.valKwargs.n,
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
  if (rayling.staleness.limit > 0 && rayling.schedule !== "streaming") {
    refuse(
      "rayling.staleness.limit",
      `is ${rayling.staleness.limit}, and only the schedule streaming has one; it is ${rayling.schedule}`,
      rayling.staleness.limit,
    );
  }
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

/** Whether validation draws. */
function samples({ actorRolloutRef }: TrainerConfig): boolean {
  const { doSample, temperature } = actorRolloutRef.rollout.valKwargs;
  return doSample && temperature > 0;
}
