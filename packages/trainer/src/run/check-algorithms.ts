/**
 * Checks of a configuration's algorithms before data, policies and warm start; errors name the key.
 */

import { treeOf, valueAt } from "@rayling/config-tree";
import { createAdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/policy-loss-registry.ts";
import { snakeKey } from "../config/camel-keys.ts";
import { contextOf } from "../config/consistency.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { keys, valuesOf } from "../config/options/training-options.ts";
import { asTrainerError, refusal } from "../config/refusal.ts";
import { TrainerInputError } from "../errors.ts";
import { rehearse } from "../step/rehearsal.ts";
import { settingsOf } from "../settings/read-settings.ts";
import { rewardOptionsOf } from "./trainer-options.ts";

/** Throws TrainerConfigError. */
export function checkAlgorithms(config: TrainerConfig): void {
  const [first] = config.notDone;
  if (first !== undefined) {
    const { key, value, hint } = first;
    throw refusal(key, `is ${JSON.stringify(value)}, and ${hint}`, value);
  }
  asTrainerError(() => rewardOptionsOf(config, ""));
  try {
    const parts = { ...contextOf(config), batchesPerEpoch: 1, hasValidation: false };
    const settings = settingsOf(valuesOf(config), parts);
    rehearse(settings, {
      advantages: createAdvantageRegistry(),
      policyLoss: createPolicyLossRegistry().get(settings.actor.lossMode),
    });
  } catch (error) {
    if (!(error instanceof TrainerInputError)) throw error;
    const key = keyOf(error.input);
    const value = valueAt(treeOf(config), key.split("."));
    throw refusal(snakeKey(key), error.message, value, { cause: error });
  }
}

/** Names that algorithms have for options, where they are others. */
const renamed: Readonly<Record<string, string>> = {
  groups: "n",
  // The bypass asks no policy for it.
  sumPiSquared: "advEstimator",
};

/** Finds the key of what an algorithm calls so; it does not know where that stands. */
function keyOf(input: string): string {
  const name = renamed[input] ?? input;
  const [, key] = [...keys].find(([option]) => `.${option}`.endsWith(`.${name}`)) ?? [];
  return key ?? "algorithm";
}
