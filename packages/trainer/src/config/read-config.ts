/**
 * From files and overrides to one checked, frozen TrainerConfig. Read strictly: a key that is
 * misspelt is an error that names the nearest one, never a setting that is missing.
 *
 * In order: the file with what it stands on; overrides, which may change what has a default; verl's
 * keys that mean nothing here go, and are told; defaults; the recipe's names; references; types;
 * what does not fit together.
 */

import {
  applyOverrides,
  ConfigError,
  isTree,
  keysOf,
  merged,
  parseOverride,
  resolveReferences,
  treeOf,
  valueAt,
  withoutValue,
  withValue,
} from "@rayling/config-tree";
import { defaultsOf, readOptions } from "@rayling/config-tree/options";
import type { ComposedFile, ConfigTree, ConfigValue } from "@rayling/config-tree";
import {
  isFreeLegacyKey,
  knownRewardKeys,
  oldManagers,
  readRewardConfig,
  runKeys,
} from "@rayling/reward-loop/config";
import type { RewardConfig } from "@rayling/reward-loop/config";
import { camelTree, snakeKey } from "./camel-keys.ts";
import { checkTogether } from "./consistency.ts";
import { composePreset, isPreset } from "./presets.ts";
import { asTrainerError } from "./refusal.ts";
import { trainerOptions } from "./options/index.ts";
import type { TrainerConfig } from "./options/index.ts";
import {
  choosesEngine,
  engineDefaults,
  isEngineKey,
  withEngineDefaults,
} from "./verl/engine-keys.ts";
import { notDoneIn, notDoneKeys } from "./verl/unsupported-keys.ts";
import { otherNames, respelt } from "./verl/spellings.ts";

export interface LoadConfigOptions {
  /**
   * Name of a file in `folder` or of a preset, with .yaml or without; a name with a "/" is a path.
   * Default "ppo_trainer".
   */
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
  return asTrainerError(() => {
    const { tree: composed, overrides: values, files } = composePreset(name, folder, overrides);
    const tree = withoutPresets(composed, values, files);
    const engine = /^ppo_veomni_trainer(\.ya?ml)?$/.test(name) ? { model_engine: "veomni" } : {};
    return configOf({ ...engine, ...tree }, values);
  });
}

/**
 * Values of a preset for its own task and length no longer count where the user has others: its
 * warm start goes with its task, and its epochs end no run that the user gives its steps.
 */
function withoutPresets(
  tree: ConfigTree,
  overrides: readonly string[],
  files: readonly ComposedFile[],
): ConfigTree {
  const said = (key: string): ConfigValue | undefined =>
    overrides.map(parseOverride).findLast((one) => one.key === key)?.value;
  const valueOf = (key: string): ConfigValue => {
    const value = said(key);
    return (value === undefined ? valueAt(tree, key.split(".")) : value) ?? null;
  };
  const isUsers = (key: string): boolean => {
    const file = files.findLast((one) => valueAt(one.tree, key.split(".")) !== undefined);
    return said(key) !== undefined || (file !== undefined && !isPreset(file));
  };
  const changes: readonly [key: string, isOther: boolean, value: ConfigValue][] = [
    ["rayling.warm_start_steps", valueOf("rayling.task") === null, 0],
    ["trainer.total_epochs", valueOf("trainer.total_training_steps") !== null, null],
  ];
  return changes.reduce(
    (result, [key, isOther, value]) =>
      isOther && !isUsers(key) ? withValue(result, key.split("."), value) : result,
    tree,
  );
}

/** Reads a configuration from keys as YAML has them: verl's names, over verl's defaults. */
export function readTrainerConfig(
  tree: Readonly<Record<string, unknown>> = {},
  overrides: readonly string[] = [],
): TrainerConfig {
  return asTrainerError(() => configOf(treeOf(tree), overrides));
}

const rewardRoots = [
  "reward",
  "reward_manager",
  "reward_model",
  "custom_reward_function",
  "sandbox_fusion",
];

