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
  return isSimple(data) ? data : (copyValue(data, new Map()) as Data);
}

function isSimple(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

function copyValue(value: unknown, copies: Map<object, unknown>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    copies.set(value, copy);
    for (const item of value) copy.push(copyValue(item, copies));
    return copy;
  }
  if (value instanceof Map) {
    const copy = new Map<unknown, unknown>();
    copies.set(value, copy);
    for (const [key, item] of value) copy.set(copyValue(key, copies), copyValue(item, copies));
    return copy;
  }
  if (value instanceof Set) {
    const copy = new Set<unknown>();
    copies.set(value, copy);
    for (const item of value) copy.add(copyValue(item, copies));
    return copy;
  }
  if (value instanceof Date || value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    const copy: unknown = copyBinary(value);
    copies.set(value, copy);
    return copy;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const copy: Record<string, unknown> = prototype === null ? Object.create(null) : {};
  copies.set(value, copy);
  for (const key of Object.keys(value)) {
    const item = copyValue(Reflect.get(value, key), copies);
    // An assignment would not do: a key "__proto__" from parsed JSON is ordinary data.
    if (key === "__proto__") Object.defineProperty(copy, key, { value: item, ...ordinary });
    else copy[key] = item;
  }
  return copy;
}

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
