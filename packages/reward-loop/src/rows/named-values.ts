/**
 * Values of a record by name or path, and the error for a missing one.
 */

import { nearestOf } from "@rayling/config-tree/nearest";

export type Row = Readonly<Record<string, unknown>>;

export function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Finds a value by a key, else by a path such as "reward_model.ground_truth" or "resps.0";
 * undefined for a missing value and for null.
 */
export function valueAt(row: Row, path: string): unknown {
  if (Object.hasOwn(row, path)) return row[path] ?? undefined;
  let value: unknown = row;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value ?? undefined;
}

/** Returns the first existing value. */
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
 * Returns a message that none of these names exists, with the existing names and a similar one, if
 * there is one.
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
