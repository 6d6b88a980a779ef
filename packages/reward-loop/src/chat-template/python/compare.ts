/** Which values are equal, which comes first, and what is in what. */

import { fail, unsupported } from "../error.ts";
import { repr } from "./text.ts";
import {
  Dict,
  DictView,
  Markup,
  Namespace,
  Range,
  Tuple,
  Undefined,
  characters,
  isList,
  itemsOf,
  typeName,
} from "./values.ts";
import type { Value } from "./values.ts";

export function equals(left: Value, right: Value): boolean {
  const [a, b] = [plain(left), plain(right)];
  if (a instanceof Undefined) return b instanceof Undefined;
  if (isNumber(a) && isNumber(b)) return a == b;
  if (Array.isArray(a) && Array.isArray(b)) return areEqual(a, b);
  if (a instanceof Tuple && b instanceof Tuple) return areEqual(a.items, b.items);
  if (a instanceof Dict && b instanceof Dict) {
    if (a.size !== b.size) return false;
    return a.unorderedPairs().every(([key, value]) => {
      const other = b.get(key);
      return other !== undefined && equals(value, other);
    });
  }
  if (a instanceof Range && b instanceof Range) return areEqual(a.items, b.items);
  if (a instanceof Namespace && b instanceof Namespace) return a === b;
  if (a instanceof DictView && b instanceof DictView) return unsupported("== of views of dicts");
  return a === b;
}

function areEqual(a: readonly Value[], b: readonly Value[]): boolean {
  // Identical objects in lists count as equal, as in Python, even NaN.
  return a.length === b.length && a.every((one, at) => isOne(one, b[at]!) || equals(one, b[at]!));
}

function isOne(a: Value, b: Value): boolean {
  return typeof a === "object" && a !== null && a === b;
}

/**
 * Returns the order as a number: below 0 where `left` comes first; NaN is never in order.
 * `operator` is for the error.
 */
export function order(left: Value, right: Value, operator: string): number {
  const [a, b] = [plain(left), plain(right)];
  if (a instanceof Undefined) return a.fail();
  if (b instanceof Undefined) return b.fail();
  if (isNumber(a) && isNumber(b)) return a < b ? -1 : a > b ? 1 : a == b ? 0 : Number.NaN;
  if (typeof a === "string" && typeof b === "string") return orderOfTexts(a, b);
  const lists = [listOf(a), listOf(b)] as const;
  const isSameKind = Array.isArray(a) === Array.isArray(b);
  if (lists[0] !== undefined && lists[1] !== undefined && isSameKind) {
    for (const [at, one] of lists[0].entries()) {
      const other = lists[1][at];
      if (other === undefined) return 1;
      if (!isOne(one, other) && !equals(one, other)) return order(one, other, operator);
    }
    return lists[0].length === lists[1].length ? 0 : -1;
  }
  if (a instanceof DictView && b instanceof DictView) return unsupported("order of views of dicts");
  return fail(
    `'${operator}' not supported between instances of ${typeName(left)} and ${typeName(right)}`,
  );
}

function listOf(value: Value): readonly Value[] | undefined {
  return isList(value) ? value : value instanceof Tuple ? value.items : undefined;
}

/** Compares by code points; JavaScript's own order is that of UTF-16. */
function orderOfTexts(a: string, b: string): number {
  if (a === b) return 0;
  const [left, right] = [characters(a), characters(b)];
  for (const [at, one] of left.entries()) {
    const other = right[at];
    if (other === undefined) return 1;
    if (one !== other) return one.codePointAt(0)! - other.codePointAt(0)!;
  }
  return -1;
}

/** Evaluates `one in many`. */
export function contains(many: Value, one: Value): boolean {
  const [text, part] = [plain(many), plain(one)];
  if (typeof text === "string") {
    if (typeof part === "string") return text.includes(part);
    return fail(`'in <string>' requires string as left operand, not ${typeName(one)}`);
  }
  if (many instanceof Dict) return many.has(one);
  const items = itemsOf(many) ?? fail(`argument of type ${typeName(many)} is not iterable`);
  return items.some((item) => isOne(item, one) || equals(item, one));
}

/** Evaluates `one is other`, for singletons of Python and for objects. */
export function isSame(one: Value, other: Value): boolean {
  const [a, b] = [one, other].map((value) => typeof value);
  if (a !== b) return false;
  if (a === "string" || a === "bigint" || a === "number") {
    if (!equals(one, other)) return false;
    return unsupported(`whether ${repr(one)} is the same object as itself`);
  }
  return one === other;
}

function plain(value: Value): Value {
  if (value instanceof Markup) return value.text;
  return value;
}

function isNumber(value: Value): value is bigint | number | boolean {
  return typeof value === "bigint" || typeof value === "number" || typeof value === "boolean";
}

/** Stable, as sorted(). */
export function sorted(
  items: readonly Value[],
  keys: readonly Value[],
  isReversed = false,
): Value[] {
  const places = items.map((_, at) => at);
  const sign = isReversed ? -1 : 1;
  for (const key of keys) if (Number.isNaN(key)) unsupported("sorting NaN");
  places.sort((a, b) => sign * order(keys[a]!, keys[b]!, "<"));
  return places.map((at) => items[at]!);
}
