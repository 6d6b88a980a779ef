/**
 * Arrays with holes, or with own properties beside their items, such as the result of
 * `String.match`. They travel in parts: their length, their items, and the properties.
 *
 * The cost grows with the content of an array and not with its length. No array that a peer sends
 * is larger than that either.
 */
import { inspect } from "node:util";
import { RaySystemError } from "../../shared/errors.ts";

/** The parts of an array. */
export interface ListParts {
  readonly length: number;
  /** Pairs: the index of the first item of a run, and the length of the run. */
  readonly runs: readonly number[];
  /** The items of all runs. */
  readonly items: readonly unknown[];
  /** Own enumerable properties that are no items, in order. */
  readonly names: readonly string[];
  readonly values: readonly unknown[];
}

/** Up to this length, listing the keys is the fastest way to find other properties (measured). */
const fewItems = 80;
/**
 * An array may be this long, or this many times as long as its content, and stay in one piece of
 * memory.
 */
const shortLength = 1024;
const sparseness = 4;
/** V8 keeps longer arrays as tables from the start. */
const longestLength = 2 ** 32 - 1;

const propertiesOnly = {
  maxArrayLength: 0,
  maxStringLength: 0,
  depth: 0,
  customInspect: false,
} as const;

/**
 * Whether a list has no properties beside its items, or also has holes: the caller finds holes when
 * it visits the items.
 */
export function hasOnlyItems(list: readonly unknown[]): boolean {
  const { length } = list;
  if (length <= fewItems) return Object.keys(list).length <= length;
  // Only `inspect` lists the properties without the items. Any other text costs only time: then all
  // keys are listed.
  const text = inspect(list, propertiesOnly);
  if (text === `[ ... ${length} more items ]`) return true;
  const keys = Object.keys(list);
  const last = keys.at(-1);
  return last === undefined || indexOf(last) !== undefined;
}

function indexOf(key: string): number | undefined {
  const index = Number(key);
  // `>>>` gives the remainder of a division by 2 ** 32; its largest value is no index.
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
  for (const key of keys) {
    const index = indexOf(key);
    if (index === undefined) break;
    at += 1;
    if (index === next) runs[runs.length - 1] = (runs.at(-1) ?? 0) + 1;
    else runs.push(index, 1);
    next = index + 1;
    items.push(list[index]);
  }
  const names = keys.slice(at);
  const values = names.map((name): unknown => Reflect.get(list, name));
  return { length: list.length, runs, items, names, values };
}

/** The parts of an array as a peer sent them. */
type ReceivedParts = Omit<ListParts, "names"> & { readonly names: readonly unknown[] };

/** @throws RaySystemError for parts that fit no array */
export function putTogether({ length, runs, items, names, values }: ReceivedParts): unknown[] {
  const list = emptyList(length, items.length);
  let taken = 0;
  let next = 0;
  for (let at = 0; at < runs.length; at += 2) {
    const start = runs[at] ?? -1;
    const end = start + (runs[at + 1] ?? 0);
    if (!Number.isInteger(start) || start < next || !(end <= length)) throw noList();
    if (!Number.isInteger(end) || end - start > items.length - taken) throw noList();
    for (let index = start; index < end; index++) list[index] = items[taken++];
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
  // An array of this length becomes a table of its items, and stays one when it gets shorter.
  if (length > shortLength && length > sparseness * held) list.length = longestLength;
  list.length = length;
  return list;
}

function noList(): RaySystemError {
  return new RaySystemError("malformed array from peer: its parts do not fit each other");
}

/** Defines an own property of any name: an assignment to `__proto__` would change the prototype. */
export function defineOwn(target: object, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else Reflect.set(target, name, value);
}
