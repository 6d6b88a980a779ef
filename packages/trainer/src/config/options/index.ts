/**
 * The options of a training: verl's keys at verl's places, and ours. Each stands here once, with
 * what may stand there, its default and what it means; types, checks, the preset ppo_trainer, the
 * page of all options and the schema for editors come from it. Names are camelCase here, and
 * snake_case in files.
 */

import type { Frozen } from "@rayling/config-tree/options";
import { option } from "@rayling/config-tree/options";
import type { RewardConfig } from "@rayling/reward-loop/config";
import { z } from "zod";
import type { NotDone } from "../verl/unsupported-keys.ts";
import { algorithm } from "./algorithm.ts";
import { data } from "./data.ts";
import { count } from "./kinds.ts";
import { actor, critic, rollout } from "./policies.ts";
import { rayling, trainer } from "./run.ts";

/** All but `reward`, which the reward loop has a table of. */
export const trainerOptions = z.strictObject({
  actorRolloutRef: z.strictObject({ actor, rollout }),
  critic,
  algorithm,
  data,
  /**
   * The most rewards at once, over all workers; null: as many as the workers have slots. (verl's
   * recipe.)
   */
  maxConcurrency: option(count.nullable(), null),
  trainer,
  rayling,
});

/**
 * A configuration as it is used: every key has a value, null is not set. `readTrainerConfig` makes
 * it, checked and frozen. Lengths are in tokens, batches in prompts.
 */
export interface TrainerConfig extends Frozen<z.output<typeof trainerOptions>> {
  /** By verl's own names, as the reward loop has them. */
  readonly reward: RewardConfig;
  /** verl's keys that were given and have no meaning here. */
  readonly ignored: readonly string[];
  /** Settings that are done in another way, without a change of the training, in words. */
  readonly notes: readonly string[];
  /** Settings that are not supported; a run refuses the first one. */
  readonly notDone: readonly NotDone[];
}

/** verl `actor_rollout_ref.actor`. */
export type ActorConfig = TrainerConfig["actorRolloutRef"]["actor"];
/** verl `optim`, of the actor and of the critic. */
export type OptimConfig = ActorConfig["optim"];
/** verl `actor_rollout_ref.rollout`. */
export type RolloutConfig = TrainerConfig["actorRolloutRef"]["rollout"];
/** verl `critic`. */
export type CriticConfig = TrainerConfig["critic"];
/** verl `algorithm`. */
export type AlgorithmConfig = TrainerConfig["algorithm"];
/** verl `data`. */
export type DataConfig = TrainerConfig["data"];
/** verl `trainer`. */
export type RunConfig = TrainerConfig["trainer"];
/** Options that verl has no key for. */
export type RaylingConfig = TrainerConfig["rayling"];
/** Times of the phases of a step, by verl's timers; a missing one counts as 0. */
export type ExpectedSeconds = RaylingConfig["expectedSeconds"];
