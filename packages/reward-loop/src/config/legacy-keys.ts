/**
 * Moves the keys of verl 0.7 and before (`reward_model.*`, `reward_manager`,
 * `custom_reward_function`, `sandbox_fusion` at the root) to their present places under `reward`. A
 * null there is unset, and so is a name that its source does not read. As in verl a value of an old
 * key wins over one at the new place.
 */

import { rolloutKeys } from "./model/engine-flags.ts";
import {
  type ConfigTree,
  type ConfigValue,
  isTree,
  nearestOf,
  valueAt,
  withoutValue,
  withValue,
} from "@rayling/config-tree";
import { RewardConfigError } from "./reward-config-error.ts";

/** The new place of each key; "" for a key without meaning. */
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
  ...Object.fromEntries(
    // Keys of workers that held the reward model themselves.
    [
      "forward_max_token_len_per_gpu",
      "max_length",
      "micro_batch_size",
      "micro_batch_size_per_gpu",
      "model.input_tokenizer",
      "model.use_fused_kernels",
      "model.use_remove_padding",
      "model.use_shm",
      "nccl_timeout",
      "load_weight",
      "strategy",
      "ulysses_sequence_parallel_size",
      "use_dynamic_bsz",
    ].map((key) => [`reward_model.${key}`, ""]),
  ),
};

/** Sections that move with all their keys; "" for a section without meaning. */
const whole: Readonly<Record<string, string>> = {
  "reward_model.reward_kwargs": "reward_kwargs",
  "reward_model.rollout": "reward_model.rollout",
  "reward_model.sandbox_fusion": "sandbox_fusion",
  // The key of the recipe DAPO.
  "reward_model.overlong_buffer": "reward_kwargs.overlong_buffer_cfg",
  "reward_model.megatron": "",
  "reward_model.model.fsdp_config": "",
  "reward_model.model.override_config": "",
  "reward_model.profiler": "",
  reward_manager: "reward_manager",
  custom_reward_function: "custom_reward_function",
  sandbox_fusion: "sandbox_fusion",
};

const ofSandbox = ["url", "max_concurrent", "memory_limit_mb"];

/** All legacy keys, with null. */
export const legacyKeys: ConfigTree = [
  ...Object.keys(moved),
  ...Object.keys(whole),
  "reward_manager.source",
  "reward_manager.name",
  "reward_manager.module.path",
  "reward_manager.module.name",
  "custom_reward_function.path",
  "custom_reward_function.name",
  ...ofSandbox.map((key) => `sandbox_fusion.${key}`),
  ...ofSandbox.map((key) => `reward_model.sandbox_fusion.${key}`),
  ...rolloutKeys.map((key) => `reward_model.rollout.${key}`),
].reduce<ConfigTree>((tree, key) => withValue(tree, key.split("."), null), {});

/** Sections of the engines that had a reward model in them, and of the recipe. */
const free = [
  "reward_model.megatron",
  "reward_model.model.fsdp_config",
  "reward_model.model.override_config",
  "reward_model.overlong_buffer",
  "reward_model.profiler",
];

/** Whether it may be given without being anywhere. */
export function isFreeLegacyKey(key: string): boolean {
  return free.some((one) => key.startsWith(`${one}.`));
}

const roots = ["reward_model", "reward_manager", "custom_reward_function", "sandbox_fusion"];

/** Defaults of the manager's section in the files of verl 0.7, which verl's older keys override. */
const managerDefaults: ConfigTree = {
  source: "register",
  name: "naive",
  module: { path: null, name: "custom_reward_manager" },
};

/**
 * Returns the tree without legacy keys. Throws RewardConfigError for an unknown one, and for two
 * that contradict each other.
 */
export function withoutLegacyKeys(tree: ConfigTree): ConfigTree {
  let result = tree;
  for (const root of roots) {
    const value = tree[root];
    if (value === undefined) continue;
    result = withoutValue(result, [root]);
    if (value === null) continue;
    if (!isTree(value)) throw new RewardConfigError(root, "must hold keys", value);
    result = moveAll(result, root, saidIn(root, value, tree));
  }
  return result;
}

/**
 * Returns where a key is written: its present place, else its old place; undefined where it is at
 * neither.
 *
 * @param key at its present place: `reward.max_rpm`
 */
export function writtenKey(tree: ConfigTree, key: string): string | undefined {
  const old = [...Object.entries(moved), ...Object.entries(whole)].flatMap(([from, to]) => {
    const place = `reward.${to}`;
    return key === place || key.startsWith(`${place}.`) ? [from + key.slice(place.length)] : [];
  });
  return [key, ...old].find((one) => (valueAt(tree, one.split(".")) ?? null) !== null);
}

function saidIn(root: string, value: ConfigTree, tree: ConfigTree): ConfigTree {
  if (root === "reward_model") return withOneName(value, tree);
  return root === "reward_manager" ? otherThan(managerDefaults, value) : value;
}

function otherThan(defaults: ConfigTree, tree: ConfigTree): ConfigTree {
  return Object.fromEntries(
    Object.entries(tree).flatMap(([key, value]): [string, ConfigValue][] => {
      const usual = defaults[key];
      if (isTree(value) && isTree(usual)) return [[key, otherThan(usual, value)]];
      return value === usual ? [] : [[key, value]];
    }),
  );
}

/**
 * verl 0.7 has one name for each source: a class name counts with importlib only, and the name of a
 * registered manager, which is never null there, counts without it.
 */
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
    return value === null || target === "" ? tree : put(tree, `reward.${target}`, value);
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

function put(tree: ConfigTree, to: string, value: ConfigValue): ConfigTree {
  if (isTree(value)) {
    return Object.entries(value).reduce(
      (result, [name, inside]) => (inside === null ? result : put(result, `${to}.${name}`, inside)),
      tree,
    );
  }
  return withValue(tree, to.split("."), value);
}
