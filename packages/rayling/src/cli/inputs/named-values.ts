/** Values of a record by name or path, and what is said where there is none. */

import { nearestOf } from "@rayling/config-tree/nearest";

export type Row = Readonly<Record<string, unknown>>;

export function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * By a key as it is, else by a path as "reward_model.ground_truth" or "resps.0"; undefined where
 * nothing is, and for null.
 */
export function valueAt(row: Row, path: string): unknown {
  if (Object.hasOwn(row, path)) return row[path] ?? undefined;
  let value: unknown = row;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value ?? undefined;
}

/** The first of these that there is. */
export function firstOf(
  row: Row,
  paths: readonly string[],
): { readonly path: string; readonly value: unknown } | undefined {
  for (const path of paths) {
    const value = valueAt(row, path);
    if (value !== undefined) return { path, value };
  }
  return undefined;
}

/** How many keys of a row an error lists. */
const MOST_KEYS = 12;

/**
 * That nothing is there under any of these names, what there is, and which of it was meant, where
 * one is alike.
 */
export function missing(row: Row, what: string, paths: readonly string[], flag: string): string {
  const keys = Object.keys(row);
  const listed = keys.slice(0, MOST_KEYS).join(", ") + (keys.length > MOST_KEYS ? ", ..." : "");
  const [alike] = paths.flatMap((path) => nearestOf(path, keys) ?? []);
  const meant = alike === undefined ? "" : `; is it "${alike}"?`;
  const names = paths.map((path) => `"${path}"`).join(", ");
  const there = keys.length === 0 ? "there are no keys" : `there are ${listed}`;
  return `there is no ${what}: ${names} ${paths.length === 1 ? "is" : "are"} missing; ${there}${meant} (${flag} names it)`;
}
