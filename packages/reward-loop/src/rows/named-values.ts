/**
 * The first of several values of a record, and the error where there is none.
 */

import { nearestOf } from "@rayling/config-tree/nearest";
import { valueAt } from "./value-at.ts";
import type { Row } from "./value-at.ts";

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
 * Returns a message that none of these names has a value: which of them is null, or else the
 * existing names and a similar one, if there is one.
 */
export function missing(row: Row, what: string, paths: readonly string[], flag: string): string {
  const empty = paths.find((path) => Object.hasOwn(row, path) && row[path] === null);
  if (empty !== undefined) return `there is no ${what}: "${empty}" is null (${flag} names it)`;
  const keys = Object.keys(row);
  const listed = keys.slice(0, MOST_KEYS).join(", ") + (keys.length > MOST_KEYS ? ", ..." : "");
  const [alike] = paths.flatMap((path) => nearestOf(path, keys) ?? []);
  const meant = alike === undefined ? "" : `; is it "${alike}"?`;
  const names = paths.map((path) => `"${path}"`).join(", ");
  const there = keys.length === 0 ? "there are no keys" : `there are ${listed}`;
  return `there is no ${what}: ${names} ${paths.length === 1 ? "is" : "are"} missing; ${there}${meant} (${flag} names it)`;
}
