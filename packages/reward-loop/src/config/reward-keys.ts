/** The keys of `reward` in verl's configuration, with verl's defaults, and ours besides: what each may be, not yet what they say together. */

import { z } from "zod";
import { hasParts, partsKeys, type RewardPartsConfig } from "./part-keys.ts";
import { policyKeys, rewardFunction } from "./policy-keys.ts";
import type { FunctionConfig, RewardPolicyConfig } from "./policy-keys.ts";
import { rolloutDefaults } from "./reward-model-use.ts";
import type { RewardModelConfig } from "./reward-model-use.ts";

/** `reward` of verl's configuration, by its own names. What is null is not set. */
export interface RewardConfig extends RewardPolicyConfig, RewardPartsConfig {
  readonly num_workers: number;
  readonly custom_reward_function: FunctionConfig;
  /** Of verl's own scorers: ours have none, and any is refused. */
  readonly compute_score_kwargs: Readonly<Record<string, unknown>>;
  readonly reward_manager: {
    readonly source: "register" | "importlib";
    readonly name: string;
    readonly module: { readonly path: string | null; readonly name: string };
  };
  readonly reward_model: RewardModelConfig;
  readonly sandbox_fusion: {
    readonly url: string | null;
    readonly max_concurrent: number;
    readonly memory_limit_mb: number;
  };
  readonly reward_kwargs: Readonly<Record<string, unknown>>;
  /** Of the rate_limited manager, as the next four: with another one they are verl's defaults. */
  readonly max_concurrent: number;
  readonly max_rpm: number | null;
  readonly max_tpm: number | null;
  readonly estimated_tokens_per_request: number;
  /** Seconds. */
  readonly timeout: number;
  /** Ours, of the manager gdpo. Null: `trainer.experiment_name`. */
  readonly experiment_name: string | null;
  /** Ours: a folder. Null: `actor_rollout_ref.model.tokenizer_path`, or its `path`, where that is a folder with a tokenizer.json; else responses have to be texts. */
  readonly policy_tokenizer: string | null;
}

const wholeNumber = z.number().int();
const counted = wholeNumber.min(1);
const free = z.record(z.string(), z.unknown());

export const rewardSchema: z.ZodType<RewardConfig> = z.strictObject({
  num_workers: counted.default(8),
  custom_reward_function: rewardFunction,
  compute_score_kwargs: free.default({}),
  reward_manager: z
    .strictObject({
      source: z.enum(["register", "importlib"]).default("register"),
      name: z.string().min(1).default("naive"),
      module: z
        .strictObject({
          path: z.string().min(1).nullable().default(null),
          name: z.string().min(1).default("custom_reward_manager"),
        })
        .prefault({}),
    })
    .prefault({}),
  reward_model: z
    .strictObject({
      enable: z.boolean().default(false),
      enable_resource_pool: z.boolean().default(false),
      n_gpus_per_node: wholeNumber.min(0).default(8),
      nnodes: wholeNumber.min(0).default(0),
      model_path: z.string().min(1).nullable().default(null),
      servers: z.array(z.string().min(1)).default([]),
      allowed_paths: z.array(z.string().min(1)).default([]),
      rollout: free.default({ ...rolloutDefaults }),
    })
    .prefault({}),
  sandbox_fusion: z
    .strictObject({
      url: z.string().min(1).nullable().default(null),
      max_concurrent: counted.default(64),
      memory_limit_mb: counted.default(1024),
    })
    .prefault({}),
  reward_kwargs: free.default({}),
  max_concurrent: counted.default(1),
  max_rpm: z.number().positive().nullable().default(null),
  max_tpm: z.number().positive().nullable().default(null),
  estimated_tokens_per_request: wholeNumber.min(0).default(2000),
  timeout: z.number().positive().default(300),
  experiment_name: z.string().nullable().default(null),
  policy_tokenizer: z.string().min(1).nullable().default(null),
  ...policyKeys,
  ...partsKeys,
});

/** Without what is null everywhere: verl's own defaults. */
export const defaultRewardConfig: RewardConfig = rewardSchema.parse({});

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
