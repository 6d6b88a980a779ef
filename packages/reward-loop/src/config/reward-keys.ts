/**
 * The keys of `reward` in verl's configuration, with verl's defaults, and the extensions of this
 * package: the allowed values of each key by itself.
 */

import { type Frozen, nested, option, readOptions } from "@rayling/config-tree/options";
import { z } from "zod";
import {
  loopOptions,
  rateLimitedOptions,
  sandboxFusionOptions,
} from "../options/defaults/functions.ts";
import { partName, partNameWords } from "../options/read.ts";
import { modelKeys } from "./model/model-keys.ts";
import { hasParts } from "./part-keys.ts";
import type { RewardPartsConfig } from "./part-keys.ts";
import { keysOf } from "./table-keys.ts";

const counted = z.number().int().min(1);
const text = z.string().min(1);
const flag = z.boolean();
const free = z.record(z.string(), z.unknown());

/** Null is not set. */
function orNull<Value extends z.ZodType>(
  type: Value,
  help: string,
): z.ZodPrefault<z.ZodNullable<Value>> {
  return option(type.nullable(), null, help);
}

/** verl's number of workers is its own. */
const { num_workers: _workers, custom_reward_function, ...ours } = keysOf(loopOptions);

/**
 * The table of `reward`, by verl's own names, with the names of the loop's options (options/). A
 * null is unset.
 */
export const rewardOptions = z.strictObject({
  num_workers: option(counted, 8, "Threads that score; several functions share them."),
  custom_reward_function,
  compute_score_kwargs: option(
    free,
    {},
    "Settings of the scorers by data source: lenient=true takes more ways of writing for the right answer (ours); any other is refused.",
  ),
  reward_manager: nested({
    source: option(
      z.enum(["register", "importlib"]),
      "register",
      "Whether name is that of a manager, or of a class in module.",
    ),
    name: option(text, "naive", "naive, dapo, gdpo, rate_limited, remote; or a class of yours."),
    module: nested({
      path: orNull(text, "With importlib."),
      name: option(text, "custom_reward_manager", "verl's name for the class; nothing reads it."),
    }),
  }),
  reward_model: nested({
    enable: option(flag, false, "Whether a reward model scores, or is asked by the function."),
    ...modelKeys,
  }),
  reward_models: option(
    z.record(
      z.string().regex(partName, `must be ${partNameWords}`),
      z.strictObject({
        enable: option(flag, true, "Whether it is there."),
        ...modelKeys,
      }),
    ),
    {},
    "Several reward models by their names, each with the keys of reward.reward_model; the one called default is reward.reward_model. A function says by asked_models which it asks. (Ours.)",
  ),
  sandbox_fusion: nested(keysOf(sandboxFusionOptions)),
  reward_kwargs: option(free, {}, "Settings of the manager."),
  ...keysOf(rateLimitedOptions),
  timeout: option(
    // A timer takes as many milliseconds.
    z
      .number()
      .positive()
      .max((2 ** 31 - 1) / 1000),
    300,
    "Used by the manager rate_limited: seconds that a call may take.",
  ),
  experiment_name: orNull(
    z.string(),
    "Used by the manager gdpo; null: trainer.experiment_name. (Ours.)",
  ),
  policy_tokenizer: orNull(
    text,
    "A folder; null: actor_rollout_ref.model.tokenizer_path, or its path, where that is a folder with a tokenizer.json; else responses have to be texts. (Ours.)",
  ),
  ...ours,
});

export type RewardConfig = Omit<Frozen<z.output<typeof rewardOptions>>, keyof RewardPartsConfig> &
  RewardPartsConfig;

/** verl's own defaults, read from a configuration without keys. */
export const defaultRewardConfig: RewardConfig = readOptions(rewardOptions, {}) as RewardConfig;

/**
 * verl's managers before 0.7, which gave all samples of a batch to the function, or to processes:
 * here samples are scored concurrently anyway.
 */
export const oldManagers: readonly string[] = ["batch", "prime"];

/** The name of a manager that is registered; undefined for a class of the user's. */
export function registeredManagerOf({ reward_manager: manager }: RewardConfig): string | undefined {
  if (manager.source !== "register") return undefined;
  return oldManagers.includes(manager.name) ? "naive" : manager.name;
}

/** Whether the manager has either of the two names. */
export function isRateLimited(config: RewardConfig): boolean {
  return ["rate_limited", "limited"].includes(registeredManagerOf(config) ?? "");
}

/**
 * Whether functions of the user's score, and not a reward model or the scorers by data source
 * alone.
 */
export function hasOwnReward(config: RewardConfig): boolean {
  return hasParts(config) || config.custom_reward_function.path !== null;
}
