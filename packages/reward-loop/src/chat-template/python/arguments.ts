/** Arguments of calls, brought into the order of parameters as Python does it. */

import { fail } from "../error.ts";
import type { Arguments, Value } from "./values.ts";
import { typeName, Undefined } from "./values.ts";

/**
 * Binds arguments in order of `names`; undefined for a missing one. Throws for too many, unknown
 * ones, or fewer than `required`.
 */
export function bound(
  what: string,
  { positional: given, keyword }: Arguments,
  names: readonly string[],
  required = 0,
): (Value | undefined)[] {
  if (given.length > names.length) {
    fail(`${what}() takes at most ${names.length} arguments (${given.length} given)`);
  }
  const values: (Value | undefined)[] = names.map((_, at) => given[at]);
  for (const [key, value] of keyword) {
    const at = names.indexOf(key);
    if (at === -1) fail(`${what}() got an unexpected keyword argument '${key}'`);
    if (values[at] !== undefined) fail(`${what}() got multiple values for argument '${key}'`);
    values[at] = value;
  }
  const missing = names.find((_, at) => at < required && values[at] === undefined);
  if (missing !== undefined) fail(`${what}() missing argument: '${missing}'`);
  return values;
}

/** Returns a value as a count or an index. A bool is an int. */
export function integer(value: Value, what: string): number {
  if (typeof value === "boolean") return Number(value);
  if (value instanceof Undefined) return value.fail();
  if (typeof value !== "bigint") {
    return fail(`${what}: ${typeName(value)} object cannot be interpreted as an integer`);
  }
  return Number(value);
}

export const none: Arguments = { positional: [], keyword: new Map() };

export function positional(...values: readonly Value[]): Arguments {
  return { positional: values, keyword: new Map() };
}
