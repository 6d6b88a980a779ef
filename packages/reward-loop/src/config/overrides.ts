/**
 * Changes of a configuration as they are given on a command line, in Hydra's grammar: `a.b=c` changes what is there, `+a.b=c` adds what is not, `++a.b=c` does either,
 * `~a.b` takes it away (`~a.b=c` only if that is its value). Values are YAML: `True`, `null`, `0.5`, `[1,2]`, `{a: 1}` (or `{a:1}`), `'a text'`; keys in braces are changed, and what else stands there
 * stays.
 */

import { parse } from "yaml";
import {
  type ConfigTree,
  type ConfigValue,
  isTree,
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
  const given = parsed(key, value);
  // Keys and items can be added to what is there.
  const isAddition = isTree(given) || Array.isArray(given);
  if (sign === "+" && there !== undefined && there !== null && !isAddition) {
    throw new RewardConfigError(
      key,
      `is there already, as ${JSON.stringify(there)}; ${text.slice(1)} changes it`,
      there,
    );
  }
  const own = valueAt(tree, path);
  const isBoth = isTree(given) && isTree(own);
  return withValue(tree, path, isBoth ? merged(own, given) : given);
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
  // What is not in brackets is one value, whatever YAML would make of a colon or a dash in it.
  const isPlain = !/^\s*[{["']/.test(text);
  try {
    const value = parse(text, { schema: "core" }) as ConfigValue;
    if (isPlain && typeof value === "object" && value !== null) return text;
    return withKeysApart(key, value);
  } catch (error) {
    if (error instanceof RewardConfigError) throw error;
    if (isPlain) return text;
    const [why = ""] = (error as Error).message.split("\n");
    throw new RewardConfigError(key, `its value ${text} is no YAML: ${why}`, text);
  }
}

/** Hydra's `{a:1}`, which to YAML is a key `a:1` without a value. */
function withKeysApart(key: string, value: ConfigValue): ConfigValue {
  if (Array.isArray(value)) {
    return (value as readonly ConfigValue[]).map((one) => withKeysApart(key, one));
  }
  if (!isTree(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inside]): [string, ConfigValue] => {
      const [, own, rest] = (inside === null && /^([^:]+):(.+)$/s.exec(name)) || [];
      return own === undefined || rest === undefined
        ? [name, withKeysApart(key, inside)]
        : [own, parsed(key, rest)];
    }),
  );
}
