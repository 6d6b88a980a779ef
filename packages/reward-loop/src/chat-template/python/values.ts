/**
 * Python's values as a template sees them. An int is a bigint and a float a number, so that 1 and
 * 1.0 stay two; a str is a string, None null, a list an array, and what JavaScript lacks is a
 * class here. Owns what equal keys of a dict are.
 */

import { fail, unsupported } from "../error.ts";

export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | readonly Value[]
  | Undefined
  | Tuple
  | Dict
  | DictView
  | Range
  | Iter
  | Markup
  | Namespace
  | Callable
  | Opaque;

/** Prints as nothing, is false and empty; anything else that is done with it fails. */
export class Undefined {
  /** Why it is undefined. */
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }

  fail(): never {
    return fail(this.reason);
  }
}

export class Tuple {
  readonly items: readonly Value[];
  /** The fields of a named tuple. */
  readonly names: readonly string[];

  constructor(items: readonly Value[], names: readonly string[] = []) {
    this.items = items;
    this.names = names;
  }
}

/** A dict in the order of insertion, where that is known. */
export class Dict {
  readonly #entries = new Map<string, readonly [Value, Value]>();
  readonly #isOrdered: boolean;

  constructor(isOrdered = true) {
    this.#isOrdered = isOrdered;
  }

  static of(pairs: Iterable<readonly [Value, Value]>, isOrdered = true): Dict {
    const dict = new Dict(isOrdered);
    for (const [key, value] of pairs) dict.set(key, value);
    return dict;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Value): Value | undefined {
    return this.#entries.get(hashOf(key))?.[1];
  }

  /** An equal key stays as it was. */
  set(key: Value, value: Value): void {
    const hash = hashOf(key);
    this.#entries.set(hash, [this.#entries.get(hash)?.[0] ?? key, value]);
  }

  has(key: Value): boolean {
    return this.#entries.has(hashOf(key));
  }

  /** Returns pairs for uses that do not depend on the order. */
  unorderedPairs(): (readonly [Value, Value])[] {
    return [...this.#entries.values()];
  }

  pairs(): (readonly [Value, Value])[] {
    if (!this.#isOrdered) {
      unsupported("the order of an object whose keys look like numbers (a Map keeps it)");
    }
    return this.unorderedPairs();
  }

  keys(): Value[] {
    return this.pairs().map(([key]) => key);
  }

  values(): Value[] {
    return this.pairs().map(([, value]) => value);
  }
}

export class DictView {
  readonly kind: "dict_keys" | "dict_values" | "dict_items";
  readonly items: readonly Value[];

  constructor(kind: DictView["kind"], items: readonly Value[]) {
    this.kind = kind;
    this.items = items;
  }
}

export class Range {
  readonly start: bigint;
  readonly stop: bigint;
  readonly step: bigint;

  constructor(start: bigint, stop: bigint, step: bigint) {
    this.start = start;
    this.stop = stop;
    this.step = step;
  }

  get items(): bigint[] {
    const items: bigint[] = [];
    const isUp = this.step > 0n;
    for (let at = this.start; isUp ? at < this.stop : at > this.stop; at += this.step) {
      items.push(at);
    }
    return items;
  }
}

/**
 * A generator or another iterator: it can be gone through once, and computes what it is asked
 * for.
 */
export class Iter {
  readonly #items: Iterator<Value>;

  constructor(items: Iterable<Value>) {
    this.#items = items[Symbol.iterator]();
  }

  next(): Value | undefined {
    const { done, value } = this.#items.next();
    return done === true ? undefined : value;
  }

  rest(): readonly Value[] {
    const rest: Value[] = [];
    for (let item = this.next(); item !== undefined; item = this.next()) rest.push(item);
    return rest;
  }
}

/** A text that is safe in HTML: printed as it is. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export class Namespace {
  readonly values: Map<string, Value>;

  constructor(values: Map<string, Value>) {
    this.values = values;
  }
}

export interface Arguments {
  readonly positional: readonly Value[];
  readonly keyword: ReadonlyMap<string, Value>;
}

/** Functions, methods, macros, `loop`, cyclers. */
export class Callable {
  readonly name: string;
  readonly call: (given: Arguments) => Value;
  /** Its attributes. */
  readonly attribute: (name: string) => Value | undefined;
  /** The printed form, where Python prints more than an address. */
  readonly text: string | undefined;

