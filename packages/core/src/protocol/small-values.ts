/**
 * Packs and unpacks by hand what most small calls carry: a number, a boolean, null, undefined, a
 * short ASCII text or a few bytes, and lists of up to 15 of these, of bytes at most once. msgpackr
 * reads what is written here, and writes what is read here; anything else is left to it.
 */

import { types } from "node:util";

/** The result of unpacking bytes that are not those of a small value. */
export const notSmall: unique symbol = Symbol("not small");

const chunkBytes = 8192;
/** The longest list, and the longest text, whose length is part of the first byte. */
const maxItems = 15;
const maxText = 31;
/** The head of a view: first byte, length, type and class. */
const viewHeadBytes = 4;
/** A view of more bytes has memory of its own, which V8 copies faster. */
const maxViewBytes = 64;
/** The most bytes of a list: its head, texts of the greatest length, and a view. */
const maxListBytes: number = 1 + maxItems * (1 + maxText) + viewHeadBytes + maxViewBytes;

/** First bytes; those from `records` to below `maps` name msgpackr's records. */
const records = 0x40;
const maps = 0x80;
const lists = 0x90;
const texts = 0xa0;
const nil = 0xc0;
const no = 0xc2;
const yes = 0xc3;
const float64 = 0xcb;
const uint8 = 0xcc;
const uint16 = 0xcd;
const uint32 = 0xce;
const int8 = 0xd0;
const int16 = 0xd1;
const int32 = 0xd2;
/** An extension of one byte; that of type 0 is undefined. */
const oneByte = 0xd4;
/** An extension with a length in one byte; msgpackr's views have the type, then their class. */
const extension8 = 0xc7;
const viewType = 0x74;
const uint8Array = 1;
const negatives = 0xe0;

/** A number and its bytes, the last one first: every platform of Node is little-endian. */
const float: Float64Array = new Float64Array(1);
const floatBytes: Uint8Array = new Uint8Array(float.buffer);

/** Read by the built-in getters, which neither own properties nor another prototype hide. */
const lengthOf = getter(Object.getPrototypeOf(Uint8Array.prototype), "length");
const bufferOf = getter(Object.getPrototypeOf(Uint8Array.prototype), "buffer");
const sizeOf = getter(ArrayBuffer.prototype, "byteLength");

interface Getter {
  readonly get?: (this: unknown) => unknown;
}

function getter(prototype: object, name: string): Getter | undefined {
  return Object.getOwnPropertyDescriptor(prototype, name);
}

/** Packs small values, one behind the other. */
export class SmallPacker {
  /** The window of what was packed last. It is not written again. */
  bytes: Buffer = Buffer.allocUnsafeSlow(chunkBytes);
  start = 0;
  end = 0;

  /** Returns whether the list is small; if so, it is packed now. */
  list(list: readonly unknown[]): boolean {
    const { length } = list;
    if (length > maxItems) return false;
    const start = this.#room();
    this.bytes[start] = lists | length;
    let at = start + 1;
    let hasView = false;
    for (let index = 0; index < length; index++) {
      const item = list[index];
      // It may be a hole, which is none.
      if (item === undefined) return false;
      if (typeof item === "object" && item !== null) {
        // Two views may show the same memory, and have to do so where they arrive.
        if (hasView || !isFewBytes(item)) return false;
        hasView = true;
      }
      at = writeItem(this.bytes, item, at);
      if (at < 0) return false;
    }
    this.start = start;
    this.end = at;
    return true;
  }

  /** Returns whether the value, which is no list, is small; if so, it is packed now. */
  value(value: unknown): boolean {
    const start = this.#room();
    const end = writeItem(this.bytes, value, start);
    if (end < 0) return false;
    this.start = start;
    this.end = end;
    return true;
  }

  /** Returns where there is room. */
  #room(): number {
    if (chunkBytes - this.end < maxListBytes) {
      this.bytes = Buffer.allocUnsafeSlow(chunkBytes);
      this.end = 0;
    }
    return this.end;
  }
}

/** Returns the place behind the item, or -1 if it is not small. */
function writeItem(bytes: Buffer, item: unknown, at: number): number {
  switch (typeof item) {
    case "number":
      return writeNumber(bytes, item, at);
    case "string":
      return writeText(bytes, item, at);
    case "boolean":
      bytes[at] = item ? yes : no;
      return at + 1;
    case "undefined":
      bytes[at] = oneByte;
      bytes[at + 1] = 0;
      bytes[at + 2] = 0;
      return at + 3;
    default:
      if (item !== null) return isFewBytes(item) ? writeBytes(bytes, item, at) : -1;
      bytes[at] = nil;
      return at + 1;
  }
}

/** Whether it is a view of all of its memory, which is small and nobody else's. */
function isFewBytes(value: unknown): value is Uint8Array {
  if (!ArrayBuffer.isView(value) || !types.isUint8Array(value)) return false;
  if (Object.getPrototypeOf(value) !== Uint8Array.prototype) return false;
  const length = Number(lengthOf?.get?.call(value));
  // One that is empty may have lost its memory.
  if (!(length > 0 && length <= maxViewBytes)) return false;
  const memory: unknown = bufferOf?.get?.call(value);
  if (types.isSharedArrayBuffer(memory) || sizeOf?.get?.call(memory) !== length) return false;
  return Object.getPrototypeOf(memory) === ArrayBuffer.prototype;
}

