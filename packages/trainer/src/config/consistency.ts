/**
 * Checks of a whole configuration: rules that a program has too, by verl's keys, and rules for
 * configurations alone.
 */

import { ConfigError } from "@rayling/config-tree";
import { createAdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/policy-loss-registry.ts";
import { snakeKey } from "./camel-keys.ts";
import type { TrainerConfig } from "./options/index.ts";
import { keys, valuesOf } from "./options/training-options.ts";
import { checkFit } from "./option-conflicts.ts";
import type { Whole } from "./option-conflicts.ts";

/** Keys of what is no option of a program. */
const otherKeys: Readonly<Record<string, string>> = {
  critic: "critic.enable",
  "prompts.batchSize": "data.trainBatchSize",
};

/** verl's key of an option of a program. */
function verlKeyOf(option: string): string {
  return snakeKey(keys.get(option) ?? otherKeys[option] ?? option);
}

/** Whether it has a critic. */
export function needsCritic({
  critic,
  algorithm,
}: Pick<TrainerConfig, "critic" | "algorithm">): boolean {
  return critic.enable ?? algorithm.advEstimator === "gae";
}

/**
 * Returns the facts beside option values that settings depend on. A configuration has no
 * estimators, losses and schedules of its own.
 */
export function contextOf(config: TrainerConfig): Omit<Whole, "values"> {
  return {
    trainBatchSize: config.data.trainBatchSize,
    hasCritic: needsCritic(config),
    hasOwnSchedule: false,
    estimators: createAdvantageRegistry().names(),
    losses: createPolicyLossRegistry().names(),
  };
}

/** Throws ConfigError at the first. */
export function checkTogether(config: TrainerConfig): void {
  checkFit({ values: valuesOf(config), ...contextOf(config) }, verlKeyOf);
  const { data, rayling } = config;
  const { lrWarmupSteps, lrWarmupStepsRatio } = config.actorRolloutRef.actor.optim;
  if (lrWarmupSteps > 0 && lrWarmupStepsRatio !== null && lrWarmupStepsRatio > 0) {
    throw new ConfigError(
      "actor_rollout_ref.actor.optim.lr_warmup_steps",
      "and lr_warmup_steps_ratio are both given: one of them",
      lrWarmupSteps,
    );
  }
  if (rayling.task === null && data.trainFiles.length === 0) {
    throw new ConfigError("data.train_files", "are needed where there is no rayling.task", null);
  }
  if (rayling.warmStartSteps > 0 && rayling.policy !== "tiny") {
    throw new ConfigError(
      "rayling.warm_start_steps",
      `is ${rayling.warmStartSteps}, and only the policy tiny has a warm start; it is ${rayling.policy}`,
      rayling.warmStartSteps,
    );
  }
}
