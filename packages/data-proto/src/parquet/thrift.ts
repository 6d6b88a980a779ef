/**
 * Structs of Thrift's compact protocol, as headers of pages are written: where each field stands,
 * and the values of whole numbers. Must not know what the fields mean.
 */

/** The fields of a struct by their ids. */
export type ThriftFields = ReadonlyMap<number, ThriftField>;

export interface ThriftField {
  /** The place of its value in the bytes, and the place behind it. */
  readonly from: number;
  readonly to: number;
  /** The value of a whole number. */
  readonly number?: number | undefined;
  /** The fields of a struct. */
  readonly fields?: ThriftFields | undefined;
}

const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const WHOLE: ReadonlySet<number> = new Set([4, 5, 6]);
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

/** Reads the struct at a place. Throws RangeError where the bytes end before it does. */
export function readStruct(
  bytes: Uint8Array,
  start: number,
): { readonly fields: ThriftFields; readonly end: number } {
  const reader = new Reader(bytes, start);
  return { fields: reader.struct(), end: reader.at };
}

/** Reads a number of any length, seven bits a byte. Throws RangeError at the end of the bytes. */
export function readVarint(
  bytes: Uint8Array,
  start: number,
): { readonly value: number; readonly end: number } {
  const reader = new Reader(bytes, start);
  return { value: reader.varint(), end: reader.at };
}

/** Returns the bytes of a whole number that is not negative. */
export function wholeNumber(value: number): Uint8Array {
  const bytes: number[] = [];
  let left = 2 * value;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Uint8Array.from([...bytes, left]);
}

class Reader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes;
    this.at = start;
  }

  struct(): ThriftFields {
    const fields = new Map<number, ThriftField>();
    let id = 0;
    for (let head = this.#byte(); head !== 0; head = this.#byte()) {
      const [step, type] = [head >> 4, head & 15];
      id = step === 0 ? this.#whole() : id + step;
      const from = this.at;
      // A flag in a struct has no byte of its own.
      const value = type === TRUE || type === FALSE ? {} : this.#value(type);
      fields.set(id, { ...value, from, to: this.at });
    }
    return fields;
  }

  varint(): number {
    let [value, unit] = [0, 1];
    for (;;) {
      const byte = this.#byte();
      value += (byte & 127) * unit;
      if (byte < 128) return value;
      unit *= 128;
    }
  }

  #value(type: number): Pick<ThriftField, "number" | "fields"> {
    if (WHOLE.has(type)) return { number: this.#whole() };
    if (type === STRUCT) return { fields: this.struct() };
    if (type === LIST) {
      this.#list();
      return {};
    }
    const length = type === BINARY ? this.varint() : sizeOf(type);
    this.at += length;
    return {};
  }

  #list(): void {
    const head = this.#byte();
    const count = head >> 4 === 15 ? this.varint() : head >> 4;
    for (let index = 0; index < count; index++) this.#value(head & 15);
  }

  #whole(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  #byte(): number {
    const byte = this.#bytes[this.at];
    if (byte === undefined) throw new RangeError("the header of a page ends too early");
    this.at += 1;
    return byte;
  }
}

function sizeOf(type: number): number {
  if (type === DOUBLE) return 8;
  if (type === TRUE || type === FALSE || type === BYTE) return 1;
  throw new RangeError(`the header of a page has a field of type ${type}`);
}
