/**
 * Finds the depth of a packed value by walking its bytes before they are unpacked. Unpacking
 * recurses, and a stack overflow could interrupt any code.
 *
 * The walk knows msgpack and msgpackr's additions: records (their keys once, then one byte for each
 * further record of that shape) and extensions that are followed by one value. It builds nothing
 * and checks nothing else; unpacking refuses malformed values.
 */
import { RaySystemError } from "../../shared/errors.ts";
import { maxDepth } from "./encodable.ts";

/**
 * The limit for nested containers: five for each level that may be sent (`maxDepth` of
 * encodable.ts), more than an instance of a registered class takes.
 */
export const maxPackedDepth: number = 5 * maxDepth;

/**
 * msgpackr numbers a shared object where it comes first, and refers to it by a pointer afterwards.
 */
const numbered = 0x69;
const pointer = 0x70;
/**
 * Extensions whose payload is followed by one value: numbered objects, sets, errors, expressions,
 * and the runtime's own (special.ts, transport/endpoint.ts).
 */
const followed: ReadonlySet<number> = new Set([numbered, 0x73, 0x65, 0x78, 0x52, 0x53]);
const record = 0x72;
/** The runtime packs no bundled strings and no records with two-byte numbers. */
const bundle = 0x62;

/** The number of bytes that follow a token without further structure: numbers, short texts, nil. */
const more = 255;
const payload: Uint8Array = Uint8Array.from({ length: 256 }, (_, token) => {
  if (token >= 0xca && token <= 0xd3) return [4, 8, 1, 2, 4, 8, 1, 2, 4, 8][token - 0xca] ?? more;
  if (token >= 0xa0 && token < 0xc0) return token & 0x1f;
  return token < 0x40 || token >= 0xe0 || (token >= 0xc0 && token < 0xc4) ? 0 : more;
});

/** @throws RaySystemError when it is nested deeper than `maxPackedDepth` */
export function checkDepth(bytes: Uint8Array, start: number, end: number): void {
  // Each level takes at least a byte.
  if (end - start > maxPackedDepth) new Walk(bytes, start, Math.min(end, bytes.length)).walk();
}

class Walk {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #end: number;
  #at: number;
  /** The values that are still to come in the innermost open container. */
  #left = 1;
  /** The values that are still to come in the enclosing containers. */
  readonly #outer: number[] = [];
  /** The number of keys of each named record. */
  readonly #shapes: number[] = [];
  /** The number of keys of each numbered key list. */
  readonly #keyCounts: Map<number, number> = new Map();

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = end;
  }

  /** Walks to the end, or to the place where unpacking will find that something is missing. */
  walk(): void {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = this.#at;
    let left = this.#left;
    while (at < end) {
      while (left === 0) {
        const outer = this.#outer.pop();
        if (outer === undefined) return;
        left = outer;
      }
      left -= 1;
      const token = bytes[at++] ?? 0;
      const size = payload[token] ?? more;
      if (size !== more) {
        at += size;
        continue;
      }
      this.#at = at;
      this.#left = left;
      this.#open(token);
      at = this.#at;
      left = this.#left;
    }
  }

  #open(token: number): void {
    if (token < 0x80) this.#enter(this.#shapes[token & 0x3f] ?? 0);
    else if (token < 0x90) this.#enter(2 * (token & 0x0f));
    else if (token < 0xa0) this.#enter(token & 0x0f);
    else this.#long(token);
  }

  #enter(count: number): void {
    if (count === 0) return;
    this.#outer.push(this.#left);
    this.#left = count;
    if (this.#outer.length > maxPackedDepth) {
      throw new RaySystemError(`a value is nested deeper than ${maxPackedDepth} containers`);
    }
  }

  #long(token: number): void {
    switch (token) {
      case 0xc4:
      case 0xd9:
        return this.#skip(this.#length(1));
      case 0xc5:
      case 0xda:
        return this.#skip(this.#length(2));
      case 0xc6:
      case 0xdb:
        return this.#skip(this.#length(4));
      case 0xc7:
        return this.#extension(this.#length(1));
      case 0xc8:
        return this.#extension(this.#length(2));
      case 0xc9:
        return this.#extension(this.#length(4));
      case 0xdc:
        return this.#enter(this.#length(2));
      case 0xdd:
        return this.#enter(this.#length(4));
      case 0xde:
        return this.#enter(2 * this.#length(2));
      case 0xdf:
        return this.#enter(2 * this.#length(4));
      default:
        if (token >= 0xd4 && token <= 0xd8) this.#extension(2 ** (token - 0xd4));
    }
  }

  #extension(size: number): void {
    const type = this.#length(1);
    if (type === bundle || (type === record && size > 1)) {
      throw new RaySystemError("malformed value from peer: its packing is not supported");
    }
    if (type === record) return this.#record(this.#length(1) & 0x3f);
    this.#skip(size);
    // Another value takes that number.
    if (type === numbered && this.#keyCounts.size > 0 && this.#at <= this.#end) {
      this.#keyCounts.delete(this.#view.getUint32(this.#at - 4));
    }
    if (followed.has(type)) this.#enter(1);
  }

  /** Reads a record: its keys, and then a value for each. */
  #record(id: number): void {
    const count = this.#keys();
    this.#shapes[id] = count;
    this.#enter(count);
  }

  /** Reads a list of keys. The list may have a number, which names it when the shape returns. */
  #keys(): number {
    let token = this.#length(1);
    let list: number | undefined;
    if (token === 0xd6) {
      const type = this.#length(1);
      list = this.#length(4);
      const known = this.#keyCounts.get(list);
      if (type === pointer && known !== undefined) return known;
      if (type !== numbered) throw noKeys();
      token = this.#length(1);
    }
    let count: number;
    if (token >= 0x90 && token < 0xa0) count = token & 0x0f;
    else if (token === 0xdc) count = this.#length(2);
    else if (token === 0xdd) count = this.#length(4);
    else throw noKeys();
    if (list !== undefined) this.#keyCounts.set(list, count);
    for (let index = 0; index < count && this.#at < this.#end; index++) {
      const key = this.#length(1);
      if (key >= 0xa0 && key < 0xc0) this.#skip(key & 0x1f);
      else if (key >= 0xd9 && key <= 0xdb) this.#long(key);
      else throw noKeys();
    }
    return count;
  }

  #skip(size: number): void {
    this.#at += size;
  }

  /** Returns 0 beyond the end, where the walk stops. */
  #length(size: 1 | 2 | 4): number {
    const at = this.#at;
    this.#at += size;
    if (this.#at > this.#end) return 0;
    return size === 1
      ? (this.#bytes[at] ?? 0)
      : size === 2
        ? this.#view.getUint16(at)
        : this.#view.getUint32(at);
  }
}

function noKeys(): RaySystemError {
  return new RaySystemError("malformed value from peer: the keys of a record are not texts");
}
