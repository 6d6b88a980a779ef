/**
 * Changes of a configuration as they are given on a command line, in Hydra's grammar: `a.b=c` changes what is there, `+a.b=c` adds what is not, `++a.b=c` does either,
 * `~a.b` takes it away (`~a.b=c` only if that is its value). Values are YAML: `True`, `null`, `0.5`, `[1,2]`, `{a: 1}`, `'a text'`.
 */

import { parse } from "yaml";
import {
  type ConfigTree,
  type ConfigValue,
  keysOf,
  nearestOf,
  RewardConfigError,
  valueAt,
  withoutValue,
  withValue,
} from "./tree.ts";

/** Throws RewardConfigError at the first that cannot be. */
export function applyOverrides(tree: ConfigTree, overrides: readonly string[]): ConfigTree {
  return overrides.reduce(applyOverride, tree);
}

function applyOverride(tree: ConfigTree, text: string): ConfigTree {
  const [, sign = "", key = "", , value] =
    /^(\+\+|\+|~)?([^=+~\s]+)(=([\s\S]*))?$/.exec(text) ?? [];
  const path = key.split(".");
  if (key === "" || path.includes("")) {
    throw new RewardConfigError(text, "is no override; write key.key=value, +key=value or ~key");
  }
  const there = valueAt(tree, path);
  if (sign === "~") return removed(tree, path, value);
  if (value === undefined) throw new RewardConfigError(key, "has no value; write key=value");
  if (sign === "" && there === undefined) {
    throw new RewardConfigError(
      key,
      `there is no such key; +${text} would add it`,
      valueOf(key, value),
      nearestOf(key, keysOf(tree)),
    );
  }
  if (sign === "+" && there !== undefined) {
    throw new RewardConfigError(
      key,
      `is there already, as ${JSON.stringify(there)}; ${text.slice(1)} changes it`,
      there,
    );
  }
  return withValue(tree, path, valueOf(key, value));
}

function removed(tree: ConfigTree, path: readonly string[], value: string | undefined): ConfigTree {
  const key = path.join(".");
  const there = valueAt(tree, path);
  if (there === undefined) {
    throw new RewardConfigError(
      key,
      "there is no such key to take away",
      undefined,
      nearestOf(key, keysOf(tree)),
    );
  }
  const isOther =
    value !== undefined && JSON.stringify(there) !== JSON.stringify(valueOf(key, value));
  if (isOther) {
    throw new RewardConfigError(
      key,
      `is ${JSON.stringify(there)}, not ${value}, and is not taken away`,
      there,
    );
  }
  return withoutValue(tree, path);
}

function valueOf(key: string, text: string): ConfigValue {
  if (text === "") return "";
  try {
    return parse(text, { schema: "core" }) as ConfigValue;
  } catch (error) {
    const [why = ""] = (error as Error).message.split("\n");
    throw new RewardConfigError(key, `its value ${text} is no YAML: ${why}`, text);
  }
}
