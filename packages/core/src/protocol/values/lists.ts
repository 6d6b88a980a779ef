/**
 * Arrays that are more or less than their items: with holes, or with properties of their own beside the items, as the result of `String.match`
 * has them. They travel in parts: their length, the items that are there, and the properties.
 *
 * Everything here costs what an array holds, not what its length says; what a peer sends makes no array larger than that either.
 */
import { inspect } from "node:util";
import { RaySystemError } from "../../shared/errors.ts";

/** What an array is made of. */
export interface ListParts {
  readonly length: number;
  /** Where items are: the index of the first one of a row and how many follow each other, again and again. */
  readonly runs: readonly number[];
  /** The items of all rows. */
  readonly items: readonly unknown[];
  /** Own enumerable properties that are no items, in order. */
  readonly names: readonly string[];
  readonly values: readonly unknown[];
}

/** Up to this length listing the keys is the fastest way to see whether there are others than items (measured). */
const fewItems = 80;
/** An array may be this long, or this many times as long as what it holds, and lie in memory in one piece. */
const shortLength = 1024;
const sparseness = 4;
/** Longer ones V8 keeps as tables from the start. */
const longestLength = 2 ** 32 - 1;

const propertiesOnly = {
  maxArrayLength: 0,
  maxStringLength: 0,
  depth: 0,
  customInspect: false,
} as const;

/** Whether it has no properties beside its items, or has holes as well: these are for the caller to find, which goes over the items anyway. */
export function hasOnlyItems(list: readonly unknown[]): boolean {
  const { length } = list;
  if (length <= fewItems) return Object.keys(list).length <= length;
  // Nothing but `inspect` lists the properties and not the items. A text that it does not write today costs time only: all keys are listed then.
  const text = inspect(list, propertiesOnly);
  if (text === `[ ... ${length} more items ]`) return true;
  const keys = Object.keys(list);
  return keys.length === 0 || indexOf(keys.at(-1) as string) !== undefined;
}

function indexOf(key: string): number | undefined {
  const index = Number(key);
  // It is the remainder of a division by 2 ** 32, and the largest of these is no index.
  return index >>> 0 === index && index < longestLength && String(index) === key
    ? index
    : undefined;
}

export function takeApart(list: readonly unknown[]): ListParts {
  const keys = Object.keys(list);
  const runs: number[] = [];
  const items: unknown[] = [];
  let next = -1;
  let at = 0;
  for (; at < keys.length; at++) {
    const index = indexOf(keys[at] as string);
    if (index === undefined) break;
    if (index === next) runs[runs.length - 1] = (runs.at(-1) as number) + 1;
    else runs.push(index, 1);
    next = index + 1;
    items.push(list[index]);
  }
  const names = keys.slice(at);
  const values = names.map((name) => (list as unknown as Record<string, unknown>)[name]);
  return { length: list.length, runs, items, names, values };
}

/** @throws RaySystemError for parts that no array has */
export function putTogether({ length, runs, items, names, values }: ListParts): unknown[] {
  const list = emptyList(length, items.length);
  let taken = 0;
  let next = 0;
  for (let at = 0; at < runs.length; at += 2) {
    const start = runs[at];
    const end = (start ?? -1) + (runs[at + 1] ?? 0);
    if (!Number.isInteger(start) || (start as number) < next || !(end <= length)) throw noList();
    if (!Number.isInteger(end) || end - (start as number) > items.length - taken) throw noList();
    for (let index = start as number; index < end; index++) list[index] = items[taken++];
    next = end;
  }
  if (taken !== items.length || names.length !== values.length) throw noList();
  for (const [index, name] of names.entries()) {
    if (typeof name !== "string" || indexOf(name) !== undefined || name === "length")
      throw noList();
    defineOwn(list, name, values[index]);
  }
  return list;
}

function emptyList(length: number, held: number): unknown[] {
  if (!Number.isInteger(length) || length < 0 || length > longestLength) throw noList();
  const list: unknown[] = [];
  // Made so long, it is a table of what it holds, and stays one when it is made shorter.
  if (length > shortLength && length > sparseness * held) list.length = longestLength;
  list.length = length;
  return list;
}

function noList(): RaySystemError {
  return new RaySystemError("malformed array from peer: its parts do not fit each other");
}

/** Sets a property of its own, whatever it is called: an assignment to `__proto__` would change the prototype. */
export function defineOwn(target: object, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else (target as Record<string, unknown>)[name] = value;
}
