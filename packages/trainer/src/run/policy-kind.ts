/**
 * One way to have a policy, planned before any actor is there: what would be refused is refused
 * here, by its key, in a run as in a rehearsal.
 */

import { treeOf, valueAt } from "@rayling/config-tree";
import { snakeKey } from "../config/camel-keys.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { refusal } from "../config/refusal.ts";
import type { PromptDataset, PromptLengthOptions } from "../data/prompt-dataset.ts";
import type { PromptLengths } from "../data/prompt-lengths.ts";
import { TrainerInputError } from "../errors.ts";
import type { CriticHandle, PolicyHandle } from "../policy/policy.ts";

export interface PolicyContext {
  readonly baseDirectory: string;
  /** Undefined: only constant learning rates are possible. */
  readonly totalSteps: number | undefined;
  readonly train: PromptDataset;
  readonly validation: PromptDataset | undefined;
  /** Receives the supervised steps so far, and how many there will be. */
  readonly onWarmStart?: ((steps: number, of: number) => void) | undefined;
}

export interface Kind {
  readonly policy: () => PolicyHandle;
  /** Default: another one, with the state that the policy has before training. */
  readonly reference?: (policy: PolicyHandle) => PolicyHandle;
  /** Undefined: it has none. */
  readonly critic?: (() => CriticHandle) | undefined;
  /** Runs before the first step. */
  readonly warmStart?: (policy: PolicyHandle) => Promise<void>;
  /** Finds what a run would refuse after its actors are there. Nothing is started or asked. */
  readonly rehearse?: () => Promise<void>;
}

/** The limit of prompts, in the tokens of a policy. */
export function promptLimitsOf(
  config: TrainerConfig,
  promptLengths: PromptLengths,
): PromptLengthOptions {
  const { data, actorRolloutRef } = config;
  return {
    maxPromptLength: actorRolloutRef.rollout.promptLength,
    promptLengths,
    filterOverlongPrompts: data.filterOverlongPrompts,
    truncation: data.truncation,
  };
}

/** Keys of the settings that a policy or a critic of ours is made with, camelCase. */
export type OptimKey = "actorRolloutRef.actor.optim" | "critic.optim";

/**
 * Rejects with TrainerConfigError for a setting that a policy or a critic refuses: it knows its own
 * names alone.
 */
export async function withPolicyKeys<Value>(
  config: TrainerConfig,
  check: () => Value | Promise<Value>,
  optim: OptimKey = "actorRolloutRef.actor.optim",
): Promise<Value> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof TrainerInputError)) throw error;
    const key = keyOf(error.input, optim);
    const value = valueAt(treeOf(config), key.split("."));
    throw refusal(snakeKey(key), error.message, value, { cause: error });
  }
}

function keyOf(input: string, optim: OptimKey): string {
  if (input === "prompts") return "data.trainFiles";
  const [first = "", ...rest] = input.split(".");
  return first === "optim" ? [optim, ...rest].join(".") : `rayling.policyKwargs.${input}`;
}
