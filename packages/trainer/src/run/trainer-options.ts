/**
 * A configuration as the options of a PPOTrainer: the same things by the names of the library.
 * Pure.
 */

import { asksScorers, hasOwnReward, rewardLoopOptionsOf } from "@rayling/reward-loop/config";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { needsCritic } from "../config/consistency.ts";
import { rewardBoundOf } from "../config/training-plan.ts";
import type { OptimConfig, TrainerConfig } from "../config/options/index.ts";
import type { PPOTrainerOptions } from "../ppo-trainer.ts";
import { valuesOf } from "../config/options/training-options.ts";
import { ownModule } from "../values/own-files.ts";

/** All but the actors and the data. */
export type TrainerSettingsOfConfig = Omit<
  PPOTrainerOptions,
  "policy" | "referencePolicy" | "critic" | "prompts" | "validationPrompts" | "tracking"
>;

const arithmeticReward: string = ownModule("tasks/arithmetic-reward").href;

/** @param baseDirectory where relative paths start */
export function trainerOptionsOf(
  config: TrainerConfig,
  baseDirectory: string,
): TrainerSettingsOfConfig {
  const { checkpoints, ...values } = valuesOf(config);
  return {
    ...values,
    reward: rewardOptionsOf(config, baseDirectory),
    checkpoints: checkpoints && { ...checkpoints, keep: keptOf(config) },
  };
}

/** verl's reward loop, with the recipe's bound over all of its workers. */
export function rewardOptionsOf(config: TrainerConfig, baseDirectory: string): RewardLoopOptions {
  const { reward, maxConcurrency, rayling } = config;
  const options = rewardLoopOptionsOf(reward);
  const isOwn = hasOwnReward(reward) || !asksScorers(reward);
  const { workers = reward.num_workers } = options;
  const own = {
    ...options,
    baseDirectory,
    ...(rayling.task === "arithmetic" && !isOwn ? { reward: { path: arithmeticReward } } : {}),
  };
  if (options.rewards !== undefined || options.cascade !== undefined) {
    // Limits belong to one function: the workers of each have no more slots than that together.
    const slots = maxConcurrency === null ? undefined : Math.floor(maxConcurrency / workers);
    return slots === undefined ? own : { ...own, concurrency: Math.max(1, slots) };
  }
  return {
    ...own,
    ...(maxConcurrency === null ? {} : { concurrency: Math.ceil(maxConcurrency / workers) }),
    // Workers share the bound where their slots together exceed it.
    ...(maxConcurrency === null || maxConcurrency % workers === 0
      ? {}
      : { limits: withBound(options.limits, Math.min(maxConcurrency, rewardBoundOf(reward))) }),
  };
}

function withBound(limits: RewardLoopOptions["limits"], most: number): RewardLoopOptions["limits"] {
  const adaptive = limits?.concurrency;
  return {
    ...limits,
    concurrency: typeof adaptive === "object" ? { ...adaptive, max: most } : most,
  };
}

/**
 * Returns how many checkpoints to keep: a checkpoint has actor and critic, and stays while one of
 * them is to be kept. A critic without a number of its own has the actor's. null: all.
 */
function keptOf({ trainer, critic, algorithm }: TrainerConfig): number | null {
  const { maxActorCkptToKeep: ofActor, maxCriticCkptToKeep: ofCritic } = trainer;
  if (ofActor === null || ofCritic === null || !needsCritic({ critic, algorithm })) return ofActor;
  return Math.max(ofActor, ofCritic);
}

/** verl's names of the optimiser are the policy's, but for what the run knows. */
export function optimSettingsOf(
  optim: OptimConfig,
  totalSteps: number | undefined,
): Omit<OptimConfig, "totalTrainingSteps"> & { readonly totalTrainingSteps: number } {
  const { totalTrainingSteps } = optim;
  return {
    ...optim,
    totalTrainingSteps: totalTrainingSteps === -1 ? (totalSteps ?? -1) : totalTrainingSteps,
  };
}
