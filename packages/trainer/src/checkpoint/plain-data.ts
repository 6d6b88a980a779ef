/**
 * Any plain data as JSON and arrays: objects, lists, texts, numbers, and typed arrays, which go into a safetensors file beside the JSON. What comes back is equal to what went in: also NaN, the
 * infinities, -0, bigints, dates, maps, sets, and undefined in a list; undefined in an object is as if the key were not there. What would come back as something else (functions, classes, cycles)
 * is refused with its place.
 *
 * In the JSON an object with one key that begins with a single $ stands for what JSON has no word for; keys of the data that begin with $ get another one.
 */

import { isNumberArray } from "./safetensors.ts";
import type { NumberArray } from "./safetensors.ts";

export interface FlatData {
  /** For JSON.stringify. */
  readonly json: unknown;
  /** By their places. */
  readonly arrays: Readonly<Record<string, NumberArray>>;
}

/** Throws TypeError with the place. */
export function flatten(data: unknown): FlatData {
  const arrays = new Map<string, NumberArray>();
  const open = new Set<object>();
  const walk = (value: unknown, place: string): unknown => {
    const word = wordFor(value);
    if (word !== undefined) return word;
    if (typeof value !== "object") throw new TypeError(`${place} is a ${typeof value}`);
    if (value === null) return null;
    if (isNumberArray(value)) {
      arrays.set(place, value);
      return { $array: place };
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
  return { json: walk(data, "$"), arrays: Object.fromEntries(arrays) };
}

/** Throws TypeError where an array is missing. */
export function unflatten({ json, arrays }: FlatData): unknown {
  const walk = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return (value as readonly unknown[]).map(walk);
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

/** What JSON says itself, or the object that stands for it; undefined for what has parts, or cannot be. */
function wordFor(value: unknown): unknown {
  if (value === undefined) return { $undefined: true };
  if (typeof value === "bigint") return { $bigint: String(value) };
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value !== "number") return undefined;
  const isJson = Number.isFinite(value) && !Object.is(value, -0);
  return isJson ? value : { $number: Object.is(value, -0) ? "-0" : String(value) };
}

function meantBy(key: string, held: unknown, arrays: FlatData["arrays"]): unknown {
  if (key === "$undefined") return undefined;
  if (key === "$number") return Number(held);
  if (key === "$bigint") return BigInt(held as string);
  const array = key === "$array" ? arrays[held as string] : undefined;
  if (array === undefined) throw new TypeError(`there is no ${key} ${String(held)}`);
  return array;
}

function builtOf(key: string, parts: unknown): unknown {
  if (key === "$date") return new Date(parts as number);
  return key === "$map"
    ? new Map(parts as readonly (readonly [unknown, unknown])[])
    : new Set(parts as readonly unknown[]);
}

/** What has parts of which it can be put together again. */
function isPlain(value: object): boolean {
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nameOf(value: object): string {
  return value.constructor?.name ?? "a class";
}
