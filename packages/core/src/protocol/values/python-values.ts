/**
 * Values between Python and TypeScript: JSON, and a form of its own for what JSON lacks.
 *
 * A value that JSON carries unchanged travels unchanged. Where anything in it needs more, each such
 * place is `{"$": [tag, ...]}`, and an object with a key `$` is wrapped to be told from one.
 * `python/src/rayling/wire/values.py` is the other side.
 */
import { inspect, types } from "node:util";
import { prototypeOf } from "../../shared/methods.ts";
import { isError, kindOf } from "./kinds.ts";

export interface Encoded {
  readonly value: unknown;
  /** Whether `value` holds places in their own form, and so has to be decoded. */
  readonly isTagged: boolean;
  /** Copies: the class may change its arrays as soon as it has returned them. */
  readonly buffers: readonly Uint8Array[];
}

/**
 * By NumPy's name; Float16Array is there from Node 24 on. An array of more than one dimension is a
 * typed array with a property `shape`, in row-major order, in both directions.
 */
const arrays: readonly (readonly [string, new (memory: ArrayBuffer) => NodeJS.TypedArray])[] = [
  ["int8", Int8Array],
  ["uint8", Uint8Array],
  ["int16", Int16Array],
  ["uint16", Uint16Array],
  ["int32", Int32Array],
  ["uint32", Uint32Array],
  ["int64", BigInt64Array],
  ["uint64", BigUint64Array],
  ["float32", Float32Array],
  ["float64", Float64Array],
];

/** Levels of a value: Python's reader of JSON takes no more than about a thousand. */
const deepest = 200;

/** Python reads no longer integers, to keep out those that take minutes. */
export const mostDigits = 4300;

/** The years 1 to 9999, which Python's dates have. */
const firstMs: number = Date.parse("0001-01-01T00:00:00Z");
const lastMs: number = Date.UTC(10_000, 0, 1) - 1;

/**
 * @throws TypeError for what Python cannot have: a function, a symbol, an object inside itself, a
 * date that is invalid or beyond the year 9999, an array of another size than its shape, and what
 * would lose its content: a promise, an object with nothing in properties of its own that is of a
 * class (a RegExp, Headers, an iterator), a Map with keys that are objects or become equal as texts
 */
export function encode(value: unknown): Encoded {
  const encoder = new Encoder();
  const plain = encoder.encode(value);
  return { value: plain, isTagged: encoder.isTagged, buffers: encoder.buffers };
}

class Encoder {
  isTagged = false;
  readonly buffers: Uint8Array[] = [];
  /** Objects around the present value, and the keys that lead to it. */
  readonly #around = new Set<object>();
  readonly #path: (string | number)[] = [];

  encode(value: unknown): unknown {
    switch (typeof value) {
      case "string":
      case "boolean":
        return value;
      case "undefined":
        return null;
      case "number":
        if (Number.isFinite(value) && !Object.is(value, -0)) return value;
        return this.#tag("f", Object.is(value, -0) ? "-0" : String(value));
      case "bigint":
        return this.#tag("i", this.#digits(value));
      case "object":
        return value === null ? null : this.#object(value);
      default:
        throw new TypeError(`${this.#place()} is ${inspect(value)}, which Python cannot have`);
    }
  }