function writeBytes(bytes: Buffer, value: Uint8Array, at: number): number {
  const length = Number(lengthOf?.get?.call(value));
  bytes[at] = extension8;
  bytes[at + 1] = length + 1;
  bytes[at + 2] = viewType;
  bytes[at + 3] = uint8Array;
  for (let index = 0; index < length; index++) bytes[at + viewHeadBytes + index] = value[index]!;
  return at + viewHeadBytes + length;
}

function writeNumber(bytes: Buffer, value: number, at: number): number {
  if ((value | 0) !== value) return writeFloat(bytes, value, at);
  // msgpackr has no -0: it travels as a special value.
  if (value === 0 && 1 / value < 0) return -1;
  if (value < 0) return writeNegative(bytes, value, at);
  if (value < records) {
    bytes[at] = value;
    return at + 1;
  }
  if (value < 0x100) {
    bytes[at] = uint8;
    bytes[at + 1] = value;
    return at + 2;
  }
  if (value < 0x10000) {
    bytes[at] = uint16;
    return bytes.writeUInt16BE(value, at + 1);
  }
  bytes[at] = uint32;
  return bytes.writeUInt32BE(value, at + 1);
}

function writeNegative(bytes: Buffer, value: number, at: number): number {
  if (value >= -0x20) {
    bytes[at] = value + 0x100;
    return at + 1;
  }
  if (value >= -0x80) {
    bytes[at] = int8;
    bytes[at + 1] = value;
    return at + 2;
  }
  if (value >= -0x8000) {
    bytes[at] = int16;
    return bytes.writeInt16BE(value, at + 1);
  }
  bytes[at] = int32;
  return bytes.writeInt32BE(value, at + 1);
}

function writeFloat(bytes: Buffer, value: number, at: number): number {
  bytes[at] = float64;
  float[0] = value;
  for (let index = 0; index < 8; index++) bytes[at + 1 + index] = floatBytes[7 - index]!;
  return at + 9;
}

function writeText(bytes: Buffer, value: string, at: number): number {
  const { length } = value;
  if (length > maxText) return -1;
  bytes[at] = texts | length;
  for (let index = 0; index < length; index++) {
    const code = value.charCodeAt(index);
    if (code >= 0x80) return -1;
    bytes[at + 1 + index] = code;
  }
  return at + 1 + length;
}

/** Where reading goes on. */
let next = 0;

/**
 * Returns `notSmall` for bytes that msgpackr has to read: texts, whose repetitions it knows, are
 * among them.
 */
export function unpackSmall(bytes: Uint8Array, start: number, end: number): unknown {
  // A window that ends beyond its memory is not read, and an empty one has no first byte.
  if (end > bytes.length || start >= end || end - start > maxListBytes) return notSmall;
  const token = bytes[start]!;
  next = start + 1;
  if (token < lists || token > lists + maxItems) {
    const value = readItem(bytes, token);
    return next === end ? value : notSmall;
  }
  const length = token - lists;
  const list: unknown[] = Array<unknown>(length);
  for (let index = 0; index < length; index++) {
    if (next >= end) return notSmall;
    const item = readItem(bytes, bytes[next++]!);
    if (item === notSmall) return notSmall;
    list[index] = item;
  }
  return next === end ? list : notSmall;
}

/** Reads what follows a first byte; what reaches beyond the end is found at the end. */
function readItem(bytes: Uint8Array, token: number): unknown {
  if (token < records) return token;
  if (token >= negatives) return token - 0x100;
  if (token < maps) return notSmall;
  const at = next;
  switch (token) {
    case nil:
      return null;
    case no:
      return false;
    case yes:
      return true;
    case float64:
      next = at + 8;
      for (let index = 0; index < 8; index++) floatBytes[7 - index] = bytes[at + index]!;
      return float[0];
    case uint8:
      next = at + 1;
      return bytes[at];
    case uint16:
      next = at + 2;
      return (bytes[at]! << 8) | bytes[at + 1]!;
    case uint32:
      next = at + 4;
      return int32At(bytes, at) >>> 0;
    case int8:
      next = at + 1;
      return (bytes[at]! << 24) >> 24;
    case int16:
      next = at + 2;
      return (((bytes[at]! << 8) | bytes[at + 1]!) << 16) >> 16;
    case int32:
      next = at + 4;
      return int32At(bytes, at);
    case oneByte:
      next = at + 2;
      return bytes[at] === 0 && bytes[at + 1] === 0 ? undefined : notSmall;
    case extension8:
      return readBytes(bytes, at);
    default:
      return notSmall;
  }
}

/** @param at behind the first byte */
function readBytes(bytes: Uint8Array, at: number): unknown {
  const length = bytes[at]! - 1;
  const isView =
    length > 0 &&
    length <= maxViewBytes &&
    bytes[at + 1] === viewType &&
    bytes[at + 2] === uint8Array;
  if (!isView) return notSmall;
  const from = at + viewHeadBytes - 1;
  next = from + length;
  const view = new Uint8Array(length);
  for (let index = 0; index < length; index++) view[index] = bytes[from + index]!;
  return view;
}

function int32At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}
