/** How many steps the learning rate goes over, where that can be known before the policy is. */

import { trainingPlanOf } from "../config/training-plan.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { refusal } from "../config/refusal.ts";
import type { ConfiguredPrompts } from "./prompt-files.ts";

/**
 * Returns undefined where the number depends on prompts that only the policy can count, and is not
 * needed. Throws TrainerConfigError where it is needed.
 */
export function totalStepsOf(
  config: TrainerConfig,
  prompts: ConfiguredPrompts,
): number | undefined {
  const { data, trainer, critic } = config;
  const { actor } = config.actorRolloutRef;
  // As in verl: also where the epochs are over before.
  if (trainer.totalTrainingSteps !== null) return trainer.totalTrainingSteps;
  if (!data.filterOverlongPrompts) {
    // The learning rate follows these steps even in a run that only validates.
    const whole = { ...config, trainer: { ...trainer, valOnly: false } };
    return trainingPlanOf(whole, { train: prompts.train.length, validation: 0 }).totalSteps;
  }
  const wanting = [actor.optim, critic.optim].find(
    ({ lrSchedulerType, lrWarmupStepsRatio }) =>
      lrSchedulerType !== "constant" || (lrWarmupStepsRatio !== null && lrWarmupStepsRatio > 0),
  );
  if (wanting === undefined) return undefined;
  const problem =
    "is needed where the learning rate follows the length of the run and overlong prompts are left out";
  throw refusal("trainer.total_training_steps", problem, null);
}
