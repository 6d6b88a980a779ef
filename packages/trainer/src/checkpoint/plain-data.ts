/**
 * Plain data as JSON and arrays: objects, lists, texts, numbers, and typed arrays, which go into a
 * safetensors file beside the JSON, all of one type one after the other: a header with a name for
 * each would be too long where the rollouts are many.
 *
 * The data comes back equal, including NaN, the infinities, -0, bigints, dates, maps, sets, and
 * undefined in a list; a key whose value is undefined is lost. Values that would come back as
 * something else (functions, classes, cycles) are refused with their place.
 *
 * In the JSON, an object with one key that begins with a single $ stands for a value that JSON
 * cannot write; keys of the data that begin with $ get another $.
 */

import { isList, isRecord } from "@rayling/reward-manager-registry/values";
import { dtypeOf, isNumberArray } from "./safetensors.ts";
import type { NumberArray } from "./safetensors.ts";

export interface FlatData {
  /** For JSON.stringify. An array is `{"$array": [type, start, length]}`. */
  readonly json: unknown;
  /** Arrays in their order, by their type. */
  readonly arrays: Readonly<Record<string, readonly NumberArray[]>>;
}

/** As it was read. Earlier versions named each array by its place: `{"$array": name}`. */
export interface ReadData {
  readonly json: unknown;
  readonly arrays: Readonly<Record<string, NumberArray>>;
}

interface Column {
  readonly pieces: NumberArray[];
  length: number;
}

/** Throws TypeError with the place. */
export function flatten(data: unknown): FlatData {
  const columns = new Map<string, Column>();
  const open = new Set<object>();
  const walk = (value: unknown, place: string): unknown => {
    const word = wordFor(value);
    if (word !== undefined) return word;
    if (typeof value !== "object") throw new TypeError(`${place} is a ${typeof value}`);
    if (value === null) return null;
    if (isNumberArray(value)) {
      const type = dtypeOf(value) ?? "";
      const column = columns.get(type) ?? { pieces: [], length: 0 };
      columns.set(type, column);
      const start = column.length;
      column.pieces.push(value);
      column.length += value.length;
      return { $array: [type, start, value.length] };
    }
    if (value instanceof Date) return { $date: walk(value.getTime(), place) };
    if (!isPlain(value)) throw new TypeError(`${place} is an instance of ${nameOf(value)}`);
    if (open.has(value)) throw new TypeError(`${place} is one of the objects that it is in`);
    open.add(value);
    const listed = (list: readonly unknown[]): unknown[] =>
      Array.from(list, (one, at) => walk(one, `${place}[${at}]`));
    const result = Array.isArray(value)
      ? listed(value)
      : value instanceof Map
        ? { $map: listed([...value]) }
        : value instanceof Set
          ? { $set: listed([...value]) }
          : Object.fromEntries(
              Object.entries(value)
                .filter(([, one]) => one !== undefined)
                .map(([key, one]) => [
                  key.startsWith("$") ? `$${key}` : key,
                  walk(one, `${place}.${key}`),
                ]),
            );
    open.delete(value);
    return result;
  };
  const json = walk(data, "$");
  const arrays = [...columns].map(([type, { pieces }]) => [type, pieces] as const);
  return { json, arrays: Object.fromEntries(arrays) };
}

/**
 * Returns the part of any data that can be saved. A value that would be refused becomes its text if
 * it has one (errors, addresses, patterns), and null otherwise.
 */
export function keepable(value: unknown, within: readonly unknown[] = []): unknown {
  if (typeof value === "function" || typeof value === "symbol") return null;
  if (typeof value !== "object" || value === null) return value;
  if (isNumberArray(value) || value instanceof Date) return value;
  if (within.includes(value)) return null;
  const kept = (one: unknown): unknown => keepable(one, [...within, value]);
  if (Array.isArray(value)) return Array.from(value, kept);
  if (value instanceof Map)
    return new Map(Array.from(value, ([key, one]) => [kept(key), kept(one)]));
  if (value instanceof Set) return new Set(Array.from(value, kept));
  if (isPlain(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, kept(one)]));
  }
  const hasText = value instanceof Error || value instanceof URL || value instanceof RegExp;
  return hasText ? String(value) : null;
}

