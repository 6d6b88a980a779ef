/**
 * The keys of verl 0.7 and before (`reward_model.*`, `custom_reward_function`, `sandbox_fusion` at the root) at the places that they have now, under `reward`.
 * What is null there says nothing, nor does the name that its source does not read. A key that is given in both ways has to be the same in both.
 */

import { rolloutKeys } from "./engine-flags.ts";
import {
  type ConfigTree,
  type ConfigValue,
  isTree,
  nearestOf,
  RewardConfigError,
  valueAt,
  withoutValue,
  withValue,
} from "./tree.ts";

/** Where each of them went; "" for those that have no meaning any more. */
const moved: Readonly<Record<string, string>> = {
  "reward_model.num_workers": "num_workers",
  "reward_model.reward_manager": "reward_manager.name",
  "reward_model.reward_loop_source": "reward_manager.source",
  "reward_model.reward_loop_module_path": "reward_manager.module.path",
  "reward_model.reward_loop_class_name": "reward_manager.name",
  "reward_model.enable": "reward_model.enable",
  "reward_model.enable_resource_pool": "reward_model.enable_resource_pool",
  "reward_model.n_gpus_per_node": "reward_model.n_gpus_per_node",
  "reward_model.nnodes": "reward_model.nnodes",
  "reward_model.model.path": "reward_model.model_path",
  "reward_model.max_concurrent": "max_concurrent",
  "reward_model.max_rpm": "max_rpm",
  "reward_model.max_tpm": "max_tpm",
  "reward_model.estimated_tokens_per_request": "estimated_tokens_per_request",
  "reward_model.timeout": "timeout",
  "reward_model.model.external_lib": "",
  "reward_model.model.trust_remote_code": "",
  "reward_model.use_reward_loop": "",
  "reward_model.launch_reward_fn_async": "",
};

/** With all that is inside. */
const whole: Readonly<Record<string, string>> = {
  "reward_model.reward_kwargs": "reward_kwargs",
  "reward_model.rollout": "reward_model.rollout",
  "reward_model.sandbox_fusion": "sandbox_fusion",
  custom_reward_function: "custom_reward_function",
  sandbox_fusion: "sandbox_fusion",
};

const ofSandbox = ["url", "max_concurrent", "memory_limit_mb"];

/** All of them, null. */
export const legacyKeys: ConfigTree = [
  ...Object.keys(moved),
  ...Object.keys(whole),
  "custom_reward_function.path",
  "custom_reward_function.name",
  ...ofSandbox.map((key) => `sandbox_fusion.${key}`),
  ...ofSandbox.map((key) => `reward_model.sandbox_fusion.${key}`),
  ...rolloutKeys.map((key) => `reward_model.rollout.${key}`),
].reduce<ConfigTree>((tree, key) => withValue(tree, key.split("."), null), {});

const roots = ["reward_model", "custom_reward_function", "sandbox_fusion"];

/** The same without them. Throws RewardConfigError for one that is not known, and for two that contradict each other. */
export function withoutLegacyKeys(tree: ConfigTree): ConfigTree {
  let result = tree;
  for (const root of roots) {
    const value = tree[root];
    if (value === undefined) continue;
    result = withoutValue(result, [root]);
    if (value === null) continue;
    if (!isTree(value)) throw new RewardConfigError(root, "must hold keys", value);
    result = moveAll(result, root, root === "reward_model" ? withOneName(value, tree) : value);
  }
  return result;
}

/**
 * Where a key says something: its place of today, else that of yesterday; undefined where neither does.
 *
 * @param key of today: `reward.max_rpm`
 */
export function writtenKey(tree: ConfigTree, key: string): string | undefined {
  const old = [...Object.entries(moved), ...Object.entries(whole)].flatMap(([from, to]) => {
    const place = `reward.${to}`;
    return key === place || key.startsWith(`${place}.`) ? [from + key.slice(place.length)] : [];
  });
  return [key, ...old].find((one) => (valueAt(tree, one.split(".")) ?? null) !== null);
}

/** 0.7 has a name for each source: that of a class counts with importlib only, and then that of a registered manager, which is never null there, does not. */
function withOneName(model: ConfigTree, tree: ConfigTree): ConfigTree {
  const given =
    model["reward_loop_source"] ?? valueAt(tree, ["reward", "reward_manager", "source"]);
  const className = model["reward_loop_class_name"] ?? null;
  const unread =
    given === "importlib" && className !== null ? "reward_manager" : "reward_loop_class_name";
  return { ...model, [unread]: null };
}

function moveAll(tree: ConfigTree, key: string, value: ConfigValue): ConfigTree {
  const target = whole[key] ?? moved[key];
  if (target !== undefined && !(isTree(value) && whole[key] === undefined)) {
    return value === null || target === "" ? tree : put(tree, key, `reward.${target}`, value);
  }
  if (isTree(value) && isInner(key)) {
    return Object.entries(value).reduce(
      (result, [name, inside]) => moveAll(result, `${key}.${name}`, inside),
      tree,
    );
  }
  throw new RewardConfigError(
    key,
    "there is no such key",
    value,
    nearestOf(key, [...Object.keys(moved), ...Object.keys(whole)]),
  );
}

/** Whether keys that are known stand below it. */
function isInner(key: string): boolean {
  return [...Object.keys(moved), ...Object.keys(whole)].some((one) => one.startsWith(`${key}.`));
}

function put(tree: ConfigTree, from: string, to: string, value: ConfigValue): ConfigTree {
  if (isTree(value)) {
    return Object.entries(value).reduce(
      (result, [name, inside]) =>
        inside === null ? result : put(result, `${from}.${name}`, `${to}.${name}`, inside),
      tree,
    );
  }
  const path = to.split(".");
  const there = valueAt(tree, path);
  if (there !== undefined && there !== null && JSON.stringify(there) !== JSON.stringify(value)) {
    throw new RewardConfigError(
      from,
      `is ${JSON.stringify(value)}, and ${to}, which is where it stands now, is ${JSON.stringify(there)}`,
      value,
    );
  }
  return withValue(tree, path, value);
}
