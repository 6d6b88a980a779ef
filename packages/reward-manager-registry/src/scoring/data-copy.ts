/**
 * Copies plain data deeply, so that a score function may change its arguments. In verl the rows of
 * one prompt share one extra_info object and race on it; a shallow copy would leave that in its
 * inner objects. Copied: plain objects, arrays, maps, sets, dates, buffers and views of them;
 * cycles and shared parts keep their shape. By reference: functions and class instances, which only
 * their owner can copy.
 */

import { isTypedArray } from "../values/records.ts";

/** Returns a deep copy of plain data; functions and class instances are the same ones. */
export function copyData<Data>(data: Data): Data {
  return isSimple(data) ? data : (copyValue(data, new Copies()) as Data);
}

function isSimple(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

function copyValue(value: unknown, copies: Copies): unknown {
  if (typeof value !== "object" || value === null) return value;
  const known = copies.of(value);
  if (known !== undefined) return known;
  if (Array.isArray(value)) {
    // One that grows gets room for 17: 120 bytes more for a list of two (measured).
    const copy: unknown[] = Array.from(value);
    copies.add(value, copy);
    for (let at = 0; at < copy.length; at++) copy[at] = copyValue(copy[at], copies);
    return copy;
  }
  if (value instanceof Map) {
    const copy = new Map<unknown, unknown>();
    copies.add(value, copy);
    for (const [key, item] of value) copy.set(copyValue(key, copies), copyValue(item, copies));
    return copy;
  }
  if (value instanceof Set) {
    const copy = new Set<unknown>();
    copies.add(value, copy);
    for (const item of value) copy.add(copyValue(item, copies));
    return copy;
  }
  if (value instanceof Date || value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    const copy: unknown = copyBinary(value);
    copies.add(value, copy);
    return copy;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const keys = Object.keys(value);
  // Copied at once, because an object that is filled has room for further keys.
  const copy: Record<string, unknown> =
    prototype === null
      ? Object.assign(Object.create(null), value)
      : keys.length === 0
        ? new Empty()
        : { ...value };
  copies.add(value, copy);
  for (const key of keys) {
    const given = copy[key];
    const item = copyValue(given, copies);
    if (item === given) continue;
    // An assignment would not do: a key "__proto__" from parsed JSON is ordinary data.
    if (key === "__proto__") Object.defineProperty(copy, key, { value: item, ...ordinary });
    else copy[key] = item;
  }
  return copy;
}

/**
 * Makes a plain object of 24 bytes: `{}` has 56, with room for four keys. Many samples that wait
 * have one.
 */
const Empty = function () {} as unknown as new () => Record<string, unknown>;
Empty.prototype = Object.prototype;

/** The copies so far, by their originals. Most samples have few, which cost less than a map. */
class Copies {
  #last: Copied | undefined;
  #count = 0;
  #many: Map<object, unknown> | undefined;

  of(original: object): unknown {
    if (this.#many !== undefined) return this.#many.get(original);
    for (let one = this.#last; one !== undefined; one = one.before) {
      if (one.original === original) return one.copy;
    }
    return undefined;
  }

  add(original: object, copy: unknown): void {
    this.#count += 1;
    if (this.#count <= few) this.#last = { original, copy, before: this.#last };
    else (this.#many ??= this.#asMap()).set(original, copy);
  }

  #asMap(): Map<object, unknown> {
    const copies = new Map<object, unknown>();
    for (let one = this.#last; one !== undefined; one = one.before) {
      copies.set(one.original, one.copy);
    }
    return copies;
  }
}

interface Copied {
  readonly original: object;
  readonly copy: unknown;
  readonly before: Copied | undefined;
}

const few = 8;

const ordinary = { writable: true, enumerable: true, configurable: true } as const;

function copyBinary(value: Date | ArrayBuffer | ArrayBufferView): unknown {
  if (value instanceof Date) return new Date(value);
  if (value instanceof ArrayBuffer) return value.slice(0);
  if (value instanceof DataView) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return new DataView(Uint8Array.from(bytes).buffer);
  }
  // Node's Buffer.slice is a view of the same memory; Uint8Array's is a copy.
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  return isTypedArray(value) ? value.slice() : value;
}
