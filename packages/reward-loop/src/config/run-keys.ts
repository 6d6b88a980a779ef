/**
 * Keys of the rest of verl's configuration that rewards use: the name of the run, the policy's
 * tokenizer, and the GPUs that a reward model shares with the policy. A key under `reward` takes
 * precedence over each of them.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isTree, valueAt, withValue } from "@rayling/config-tree";
import { type ConfigTree, type ConfigValue } from "@rayling/config-tree";

/** The places of these keys in verl, with null. */
export const runKeys: ConfigTree = {
  trainer: { experiment_name: null, n_gpus_per_node: null, nnodes: null },
  actor_rollout_ref: { model: { tokenizer_path: null, path: null } },
};

/** Returns the tree with the run's keys only. */
export function onlyRunKeys(tree: ConfigTree, keys: ConfigTree = runKeys): ConfigTree {
  return Object.fromEntries(
    Object.entries(keys).flatMap(([key, inside]): [string, ConfigValue][] => {
      const value = tree[key];
      if (value === undefined || !isTree(inside)) return value === undefined ? [] : [[key, value]];
      return isTree(value) ? [[key, onlyRunKeys(value, inside)]] : [];
    }),
  );
}

/**
 * Returns `reward` with the run's values where it has none. A model that is not a folder of this
 * machine has no tokenizer here.
 */
export function withRunKeys(reward: ConfigTree, tree: ConfigTree): ConfigTree {
  const model = ["tokenizer_path", "path"].map((key) =>
    valueAt(tree, ["actor_rollout_ref", "model", key]),
  );
  const [tokenizer] = model.filter((path) => path !== undefined && path !== null);
  const isHere = typeof tokenizer === "string" && existsSync(join(tokenizer, "tokenizer.json"));
  const said: Readonly<Record<string, ConfigValue | undefined>> = {
    experiment_name: valueAt(tree, ["trainer", "experiment_name"]),
    policy_tokenizer: isHere ? tokenizer : undefined,
    ...Object.fromEntries(
      sharing(reward).map((place) => [`${place}.shared_gpus`, sharedGpus(tree)]),
    ),
  };
  return Object.entries(said).reduce((result, [key, value]) => {
    const path = key.split(".");
    const isSet = (valueAt(reward, path) ?? null) !== null;
    return value === undefined || value === null || isSet ? result : withValue(result, path, value);
  }, reward);
}

/** Returns the places of reward models that start their own servers beside the policy. */
function sharing(reward: ConfigTree): string[] {
  const { reward_model: model, reward_models: models } = reward;
  const named = isTree(models) ? Object.entries(models) : [];
  return [
    ...(sharesGpus(model, false) ? ["reward_model"] : []),
    ...named.flatMap(([name, one]) => (sharesGpus(one, true) ? [`reward_models.${name}`] : [])),
  ];
}

/** @param isOn the default of `enable` */
function sharesGpus(model: ConfigValue | undefined, isOn: boolean): boolean {
  if (!isTree(model)) return false;
  const { enable, nnodes, servers } = model;
  const areNamed = Array.isArray(servers) && servers.length > 0;
  return (enable ?? isOn) === true && (nnodes ?? 0) === 0 && !areNamed;
}

/** The GPUs on all machines of the policy: a run has one machine. */
function sharedGpus(tree: ConfigTree): ConfigValue | undefined {
  const [gpus, nodes = 1] = ["n_gpus_per_node", "nnodes"].map((key) =>
    valueAt(tree, ["trainer", key]),
  );
  return typeof gpus === "number" && typeof nodes === "number" ? gpus * nodes : undefined;
}
