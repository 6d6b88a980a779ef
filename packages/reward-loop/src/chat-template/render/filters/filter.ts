/**
 * The contract of filters, and helpers that several of them need: values by a path, texts by
 * their case.
 */

import { itemOf } from "../../python/members.ts";
import { Markup, Undefined } from "../../python/values.ts";
import type { Arguments, Value } from "../../python/values.ts";

export interface Appliers {
  readonly filter: (name: string, value: Value, given: Arguments) => Value;
  readonly test: (name: string, value: Value, given: Arguments) => boolean;
}

export type Filter = (value: Value, given: Arguments, name: string, apply: Appliers) => Value;

export type Filters = Readonly<Record<string, Filter>>;

/**
 * Reads an attribute by a path as "user.name" or "0", or by an int. @param standard in place of an
 * undefined value
 */
export function attributeGetter(path: Value, standard: Value = null): (value: Value) => Value {
  if (path === null) return (value) => value;
  const keys: readonly Value[] =
    typeof path === "string"
      ? path.split(".").map((key) => (/^\d+$/.test(key) ? BigInt(key) : key))
      : [path];
  return (value) => {
    let found = value;
    for (const key of keys) {
      found = itemOf(found, key);
      if (found instanceof Undefined && standard !== null) found = standard;
    }
    return found;
  };
}

/** Returns the value that sorting compares. */
export function folded(value: Value, isCaseSensitive: boolean): Value {
  if (isCaseSensitive) return value;
  if (value instanceof Markup) return value.text.toLowerCase();
  return typeof value === "string" ? value.toLowerCase() : value;
}
