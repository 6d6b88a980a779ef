/** What the algorithms of a configuration refuse, by its key: before data, policies and warm start. */

import { ConfigError } from "@rayling/config-tree";
import { createAdvantageRegistry } from "../algorithms/advantages/registry.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/registry.ts";
import { snakeKey } from "../config/camel-keys.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { TrainerConfigError, TrainerInputError } from "../errors.ts";
import { rehearse } from "../fit/rehearsal.ts";
import { readAlgorithmSettings } from "../fit/settings.ts";
import { trainerOptionsOf } from "./trainer-options.ts";

/** Throws TrainerConfigError. */
export function checkAlgorithms(config: TrainerConfig): void {
  const [first] = config.notDone;
  if (first !== undefined) {
    const { key, value, hint } = first;
    const place = { key, value, nearest: undefined };
    throw new TrainerConfigError(`${key}: is ${JSON.stringify(value)}, and ${hint}`, place);
  }
  try {
    const options = trainerOptionsOf(config, "");
    const settings = readAlgorithmSettings(options, config.data.trainBatchSize);
    rehearse(settings, {
      advantages: createAdvantageRegistry(),
      policyLoss: createPolicyLossRegistry().get(settings.actor.lossMode),
    });
  } catch (error) {
    if (error instanceof ConfigError) {
      const { key, value, nearest, message } = error;
      throw new TrainerConfigError(message, { key, value, nearest }, { cause: error });
    }
    if (!(error instanceof TrainerInputError)) throw error;
    const [key, value] = placeOf(config, error.input.split(".").at(-1) as string);
    throw new TrainerConfigError(`${key}: ${error.message}`, { key, value, nearest: undefined });
  }
}

/** What algorithms call otherwise than the configuration. */
const renamed: Readonly<Record<string, string>> = {
  groups: "n",
  // What no policy is asked for in the bypass.
  sumPiSquared: "advEstimator",
};

/** The key of that name, and what it is. */
function placeOf(config: TrainerConfig, input: string): [string, unknown] {
  const { algorithm, actorRolloutRef, critic } = config;
  const name = renamed[input] ?? input;
  const found = findKey({ algorithm, actorRolloutRef, critic }, name);
  return found === undefined ? ["algorithm", algorithm] : [snakeKey(found[0]), found[1]];
}

function findKey(tree: object, name: string): [string, unknown] | undefined {
  for (const [key, value] of Object.entries(tree) as [string, unknown][]) {
    if (key === name) return [key, value];
    if (typeof value !== "object" || value === null) continue;
    const found = findKey(value, name);
    if (found !== undefined) return [`${key}.${found[0]}`, found[1]];
  }
  return undefined;
}
