/** What rewards take from the rest of verl's configuration: the name of the run, and the policy's tokenizer. Both may be said under `reward`, too, which wins. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isTree, valueAt, withValue } from "@rayling/config-tree";
import { type ConfigTree, type ConfigValue } from "@rayling/config-tree";

/** Where they stand in verl; null. */
export const runKeys: ConfigTree = {
  trainer: { experiment_name: null },
  actor_rollout_ref: { model: { tokenizer_path: null, path: null } },
};

/** Of the tree only these. */
export function onlyRunKeys(tree: ConfigTree, keys: ConfigTree = runKeys): ConfigTree {
  return Object.fromEntries(
    Object.entries(keys).flatMap(([key, inside]): [string, ConfigValue][] => {
      const value = tree[key];
      if (value === undefined || !isTree(inside)) return value === undefined ? [] : [[key, value]];
      return isTree(value) ? [[key, onlyRunKeys(value, inside)]] : [];
    }),
  );
}

/** `reward` with what it does not say itself. A model that is not a folder of this machine has no tokenizer here. */
export function withRunKeys(reward: ConfigTree, tree: ConfigTree): ConfigTree {
  const model = ["tokenizer_path", "path"].map((key) =>
    valueAt(tree, ["actor_rollout_ref", "model", key]),
  );
  const [tokenizer] = model.filter((path) => path !== undefined && path !== null);
  const isHere = typeof tokenizer === "string" && existsSync(join(tokenizer, "tokenizer.json"));
  const said: Readonly<Record<string, ConfigValue | undefined>> = {
    experiment_name: valueAt(tree, ["trainer", "experiment_name"]),
    policy_tokenizer: isHere ? tokenizer : undefined,
  };
  return Object.entries(said).reduce(
    (result, [key, value]) =>
      value === undefined || (reward[key] ?? null) !== null
        ? result
        : withValue(result, [key], value),
    reward,
  );
}