  constructor(
    name: string,
    call: (given: Arguments) => Value,
    attribute: (name: string) => Value | undefined = () => undefined,
    text?: string,
  ) {
    this.name = name;
    this.call = call;
    this.attribute = attribute;
    this.text = text;
  }
}

/** An image or what else is no JSON: it is there, and that is all that a template may ask. */
export class Opaque {
  readonly kind: string;

  constructor(kind: string) {
    this.kind = kind;
  }
}

/** Equal keys have one hash: 1, 1.0 and True are one key. */
function hashOf(key: Value): string {
  if (typeof key === "string") return `s${key}`;
  if (key instanceof Markup) return `s${key.text}`;
  if (key === null) return "n";
  if (typeof key === "boolean") return key ? "i1" : "i0";
  if (typeof key === "bigint") return `i${key}`;
  if (typeof key === "number") return Number.isInteger(key) ? `i${BigInt(key)}` : `f${key}`;
  if (key instanceof Undefined) return "u";
  if (key instanceof Tuple) {
    const parts = key.items.map(hashOf);
    return `t${parts.map((part) => `${part.length}:${part}`).join("")}`;
  }
  if (Array.isArray(key) || key instanceof Dict) return fail(`unhashable type: ${typeName(key)}`);
  return unsupported(`${typeName(key)} as a key`);
}

/** The value if there is one, also None; else Undefined with the reason. */
export function orUndefined(value: Value | undefined, reason: string): Value {
  return value === undefined ? new Undefined(reason) : value;
}

/** Python's name of a type, in quotes. */
export function typeName(value: Value): string {
  return `'${pythonType(value)}'`;
}

function pythonType(value: Value): string {
  if (value === null) return "NoneType";
  if (Array.isArray(value)) return "list";
  if (value instanceof DictView) return value.kind;
  if (value instanceof Iter) return "generator";
  if (value instanceof Callable) return "function";
  if (value instanceof Opaque) return value.kind;
  if (typeof value === "object") return value.constructor.name.toLowerCase();
  if (typeof value === "string") return "str";
  if (typeof value === "boolean") return "bool";
  return typeof value === "bigint" ? "int" : "float";
}

/** Returns whether a value is a list. `Array.isArray` does not tell read-only lists apart. */
export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

export function isTrue(value: Value): boolean {
  if (value === null || value instanceof Undefined) return false;
  if (typeof value === "boolean") return value;
  if (typeof value === "bigint") return value !== 0n;
  // NaN is true.
  if (typeof value === "number") return value !== 0;
  return sizeOf(value) !== 0;
}

/** `len`; undefined for what has none. In characters, not in UTF-16. */
export function sizeOf(value: Value): number | undefined {
  if (typeof value === "string") return characters(value).length;
  if (value instanceof Markup) return characters(value.text).length;
  if (Array.isArray(value)) return value.length;
  if (value instanceof Dict) return value.size;
  if (value instanceof Tuple || value instanceof DictView || value instanceof Range) {
    return value.items.length;
  }
  return value instanceof Undefined ? 0 : undefined;
}

/**
 * The items that a loop goes over; undefined for what cannot be gone over. An iterator is used
 * up.
 */
export function itemsOf(value: Value): readonly Value[] | undefined {
  if (typeof value === "string") return characters(value);
  if (value instanceof Markup) return characters(value.text);
  if (isList(value)) return value;
  if (value instanceof Tuple || value instanceof DictView || value instanceof Range) {
    return value.items;
  }
  if (value instanceof Dict) return value.keys();
  if (value instanceof Iter) return value.rest();
  return value instanceof Undefined ? [] : undefined;
}

export function iterate(value: Value): readonly Value[] {
  return itemsOf(value) ?? fail(`${typeName(value)} object is not iterable`);
}

/** Splits by code points, as Python counts. */
export function characters(text: string): readonly string[] {
  return Array.from(text);
}
