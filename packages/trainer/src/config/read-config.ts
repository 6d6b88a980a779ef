/**
 * From files and overrides to one checked, frozen TrainerConfig. Read strictly: a key that is misspelt is an error that names the nearest one, never a setting that is missing.
 *
 * In order: the file with what it stands on; overrides, which may change what has a default; verl's keys that mean nothing here go, and are told; defaults; the recipe's names; references;
 * types; what does not fit together.
 */

import {
  applyOverrides,
  isTree,
  keysOf,
  knownRewardKeys,
  merged,
  nearestOf,
  parseOverride,
  readRewardConfig,
  RewardConfigError,
  valueAt,
  withoutValue,
  withValue,
} from "@rayling/reward-loop/config";
import type { ConfigTree, ConfigValue } from "@rayling/reward-loop/config";
import type { z } from "zod";
import { TrainerConfigError } from "../errors.ts";
import { camelTree, snakeKey } from "./camel-keys.ts";
import { checkTogether } from "./consistency.ts";
import { readConfigFile } from "./config-files.ts";
import {
  isEngineKey,
  isOptimiserKey,
  unsupportedKeys,
  withoutUnsupported,
  withSchedulerType,
} from "./engine-keys.ts";
import { resolveReferences } from "./interpolation.ts";
import { configSchema } from "./schema.ts";
import type { TrainerConfig } from "./trainer-config.ts";

export interface LoadConfigOptions {
  /** Of a file in `folder` or of a preset, with .yaml or without; one with a "/" is a path. Default "ppo_trainer". */
  readonly name?: string | undefined;
  /** Is looked through before the presets. */
  readonly folder?: string | undefined;
  /** `key=value`, `+key=value`, `++key=value`, `~key`: Hydra's grammar. */
  readonly overrides?: readonly string[] | undefined;
}

/** Throws TrainerConfigError, which names the key, its value and the nearest key. */
export function loadTrainerConfig({
  name = "ppo_trainer",
  folder,
  overrides = [],
}: LoadConfigOptions = {}): TrainerConfig {
  return asTrainerError(() => configOf(readConfigFile(name, folder), overrides));
}

/** The same from keys as YAML reads them: verl's names, over verl's defaults. */
export function readTrainerConfig(
  tree: Readonly<Record<string, unknown>> = {},
  overrides: readonly string[] = [],
): TrainerConfig {
  return asTrainerError(() => configOf(tree as ConfigTree, overrides));
}

const rewardRoots = ["reward", "reward_model", "custom_reward_function", "sandbox_fusion"];

/** Its mini-batch pipeline, by the names that it had one after the other. */
const recipeKeys = [
  "mini_batch_pipeline",
  "update_pipeline",
  "actor_rollout_ref.actor.update_pipeline",
];

/** verl's files lack them, so that there they are added, with "+". */
const addedKeys: ConfigTree = {
  mini_batch_pipeline: null,
  update_pipeline: null,
  max_concurrency: null,
  actor_rollout_ref: { actor: { update_pipeline: null } },
};

/** Whatever is below them is somebody else's: it may be changed without being there. */
const freeKeys = [
  "reward.reward_model.rollout",
  "rayling.policy_kwargs",
  "rayling.task_kwargs",
  "rayling.expected_seconds",
];

function configOf(tree: ConfigTree, overrides: readonly string[]): TrainerConfig {
  const defaults = readConfigFile("ppo_trainer", undefined);
  const known = [knownRewardKeys, addedKeys, unsupportedKeys].reduce(merged, defaults);
  const given = applyOverrides(tree, overrides.map(inOurGrammar), known);
  const ignored = keysOf(given)
    .filter((key) => isEngineKey(key) && !isTree(valueAt(given, key.split("."))))
    .filter((key) => !key.endsWith("_target_"))
    .toSorted();
  const used = { max_concurrency: null, ...merged(defaults, withoutEngineKeys(given, "")) };
  const complete = withoutUnsupported(withSchedulerType(resolveReferences(withRecipeKeys(used))));
  const own = Object.fromEntries(
    Object.entries(complete).filter(([key]) => !rewardRoots.includes(key)),
  );
  const config = { ...checked(own, known), reward: readRewardConfig(complete), ignored };
  checkTogether(config);
  if (config.rayling.task !== null) refuseFiles(used, defaults, config.rayling.task);
  return frozen(config);
}

/** A task makes prompts of its own: files would be read by nobody. */
function refuseFiles(given: ConfigTree, defaults: ConfigTree, task: string): void {
  // One file is a list of one, which is how it is printed.
  const listAt = (tree: ConfigTree, name: string): string =>
    JSON.stringify([valueAt(tree, ["data", name])].flat());
  for (const name of ["train_files", "val_files"]) {
    const value = valueAt(given, ["data", name]);
    const isDefault = listAt(given, name) === listAt(defaults, name);
    if (isDefault) continue;
    const problem = `is ${JSON.stringify(value)}, and rayling.task ${task} makes its own prompts`;
    throw new RewardConfigError(`data.${name}`, problem, value, "rayling.task=null");
  }
}

