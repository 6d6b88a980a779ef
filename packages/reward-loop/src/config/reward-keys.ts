/** The keys of `reward` in verl's configuration, with verl's defaults, and ours besides: what each may be, not yet what they say together. */

import { type Frozen, nested, option, readOptions } from "@rayling/config-tree/options";
import { z } from "zod";
import { hasParts, partsKeys } from "./part-keys.ts";
import { orNull, policyKeys, rewardFunction } from "./policy-keys.ts";
import { rolloutDefaults } from "./engine-flags.ts";

const counted = z.number().int().min(1);
const fromZero = z.number().int().min(0);
const text = z.string().min(1);
const flag = z.boolean();
const free = z.record(z.string(), z.unknown());

/** The table of `reward`, by verl's own names. What is null is not set. */
export const rewardOptions = z.strictObject({
  num_workers: option(counted, 8, "Threads that score; several functions share them."),
  custom_reward_function: rewardFunction,
  compute_score_kwargs: option(
    free,
    {},
    "Settings of verl's own scorers: ours have none, and any is refused.",
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
    enable_resource_pool: option(flag, false, "Whether the reward model has GPUs of its own."),
    n_gpus_per_node: option(fromZero, 8, "GPUs of this machine for the reward model."),
    nnodes: option(fromZero, 0, "Machines for the reward model: 1 is this one."),
    model_path: orNull(text, "The reward model: its folder, or its name."),
    servers: option(z.array(text), [], "host:port of servers that run already. (Ours.)"),
    allowed_paths: option(
      z.array(text),
      [],
      "Paths of the servers that the router lets through besides those of inference. (Ours.)",
    ),
    rollout: option(
      free,
      { ...rolloutDefaults },
      "verl's settings of the engine, as flags of the servers.",
    ),
  }),
  sandbox_fusion: nested({
    url: orNull(text, "A service that runs programs, for the scorers by data source."),
    max_concurrent: option(counted, 64, "Programs at once."),
    memory_limit_mb: option(counted, 1024, "The memory that each program may take."),
  }),
  reward_kwargs: option(free, {}, "Settings of the manager."),
  max_concurrent: option(counted, 1, "Used by the manager rate_limited: calls at once."),
  max_rpm: orNull(z.number().positive(), "Used by the manager rate_limited: calls a minute."),
  max_tpm: orNull(z.number().positive(), "Used by the manager rate_limited: tokens a minute."),
  estimated_tokens_per_request: option(
    fromZero,
    2000,
    "Used by the manager rate_limited: tokens of a call.",
  ),
  timeout: option(
    z.number().positive(),
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
  ...policyKeys,
  ...partsKeys,
});

export type RewardConfig = Frozen<z.output<typeof rewardOptions>>;

/** Without what is null everywhere: verl's own defaults. */
export const defaultRewardConfig: RewardConfig = readOptions(rewardOptions, {});

/** verl's managers of before 0.7, which gave all samples of a batch to the function, or to processes: here many are at work at once anyway. */
export const oldManagers: readonly string[] = ["batch", "prime"];

/** The name of a manager that is registered; undefined for a class of the user's. */
export function registeredManagerOf({ reward_manager: manager }: RewardConfig): string | undefined {
  if (manager.source !== "register") return undefined;
  return oldManagers.includes(manager.name) ? "naive" : manager.name;
}

/** By either of its names. */
export function isRateLimited(config: RewardConfig): boolean {
  return ["rate_limited", "limited"].includes(registeredManagerOf(config) ?? "");
}

/** Whether functions of the user's score, and not a reward model or the scorers by data source alone. */
export function hasOwnReward(config: RewardConfig): boolean {
  return hasParts(config) || config.custom_reward_function.path !== null;
}