/** Keys of the recipe's mini-batch pipeline, in the order of their release. */
const recipeKeys = [
  "mini_batch_pipeline",
  "update_pipeline",
  "actor_rollout_ref.actor.update_pipeline",
];

/** verl's files lack them, so that there they are added, with "+". */
const addedKeys = recipeKeys.reduce<ConfigTree>(
  (tree, key) => withValue(tree, key.split("."), null),
  {},
);

/** Keys below these belong to others and may be overridden without a default. */
const freeKeys = [
  "reward.reward_model.rollout",
  "rayling.policy_kwargs",
  "rayling.task_kwargs",
  "rayling.expected_seconds",
];

function configOf(tree: ConfigTree, overrides: readonly string[]): TrainerConfig {
  const defaults = defaultsOf(trainerOptions, snakeKey);
  const known = [knownRewardKeys, addedKeys].reduce(merged, defaults);
  const isEngine = (key: string): boolean => isEngineKey(key, known) && !otherNames.includes(key);
  const isUnread = (key: string): boolean => isEngine(key) && !isRunKey(key);
  const choices = overrides.filter((text) => {
    const { key, package: place } = parseOverride(text);
    return choosesEngine(key, place);
  });
  const chosen = choices.map((text) => {
    const { key, package: place, value = null } = parseOverride(text);
    return { key, package: place, value };
  });
  const ofFile = { key: "model_engine", package: undefined, value: tree["model_engine"] ?? null };
  const given = applyOverrides(
    withEngineDefaults(tree, defaults, [ofFile, ...chosen]),
    overrides.filter((text) => !choices.includes(text)),
    { known, isFree: (key) => isEngine(key) || isFree(key) },
  );
  const among = [engineDefaults(), defaults, given].reduce(merged);
  const used = merged(defaults, withoutEngineKeys(given, "", isUnread));
  const resolved = resolveReferences(withRecipeKeys(used), { among });
  const { tree: complete, notes: spelt } = respelt(resolved);
  const reward = readRewardConfig(complete);
  const notes = [...spelt, ...managerNotes(reward)];
  const notDone = notDoneIn(resolveReferences(onlyKeys(given, notDoneKeys), { among }));
  const own = Object.fromEntries(
    Object.entries(withoutEngineKeys(complete, "", isEngine)).filter(
      ([key]) => !rewardRoots.includes(key),
    ),
  );
  refuseCamel(own, "");
  const rules = { name: snakeKey, known: keysOf(known) };
  const config = {
    ...readOptions(trainerOptions, camelTree(own, kwargs), rules),
    reward,
    ignored: [...choices.map((text) => parseOverride(text).key), ...engineKeysOf(given, isEngine)]
      .filter((key) => !notDone.some((one) => one.key === key))
      .filter((key) => !isRunKey(key) || !isReadByRewards(key, complete, reward))
      .toSorted(),
    notes,
    notDone,
  };
  checkTogether(config);
  if (config.rayling.task !== null) refuseFiles(used, defaults, config.rayling.task);
  return frozen(config);
}

/** verl's engines have it, and rewards may take something from it. */
function isRunKey(key: string): boolean {
  return valueAt(runKeys, key.split(".")) === null;
}

function isReadByRewards(key: string, tree: ConfigTree, reward: RewardConfig): boolean {
  const without = readRewardConfig(withoutValue(tree, key.split(".")));
  return JSON.stringify(without) !== JSON.stringify(reward);
}

function managerNotes({ reward_manager: manager }: RewardConfig): string[] {
  if (manager.source !== "register" || !oldManagers.includes(manager.name)) return [];
  const instead = "the function scores one sample, and many are at work at once";
  return [`reward.reward_manager.name is ${manager.name}, and naive does its work: ${instead}`];
}

/**
 * Returns the engine keys that set something: not a bare section, and not the class names of verl.
 */
