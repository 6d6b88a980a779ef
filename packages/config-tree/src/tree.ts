/**
 * A configuration as it is written: nested keys, as YAML reads them. This module knows no keys.
 */

export type ConfigValue =
  | null
  | boolean
  | number
  | string
  | readonly ConfigValue[]
  | { readonly [key: string]: ConfigValue };

/** Values of a configuration by key; a section is a tree again. */
export type ConfigTree = { [key: string]: ConfigValue };

/** Returns whether a value has keys: an object, not a list and not null. */
export function isTree(value: unknown): value is ConfigTree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a value that has keys. Throws TypeError for any other value. */
export function treeOf(value: unknown): ConfigTree {
  if (isTree(value)) return value;
  throw new TypeError("a configuration must hold keys");
}

/** Returns whether a value is a list. `Array.isArray` does not tell read-only lists apart. */
export function isList(value: ConfigValue | undefined): value is readonly ConfigValue[] {
  return Array.isArray(value);
}

/** Returns undefined when there is no value; null is a value. Items of lists have numbers. */
export function valueAt(tree: ConfigTree, path: readonly string[]): ConfigValue | undefined {
  let at: ConfigValue | undefined = tree;
  for (const key of path) {
    if (isList(at)) {
      at = itemOf(at, key);
      continue;
    }
    if (!isTree(at) || !Object.hasOwn(at, key)) return undefined;
    at = at[key];
  }
  return at;
}

/**
 * Returns a copy with that value; a value in the place of needed keys is replaced, and the path may
 * go through items of lists that are there. A key keeps its place, as in Hydra, and a new one is
 * the last: the order of some sections is a part of what they say.
 */
export function withValue(
  tree: ConfigTree,
  [key, ...rest]: readonly string[],
  value: ConfigValue,
): ConfigTree {
  if (key === undefined) return tree;
  // A spread would lose a key called "__proto__", and tree["__proto__"] is always an object.
  const entries = new Map(Object.entries(tree));
  entries.set(key, withInside(entries.get(key), rest, value));
  return Object.fromEntries(entries);
}

function withInside(
  inside: ConfigValue | undefined,
  path: readonly string[],
  value: ConfigValue,
): ConfigValue {
  const [number, ...rest] = path;
  if (number === undefined) return value;
  const item = isList(inside) ? itemOf(inside, number) : undefined;
  if (!isList(inside) || item === undefined) {
    return withValue(isTree(inside) ? inside : {}, path, value);
  }
  return inside.with(Number(number), withInside(item, rest, value));
}

/** Returns a copy without that key. The path may go through items of lists, and ends at a key. */
export function withoutValue(tree: ConfigTree, [key, ...rest]: readonly string[]): ConfigTree {
  if (key === undefined) return tree;
  const entries = Object.entries(tree);
  if (rest.length === 0) return Object.fromEntries(entries.filter(([name]) => name !== key));
  return Object.fromEntries(
    entries.map(([name, value]) => [name, name === key ? withoutInside(value, rest) : value]),
  );
}

function withoutInside(inside: ConfigValue, path: readonly string[]): ConfigValue {
  if (isTree(inside)) return withoutValue(inside, path);
  const [number = "", ...rest] = path;
  const item = isList(inside) ? itemOf(inside, number) : undefined;
  if (!isList(inside) || item === undefined || rest.length === 0) return inside;
  return inside.with(Number(number), withoutInside(item, rest));
}

function itemOf(list: readonly ConfigValue[], number: string): ConfigValue | undefined {
  return /^\d+$/.test(number) ? list[Number(number)] : undefined;
}

/** Merges the second tree over the first, key by key; lists and values are replaced. */
export function merged(base: ConfigTree, over: ConfigTree): ConfigTree {
  const result = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(over)) {
    const there = result.get(key);
    result.set(key, isTree(there) && isTree(value) ? merged(there, value) : value);
  }
  return Object.fromEntries(result);
}

/** Returns all keys with dots, including those of sections. */
export function keysOf(tree: ConfigTree, prefix = ""): string[] {
  return Object.entries(tree).flatMap(([key, value]) => [
    prefix + key,
    ...(isTree(value) ? keysOf(value, `${prefix}${key}.`) : []),
  ]);
}
