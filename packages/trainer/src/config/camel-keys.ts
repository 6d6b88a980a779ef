/**
 * Conversion between verl's keys, ppo_mini_batch_size, and their TypeScript names,
 * ppoMiniBatchSize.
 */

import { isTree, treeOf } from "@rayling/config-tree";
import type { ConfigTree, ConfigValue } from "@rayling/config-tree";

export function camelKey(key: string): string {
  return key.replaceAll(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}

export function snakeKey(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * @param free keys below which names belong to others: those names stay, except the first level.
 */
export function camelTree(value: ConfigValue, free: readonly string[] = []): ConfigValue {
  return withKeys(value, camelKey, free);
}

export function snakeTree(value: ConfigValue): ConfigTree {
  return treeOf(withKeys(value, snakeKey, []));
}

function withKeys(
  value: ConfigValue,
  change: (key: string) => string,
  free: readonly string[],
): ConfigValue {
  if (isValues(value)) return value.map((one) => withKeys(one, change, free));
  if (!isTree(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      const isFree = free.includes(key) && isTree(one);
      return [change(key), isFree ? withFirstKeys(one, change) : withKeys(one, change, free)];
    }),
  );
}

function withFirstKeys(tree: ConfigTree, change: (key: string) => string): ConfigTree {
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [change(key), value]));
}

function isValues(value: ConfigValue): value is readonly ConfigValue[] {
  return Array.isArray(value);
}
