/** A configuration as it is written: keys in keys, as YAML reads them. Nothing here knows what keys there are. */

import leven from "leven";

export type ConfigValue =
  | null
  | boolean
  | number
  | string
  | readonly ConfigValue[]
  | { readonly [key: string]: ConfigValue };

export type ConfigTree = { [key: string]: ConfigValue };

/** A configuration that cannot be used: what is wrong with which key. Code "REWARD_CONFIG". */
export class RewardConfigError extends Error {
  override readonly name = "RewardConfigError";
  readonly code = "REWARD_CONFIG";
  /** With dots: `reward.reward_manager.name`. */
  readonly key: string;
  /** What stands there, if anything does. */
  readonly value: unknown;
  /** One that there is, and that is written much alike. */
  readonly nearest: string | undefined;

  constructor(key: string, problem: string, value?: unknown, nearest?: string) {
    super(`${key}: ${problem}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`);
    this.key = key;
    this.value = value;
    this.nearest = nearest;
  }
}

export function isTree(value: unknown): value is ConfigTree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined where there is nothing; null is something. */
export function valueAt(tree: ConfigTree, path: readonly string[]): ConfigValue | undefined {
  let at: ConfigValue | undefined = tree;
  for (const key of path) {
    if (!isTree(at) || !Object.hasOwn(at, key)) return undefined;
    at = at[key];
  }
  return at;
}

/** A copy with that value there; what stands in the way (a value where keys are needed) is replaced. */
export function withValue(
  tree: ConfigTree,
  [key, ...rest]: readonly string[],
  value: ConfigValue,
): ConfigTree {
  if (key === undefined) return tree;
  const inside = tree[key];
  const changed = rest.length === 0 ? value : withValue(isTree(inside) ? inside : {}, rest, value);
  // Not a plain spread: a key may be called "__proto__".
  return Object.fromEntries([
    ...Object.entries(tree).filter(([name]) => name !== key),
    [key, changed],
  ]);
}

/** A copy without it. */
export function withoutValue(tree: ConfigTree, [key, ...rest]: readonly string[]): ConfigTree {
  if (key === undefined) return tree;
  const entries = Object.entries(tree);
  if (rest.length === 0) return Object.fromEntries(entries.filter(([name]) => name !== key));
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name,
      name === key && isTree(value) ? withoutValue(value, rest) : value,
    ]),
  );
}

/** The second over the first, key by key; lists and values are replaced. */
export function merged(base: ConfigTree, over: ConfigTree): ConfigTree {
  const result = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(over)) {
    const there = result.get(key);
    result.set(key, isTree(there) && isTree(value) ? merged(there, value) : value);
  }
  return Object.fromEntries(result);
}

/** All keys with dots, those that hold others, too. */
export function keysOf(tree: ConfigTree, prefix = ""): string[] {
  return Object.entries(tree).flatMap(([key, value]) => [
    prefix + key,
    ...(isTree(value) ? keysOf(value, `${prefix}${key}.`) : []),
  ]);
}

/** The known one that is written most alike, if one is at all. */
export function nearestOf(key: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(key.length / 3)) + 1;
  for (const one of known) {
    // A key that was put in the wrong place is alike, too.
    const isMoved = one.split(".").at(-1) === key.split(".").at(-1);
    const distance = isMoved ? 1 : leven(key, one);
    if (distance < least) [nearest, least] = [one, distance];
  }
  return nearest;
}