/** Throws TypeError where an array is missing. */
export function unflatten({ json, arrays }: ReadData): unknown {
  const walk = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (isList(value)) return value.map(walk);
    const [[key, held] = ["", undefined], ...more] = Object.entries(value);
    if (more.length === 0 && /^\$(?:date|map|set)$/.test(key)) return builtOf(key, walk(held));
    if (more.length === 0 && /^\$[a-z]/.test(key)) return meantBy(key, held, arrays);
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        name.startsWith("$") ? name.slice(1) : name,
        walk(one),
      ]),
    );
  };
  return walk(json);
}

/**
 * The JSON of `flatten` as lines, none of which is longer than one item of a list: a list of
 * objects is `{"$list": n}`, and each of its items stands before, as `[n, item]`. The last line is
 * `{"whole": ...}`.
 */
export function* jsonLines(json: unknown): Generator<string, void, undefined> {
  let lists = 0;
  function* lifted(value: unknown): Generator<string, unknown, undefined> {
    if (typeof value !== "object" || value === null) return value;
    if (!isList(value)) {
      const entries: [string, unknown][] = [];
      for (const [key, one] of Object.entries(value)) entries.push([key, yield* lifted(one)]);
      return Object.fromEntries(entries);
    }
    if (!value.some((one) => typeof one === "object" && one !== null)) return value;
    const list = lists++;
    for (const one of value) {
      yield `${JSON.stringify([list, yield* lifted(one)])}\n`;
    }
    return { $list: list };
  }
  yield `${JSON.stringify({ whole: yield* lifted(json) })}\n`;
}

/** The JSON that `jsonLines` made lines of. Rejects with TypeError where its last line lacks. */
export async function jsonOfLines(
  lines: AsyncIterable<{ readonly value: unknown }>,
): Promise<unknown> {
  const lists = new Map<number, unknown[]>();
  const withLists = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (isList(value)) return value.map(withLists);
    if ("$list" in value) return lists.get(Number(value.$list));
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withLists(one)]));
  };
  for await (const { value } of lines) {
    if (isRecord(value)) return withLists(value["whole"]);
    const [place, item] = listOf(value, "a line");
    const list = Number(place);
    const items = lists.get(list) ?? [];
    items.push(withLists(item));
    lists.set(list, items);
  }
  throw new TypeError("it ends before its last line");
}

/**
 * Returns the JSON value, or the object that stands for it; undefined for a value with parts and
 * for one that cannot be saved.
 */
function wordFor(value: unknown): unknown {
  if (value === undefined) return { $undefined: true };
  if (typeof value === "bigint") return { $bigint: String(value) };
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value !== "number") return undefined;
  const isJson = Number.isFinite(value) && !Object.is(value, -0);
  return isJson ? value : { $number: Object.is(value, -0) ? "-0" : String(value) };
}

function meantBy(key: string, held: unknown, arrays: ReadData["arrays"]): unknown {
  if (key === "$undefined") return undefined;
  if (key === "$number") return Number(held);
  if (key === "$bigint") return BigInt(String(held));
  const [name, start, length] = isList(held) ? held : [held];
  const found = key === "$array" ? arrays[String(name)] : undefined;
  if (found === undefined) throw new TypeError(`there is no ${key} ${String(name)}`);
  if (start === undefined) return found;
  const end = Number(start) + Number(length);
  // In memory of its own: the rest can be freed, and a view would be sent with all of it.
  if (end <= found.length) return found.slice(Number(start), end);
  throw new TypeError(`${String(name)} has ${found.length} numbers, and $array ends at ${end}`);
}

function builtOf(key: string, parts: unknown): unknown {
  if (key === "$date") return new Date(Number(parts));
  const items = listOf(parts, key);
  if (key === "$set") return new Set(items);
  return new Map(
    items.map((item): [unknown, unknown] => {
      const [name, value] = listOf(item, "an entry of $map");
      return [name, value];
    }),
  );
}

/** Whether the value is a plain object or list. */
function isPlain(value: object): boolean {
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nameOf(value: object): string {
  return value.constructor?.name ?? "a class";
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (isList(value)) return value;
  throw new TypeError(`${what} is not a list`);
}