function engineKeysOf(given: ConfigTree, isEngine: (key: string) => boolean): string[] {
  return keysOf(given).filter(
    (key) => isEngine(key) && !isTree(valueAt(given, key.split("."))) && !key.endsWith("_target_"),
  );
}

function onlyKeys(tree: ConfigTree, keys: readonly string[]): ConfigTree {
  return keys.reduce<ConfigTree>((result, key) => {
    const value = valueAt(tree, key.split("."));
    return value === undefined ? result : withValue(result, key.split("."), value);
  }, {});
}

/** Refuses files beside a task: the task generates its own prompts, so files would not be read. */
function refuseFiles(given: ConfigTree, defaults: ConfigTree, task: string): void {
  // One file becomes a list of one file, as it is printed.
  const listAt = (tree: ConfigTree, name: string): string =>
    JSON.stringify([valueAt(tree, ["data", name])].flat());
  for (const name of ["train_files", "val_files"]) {
    const value = valueAt(given, ["data", name]);
    const isDefault = listAt(given, name) === listAt(defaults, name);
    if (isDefault) continue;
    const problem = `is ${JSON.stringify(value)}, and rayling.task ${task} makes its own prompts`;
    throw new ConfigError(`data.${name}`, problem, value, "rayling.task=null");
  }
}

const kwargs = ["policy_kwargs", "task_kwargs"];

/** Whether the keys below this one are unknown here and may be changed and added. */
function isFree(key: string): boolean {
  return (
    otherNames.includes(key) ||
    isFreeLegacyKey(key) ||
    notDoneKeys.some((one) => key === one || key.startsWith(`${one}.`)) ||
    freeKeys.some((one) => key.startsWith(`${one}.`))
  );
}

function withoutEngineKeys(
  tree: ConfigTree,
  prefix: string,
  isEngine: (key: string) => boolean,
): ConfigTree {
  return Object.fromEntries(
    Object.entries(tree).flatMap(([key, value]): [string, ConfigValue][] => {
      const isOut = isEngine(prefix + key) || notDoneKeys.includes(prefix + key);
      if (!isTree(value)) return isOut ? [] : [[key, value]];
      // A key with another name may be below it.
      const inside = withoutEngineKeys(value, `${prefix}${key}.`, isEngine);
      return isOut && Object.keys(inside).length === 0 ? [] : [[key, inside]];
    }),
  );
}

/**
 * Applies the keys of verl's recipe: mini-batches as their rewards come, beside the overlap of the
 * schedule.
 */
function withRecipeKeys(tree: ConfigTree): ConfigTree {
  let result = tree;
  for (const key of recipeKeys) {
    const path = key.split(".");
    const value = valueAt(result, path);
    if (value === undefined) continue;
    if (typeof value !== "boolean" && value !== null) {
      throw new ConfigError(key, `is ${JSON.stringify(value)}: must be true or false`, value);
    }
    result = withoutValue(result, path);
    if (value !== true) continue;
    const at = ["rayling", "schedule"];
    const schedule = valueAt(result, at) ?? null;
    const name = typeof schedule === "string" ? withPipeline[schedule] : undefined;
    result = withValue(result, at, name ?? schedule);
  }
  return result;
}

const withPipeline: Readonly<Record<string, string>> = {
  sync: "mini-batch-pipeline",
  "one-step-off-policy": "one-step-pipeline",
};

/**
 * In camelCase they would be taken for the same, and two names for one setting are one too many.
 * Settings of a policy have that policy's names.
 */
function refuseCamel(tree: ConfigTree, prefix: string): void {
  for (const [key, value] of Object.entries(tree)) {
    const place = prefix + key;
    if (freeKeys.includes(place)) continue;
    if (snakeKey(key) !== key) {
      throw new ConfigError(place, "there is no such key", value, prefix + snakeKey(key));
    }
    if (isTree(value)) refuseCamel(value, `${place}.`);
  }
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  const insides: unknown[] = Object.values(value);
  for (const inside of insides) frozen(inside);
  return Object.freeze(value);
}
