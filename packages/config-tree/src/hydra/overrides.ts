/**
 * Changes of a configuration from a command line, in Hydra's grammar (grammar.ts): `a.b=c` changes
 * an existing key, `+a.b=c` adds one, `++a.b=c` does either, `~a.b` removes it (`~a.b=c` only if
 * that is its value). Keys in braces are merged into the existing ones.
 */

import { ConfigError } from "../config-error.ts";
import { type Override, parseOverride } from "./grammar.ts";
import { nearestOf } from "../nearest.ts";
import {
  type ConfigTree,
  type ConfigValue,
  isList,
  isTree,
  keysOf,
  merged,
  valueAt,
  withoutValue,
  withValue,
} from "../tree.ts";

/** Keys that overrides may change beyond those of the tree. */
export interface OverrideRules {
  /**
   * Keys with their defaults, which may be changed without being in the tree; null counts as unset.
   */
  readonly known?: ConfigTree | undefined;
  /**
   * Accepts keys that may be changed, added again and removed without being known. Default: none.
   */
  readonly isFree?: ((key: string) => boolean) | undefined;
}

interface Rules {
  readonly known: ConfigTree;
  readonly isFree: (key: string) => boolean;
}

/** Throws ConfigError at the first impossible change. */
export function applyOverrides(
  tree: ConfigTree,
  overrides: readonly string[],
  { known = {}, isFree = () => false }: OverrideRules = {},
): ConfigTree {
  return overrides.reduce(
    (result, text) => applyOverride(result, parseOverride(text), { known, isFree }),
    tree,
  );
}

function applyOverride(tree: ConfigTree, override: Override, rules: Rules): ConfigTree {
  const { sign, key, value } = override;
  const path = key.split(".");
  if (key.includes("/") || override.package !== undefined) {
    throw new ConfigError(
      key,
      `there is no such group; ${override.text} would choose one of its files`,
    );
  }
  if (sign === "~" || value === undefined) return withoutKey(tree, override, rules);
  const own = valueAt(tree, path);
  const there = own === undefined ? valueAt(rules.known, path) : own;
  const isFree = rules.isFree(key);
  if (sign === "" && there === undefined && !isFree) {
    throw new ConfigError(
      key,
      mayAdd(path, rules.known)
        ? `there is no such key; +${override.text} would add it`
        : "there is no such key",
      value,
      nearestOf(key, keysOf(merged(rules.known, tree))),
    );
  }
  // Keys and items can be added to an existing value, and a default counts as unset.
  const isAddition = isTree(value) || Array.isArray(value) || isFree;
  const isSaid = own !== undefined && own !== null && !isSame(own, valueAt(rules.known, path));
  if (sign === "+" && isSaid && !isAddition) {
    throw new ConfigError(
      key,
      `is there already, as ${JSON.stringify(own)}; ${override.text.slice(1)} changes it`,
      own,
    );
  }
  if ((isTree(own) && Array.isArray(value)) || (Array.isArray(own) && isTree(value))) {
    const [is, would] = isTree(own) ? ["a section", "a list"] : ["a list", "a section"];
    throw new ConfigError(key, `is ${is}, and ${override.text} would make ${would} of it`, own);
  }
  requireItems(tree, path);
  return withValue(tree, path, isTree(value) && isTree(own) ? merged(own, value) : value);
}

/** Whether "+" is allowed: the key is unknown, or its known section has no keys of its own. */
function mayAdd(path: readonly string[], known: ConfigTree): boolean {
  let at: ConfigValue | undefined = known;
  for (const part of path) {
    if (!isTree(at)) return false;
    if (Object.keys(at).length === 0) return true;
    at = at[part];
  }
  return false;
}

function isSame(one: ConfigValue, other: ConfigValue | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Throws ConfigError for a path through an item of a list that does not exist or has no keys. */
function requireItems(tree: ConfigTree, path: readonly string[]): void {
  for (const depth of path.keys()) {
    const list = valueAt(tree, path.slice(0, depth));
    if (!isList(list)) continue;
    const item = valueAt(tree, path.slice(0, depth + 1));
    const hasMore = isTree(item) || isList(item);
    if (item !== undefined && (hasMore || depth === path.length - 1)) continue;
    const place = path.slice(0, depth).join(".");
    throw new ConfigError(
      path.join("."),
      `names an item of ${place}, a list of ${list.length}, that does not exist`,
      list,
    );
  }
}

function withoutKey(
  tree: ConfigTree,
  { key, value, text }: Override,
  { known, isFree }: Rules,
): ConfigTree {
  const path = key.split(".");
  const own = valueAt(tree, path);
  const there: ConfigValue | undefined = own === undefined ? valueAt(known, path) : own;
  if (there === undefined && !isFree(key)) {
    throw new ConfigError(
      key,
      "there is no such key to remove",
      undefined,
      nearestOf(key, keysOf(merged(known, tree))),
    );
  }
  const above = path.slice(0, -1);
  const list = valueAt(tree, above) ?? valueAt(known, above);
  if (isList(list)) {
    const place = above.join(".");
    throw new ConfigError(
      key,
      `is an item of a list, which is not removed by its number; ${place}=[...] gives the whole list`,
      list,
    );
  }
  if (isTree(valueAt(known, path))) {
    throw new ConfigError(
      key,
      `is a section, which cannot be removed as a whole; ${text} may name a key of it`,
      there,
    );
  }
  if (value !== undefined && !isSame(value, there)) {
    throw new ConfigError(
      key,
      `is ${JSON.stringify(there)}, not ${JSON.stringify(value)}, and is not removed`,
      there,
    );
  }
  return withoutValue(tree, path);
}