  #object(value: object): unknown {
    const binary = this.#binary(value);
    if (binary !== undefined) return binary;
    if (types.isDate(value)) return this.#tag("d", this.#time(value));
    if (this.#around.size >= deepest) {
      throw new TypeError(
        `the value has more than ${deepest} levels, which Python cannot be given`,
      );
    }
    if (this.#around.has(value)) {
      throw new TypeError(`${this.#place()} is inside itself, which Python cannot be given`);
    }
    this.#around.add(value);
    const encoded = this.#container(value);
    this.#around.delete(value);
    return encoded;
  }

  #container(value: object): unknown {
    if (Array.isArray(value) || types.isSet(value)) {
      return Array.from(value, (one: unknown, index) => this.#inside(index, one));
    }
    if ("toJSON" in value && typeof value.toJSON === "function") return this.encode(value.toJSON());
    if (types.isBoxedPrimitive(value)) return this.encode(value.valueOf());
    const encoded: Record<string, unknown> = Object.create(null);
    for (const [key, one] of this.#entries(value)) {
      // JSON leaves them out, too.
      if (typeof one !== "function" && one !== undefined) encoded[key] = this.#inside(key, one);
    }
    return Object.hasOwn(encoded, "$") ? this.#tag("o", encoded) : encoded;
  }

  #entries(value: object): Iterable<readonly [string, unknown]> {
    if (types.isMap(value)) return this.#entriesOfMap(value);
    const entries = Object.entries(value);
    if (isError(value)) return [["name", value.name], ["message", value.message], ...entries];
    if (types.isPromise(value) || ("then" in value && typeof value.then === "function")) {
      throw new TypeError(`${this.#place()} is a Promise; await it first`);
    }
    if (entries.length > 0 || isPlain(value)) return entries;
    throw new TypeError(
      `${this.#place()} is an instance of ${classOf(value)} with nothing in properties of its own, which are what Python gets: give plain data, or the class a toJSON`,
    );
  }

  #entriesOfMap(map: ReadonlyMap<unknown, unknown>): Iterable<readonly [string, unknown]> {
    const keys = new Map<string, unknown>();
    for (const key of map.keys()) {
      if (!isPrimitive(key)) {
        throw new TypeError(
          `${this.#place()} is a Map with the key ${shortly(key)}, and Python gets keys as texts: give a list of its entries, [...map]`,
        );
      }
      const text = String(key);
      if (keys.has(text)) {
        throw new TypeError(
          `${this.#place()} is a Map with the keys ${shortly(keys.get(text))} and ${shortly(key)}, which Python would get as one text: give a list of its entries, [...map]`,
        );
      }
      keys.set(text, key);
    }
    return Array.from(map, ([key, one]) => [String(key), one]);
  }

  #inside(key: string | number, value: unknown): unknown {
    this.#path.push(key);
    const encoded = this.encode(value);
    this.#path.pop();
    return encoded;
  }

  #binary(value: object): unknown {
    if (types.isAnyArrayBuffer(value)) {
      return this.#tag("b", this.#copied(new Uint8Array(value)));
    }
    if (!ArrayBuffer.isView(value)) return undefined;
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    const shape = "shape" in value ? value.shape : undefined;
    if (value instanceof DataView || (value instanceof Uint8Array && shape === undefined)) {
      return this.#tag("b", this.#copied(bytes));
    }
    const known = arrays.find(([, Class]) => value instanceof Class);
    const kind = known?.[0] ?? (value instanceof Uint8ClampedArray ? "uint8" : "float16");
    if (shape !== undefined) this.#checkShape(shape, bytes.byteLength / bytesOf(value));
    return this.#tag("a", kind, shape ?? null, this.#copied(bytes));
  }

  #checkShape(shape: unknown, size: number): void {
    const isShape = Array.isArray(shape) && shape.every((one) => Number.isInteger(one) && one >= 0);
    if (isShape && shape.reduce((product: number, one: number) => product * one, 1) === size)
      return;
    throw new TypeError(
      `${this.#place()} is an array of ${size} with the shape ${inspect(shape)}, which it cannot have`,
    );
  }

  #time(date: Date): number {
    const time = date.getTime();
    if (time >= firstMs && time <= lastMs) return time;
    throw new TypeError(`${this.#place()} is ${inspect(date)}, which Python has no date for`);
  }

  #digits(value: bigint): string {
    const digits = String(value);
    if (digits.length <= mostDigits) return digits;
    throw new TypeError(
      `${this.#place()} is an integer of ${digits.length} digits, and Python reads ${mostDigits}`,
    );
  }

  #copied(bytes: Uint8Array): number {
    return this.buffers.push(Uint8Array.from(bytes)) - 1;
  }

  #tag(...content: readonly unknown[]): unknown {
    this.isTagged = true;
    return { $: content };
  }

  #place(): string {
    return this.#path.length === 0 ? "the value" : `${this.#path.join(".")} of the value`;
  }
}

function bytesOf(array: ArrayBufferView): number {
  return "BYTES_PER_ELEMENT" in array ? Number(array.BYTES_PER_ELEMENT) : 1;
}

/** Whether it is of no class, in any realm: it may well be empty. */
function isPlain(value: object): boolean {
  const prototype = prototypeOf(value);
  return (
    prototype === null || prototype === Object.prototype || kindOf(value, prototype) === "object"
  );
}

function isPrimitive(key: unknown): boolean {
  return key === null || !["object", "function", "symbol"].includes(typeof key);
}

function classOf(value: object): string {
  const { constructor }: { readonly constructor?: unknown } = value;
  const name = typeof constructor === "function" ? constructor.name : "";
  // Generators and iterators have no constructor with a name.
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return name === "" || name === "Object" ? tag : name;
}

function shortly(key: unknown): string {
  return inspect(key, { depth: 0, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 100 });
}

/** @param signal of the call, made when the first argument asks for it; none: there is no call */
export function decode(
  value: unknown,
  buffers: readonly ArrayBuffer[],
  signal: () => AbortSignal = noSignal,
): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one: unknown) => decode(one, buffers, signal));
  if ("$" in value && Array.isArray(value.$)) return decodeTagged(value.$, buffers, signal);
  return decodeEntries(value, buffers, signal);
}

function noSignal(): never {
  throw new TypeError("the Python side sent a signal where there is no call");
}

function decodeEntries(
  value: object,
  buffers: readonly ArrayBuffer[],
  signal: () => AbortSignal,
): unknown {
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, decode(one, buffers, signal)]),
  );
}

function decodeTagged(
  [tag, first, second, third]: readonly unknown[],
  buffers: readonly ArrayBuffer[],
  signal: () => AbortSignal,
): unknown {
  switch (tag) {
    case "b":
      return new Uint8Array(bufferAt(buffers, first));
    case "a":
      return typedArray(String(first), second, bufferAt(buffers, third));
    case "i":
      return BigInt(String(first));
    case "f":
      return Number(first);
    case "d":
      return new Date(Number(first));
    case "s":
      return signal();
    case "o":
      return decodeEntries(Object(first), buffers, signal);
    default:
      throw new TypeError(`the Python side sent a value of the kind ${inspect(tag)}`);
  }
}

function bufferAt(buffers: readonly ArrayBuffer[], index: unknown): ArrayBuffer {
  const found = buffers[Number(index)];
  if (found === undefined) throw new TypeError(`a frame has no buffer ${inspect(index)}`);
  return found;
}

function typedArray(kind: string, shape: unknown, memory: ArrayBuffer): NodeJS.TypedArray {
  const make = arrays.find(([name]) => name === kind)?.[1] ?? float16(kind);
  if (make === undefined) {
    throw new TypeError(`an argument is an array of ${kind}, which Node ${process.version} lacks`);
  }
  const array = new make(memory);
  return shape === null ? array : Object.assign(array, { shape });
}

function float16(kind: string): (new (memory: ArrayBuffer) => NodeJS.TypedArray) | undefined {
  return kind === "float16" && "Float16Array" in globalThis ? globalThis.Float16Array : undefined;
}
