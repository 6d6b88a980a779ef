/** How values of JavaScript become Python's. */

import { isList } from "@rayling/reward-manager-registry/values";
import { unsupported } from "../error.ts";
import { Dict, Opaque } from "./values.ts";
import type { Value } from "./values.ts";

/**
 * @param where as an error names it. A whole number is an int. What is undefined in an object is
 * not there.
 */
export function valueOf(value: unknown, where: string): Value {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return numberOf(value, where);
  if (typeof value !== "object") return unsupported(`${where}, a ${typeof value},`);
  if (isList(value)) {
    return value.map((one, at) => valueOf(one ?? null, `${where}[${at}]`));
  }
  if (value instanceof Map) {
    const pairs: (readonly [unknown, unknown])[] = [...value];
    return Dict.of(pairs.map(([key, one]) => [valueOf(key, where), valueOf(one, where)] as const));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  // Plain objects of another realm have another prototype, which has none itself.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    return new Opaque(value.constructor.name);
  }
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  // JavaScript puts such keys first, in order of size: what order they had in a file is lost.
  const isOrdered = entries.length < 2 || !entries.some(([key]) => /^(?:0|[1-9]\d*)$/.test(key));
  return Dict.of(
    entries.map(([key, one]) => [key, valueOf(one, `${where}.${key}`)] as const),
    isOrdered,
  );
}

function numberOf(value: number, where: string): Value {
  if (!Number.isInteger(value)) return value;
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return BigInt(value);
  // JSON's 1e300, 9007199254740993 and -0 are numbers of which nobody can tell what Python would
  // read.
  return unsupported(`${where}, a number that may be an int or a float (${value}),`);
}