/** What is not known here key by key may be changed, and added, and changed again. */
const kwargs = ["policy_kwargs", "task_kwargs"];

function inOurGrammar(text: string): string {
  const { sign, path } = parseOverride(text);
  const key = path.join(".");
  const isFree =
    isEngineKey(key) || isOptimiserKey(key) || freeKeys.some((one) => key.startsWith(`${one}.`));
  return isFree && sign !== "~" ? `++${text.slice(sign.length)}` : text;
}

function withoutEngineKeys(tree: ConfigTree, prefix: string): ConfigTree {
  return Object.fromEntries(
    Object.entries(tree).flatMap(([key, value]): [string, ConfigValue][] => {
      const isEngine = isEngineKey(prefix + key);
      if (!isTree(value)) return isEngine ? [] : [[key, value]];
      // One that is refused may stand below it.
      const inside = withoutEngineKeys(value, `${prefix}${key}.`);
      return isEngine && Object.keys(inside).length === 0 ? [] : [[key, inside]];
    }),
  );
}

/** verl's recipe: mini-batches as their rewards come, with whatever other overlap the schedule has. */
function withRecipeKeys(tree: ConfigTree): ConfigTree {
  let result = tree;
  for (const key of recipeKeys) {
    const path = key.split(".");
    const value = valueAt(result, path);
    if (value === undefined) continue;
    if (typeof value !== "boolean" && value !== null) {
      throw new RewardConfigError(key, `is ${JSON.stringify(value)}: must be true or false`, value);
    }
    result = withoutValue(result, path);
    if (value !== true) continue;
    const at = ["rayling", "schedule"];
    const schedule = valueAt(result, at) as string;
    result = withValue(result, at, withPipeline[schedule] ?? schedule);
  }
  return result;
}

const withPipeline: Readonly<Record<string, string>> = {
  sync: "mini-batch-pipeline",
  "one-step-off-policy": "one-step-pipeline",
};

function checked(tree: ConfigTree, known: ConfigTree): ReturnType<typeof configSchema.parse> {
  refuseCamel(tree, "");
  const result = configSchema.safeParse(camelTree(tree, kwargs));
  if (result.success) return result.data;
  const [outer] = result.error.issues;
  if (outer === undefined) throw new RewardConfigError("configuration", "cannot be read");
  const issue = innermostOf(outer);
  const keys = issue.path.filter((one) => typeof one === "string");
  const path = keys.map(snakeKey);
  if (issue.code === "unrecognized_keys") {
    const wrong = [...path, snakeKey(issue.keys[0] ?? "")];
    const key = wrong.join(".");
    throw new RewardConfigError(
      key,
      "there is no such key",
      valueAt(tree, wrong),
      nearestOf(key, keysOf(known)),
    );
  }
  const value = valueAt(tree, path);
  throw new RewardConfigError(
    path.join("."),
    `is ${JSON.stringify(value)}: ${issue.message}`,
    value,
    issue.code === "invalid_value" ? nearestValue(issue, value) : undefined,
  );
}

type Issue = z.core.$ZodIssue;

/** Where one of several things may stand: what is wrong with the one that it is most like, which is the one that got furthest. */
function innermostOf(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const inside = issue.errors.flatMap(([first]) => (first === undefined ? [] : [first]));
  const [furthest] = inside.map(innermostOf).toSorted((a, b) => b.path.length - a.path.length);
  if (furthest === undefined) return issue;
  return { ...furthest, path: [...issue.path, ...furthest.path] };
}

/** Of those that may stand there; of a list the item that is wrong. */
function nearestValue(
  { path, values }: Extract<Issue, { code: "invalid_value" }>,
  value: ConfigValue | undefined,
): string | undefined {
  const index = path.at(-1);
  const wrong = typeof index === "number" && Array.isArray(value) ? value[index] : value;
  if (typeof wrong !== "string") return undefined;
  return nearestOf(
    wrong,
    values.filter((one) => typeof one === "string"),
  );
}

/** In camelCase they would be taken for the same, and two names for one setting are one too many. Settings of a policy have that policy's names. */
function refuseCamel(tree: ConfigTree, prefix: string): void {
  for (const [key, value] of Object.entries(tree)) {
    const place = prefix + key;
    if (freeKeys.includes(place)) continue;
    if (snakeKey(key) !== key) {
      throw new RewardConfigError(place, "there is no such key", value, prefix + snakeKey(key));
    }
    if (isTree(value)) refuseCamel(value, `${place}.`);
  }
}

function asTrainerError<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RewardConfigError)) throw error;
    const { key, value, nearest, message } = error;
    throw new TrainerConfigError(message, { key, value, nearest }, { cause: error });
  }
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  for (const inside of Object.values(value)) frozen(inside as ConfigValue);
  return Object.freeze(value);
}
