/**
 * Changes of a configuration as they are given on a command line, in Hydra's grammar: `a.b=c` changes what is there, `+a.b=c` adds what is not, `++a.b=c` does either,
 * `~a.b` takes it away (`~a.b=c` only if that is its value). Values are YAML: `True`, `null`, `0.5`, `[1,2]`, `{a: 1}`, `'a text'`.
 */

import { parse } from "yaml";
import {
  type ConfigTree,
  type ConfigValue,
  keysOf,
  merged,
  nearestOf,
  RewardConfigError,
  valueAt,
  withoutValue,
  withValue,
} from "./tree.ts";

export interface Override {
  readonly sign: "" | "+" | "++" | "~";
  readonly path: readonly string[];
  /** As it is written; undefined where there is none. */
  readonly value: string | undefined;
}

/**
 * @param known keys with their defaults: they may be changed without being in the tree; null there is as good as nothing. Throws RewardConfigError at the first that cannot be.
 */
export function applyOverrides(
  tree: ConfigTree,
  overrides: readonly string[],
  known: ConfigTree = {},
): ConfigTree {
  return overrides.reduce((result, text) => applyOverride(result, text, known), tree);
}

/** Its parts, without looking at what is there. Throws RewardConfigError. */
export function parseOverride(text: string): Override {
  const [, sign = "", key = "", , value] =
    /^(\+\+|\+|~)?([^=+~\s]+)(=([\s\S]*))?$/.exec(text) ?? [];
  const path = key.split(".");
  if (key === "" || path.includes("")) {
    throw new RewardConfigError(text, "is no override; write key.key=value, +key=value or ~key");
  }
  return { sign: sign as Override["sign"], path, value };
}

function applyOverride(tree: ConfigTree, text: string, known: ConfigTree): ConfigTree {
  const { sign, path, value } = parseOverride(text);
  const key = path.join(".");
  const there = valueOf(tree, known, path);
  if (sign === "~") return removed(tree, path, value, known);
  if (value === undefined) throw new RewardConfigError(key, "has no value; write key=value");
  if (sign === "" && there === undefined) {
    throw new RewardConfigError(
      key,
      `there is no such key; +${text} would add it`,
      parsed(key, value),
      nearestOf(key, keysOf(merged(known, tree))),
    );
  }
  if (sign === "+" && there !== undefined && there !== null) {
    throw new RewardConfigError(
      key,
      `is there already, as ${JSON.stringify(there)}; ${text.slice(1)} changes it`,
      there,
    );
  }
  return withValue(tree, path, parsed(key, value));
}

function removed(
  tree: ConfigTree,
  path: readonly string[],
  value: string | undefined,
  known: ConfigTree,
): ConfigTree {
  const key = path.join(".");
  const there = valueOf(tree, known, path);
  if (there === undefined) {
    throw new RewardConfigError(
      key,
      "there is no such key to take away",
      undefined,
      nearestOf(key, keysOf(merged(known, tree))),
    );
  }
  const isOther =
    value !== undefined && JSON.stringify(there) !== JSON.stringify(parsed(key, value));
  if (isOther) {
    throw new RewardConfigError(
      key,
      `is ${JSON.stringify(there)}, not ${value}, and is not taken away`,
      there,
    );
  }
  return withoutValue(tree, path);
}

function valueOf(
  tree: ConfigTree,
  known: ConfigTree,
  path: readonly string[],
): ConfigValue | undefined {
  const own = valueAt(tree, path);
  return own === undefined ? valueAt(known, path) : own;
}

function parsed(key: string, text: string): ConfigValue {
  if (text === "") return "";
  try {
    return parse(text, { schema: "core" }) as ConfigValue;
  } catch (error) {
    const [why = ""] = (error as Error).message.split("\n");
    throw new RewardConfigError(key, `its value ${text} is no YAML: ${why}`, text);
  }
}
