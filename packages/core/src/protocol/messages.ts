/**
 * What two runtimes say to each other over a channel: the one union, and its layout in bytes.
 *
 * Many messages travel as one batch. A frame is a kind byte, fixed fields (little endian) and bodies; a body is the window of
 * an `Encoded`. Bodies of `outOfBandBytes` and more are not copied: they follow as shared buffers, in order.
 * A route (target and method) is named once per session and by number afterwards.
 */
import { assertNever, RaySystemError } from "../shared/errors.ts";
import type { Encoded } from "./codec.ts";
import { outOfBandBytes } from "./encodable.ts";
import { adoptShared } from "./shared-memory.ts";

/** Where a call goes: an actor and its method, or a task's function. Compared by identity on the sending side. */
export interface Route {
  readonly target: string;
  readonly method: string;
  /** `Class.method`, for messages to people; it does not travel. */
  readonly label?: string;
}

export type Message =
  | {
      readonly kind: "call";
      readonly id: number;
      readonly route: Route;
      readonly arguments: Encoded;
      /** Values of top-level ObjectRef arguments, for the slots inside `arguments`. */
      readonly dependencies: readonly Encoded[];
    }
  | { readonly kind: "result"; readonly id: number; readonly value: Encoded }
  | { readonly kind: "failure"; readonly id: number; readonly error: Encoded }
  /** Asks the owner for a value; answered by result or failure. */
  | { readonly kind: "fetch"; readonly id: number; readonly objectId: string }
  /** Changes how many references `holder` has to an object of the receiver. */
  | {
      readonly kind: "reference";
      readonly objectId: string;
      readonly holder: string;
      readonly change: number;
    };

const kinds = { route: 1, call: 2, result: 3, failure: 4, fetch: 5, reference: 6 } as const;
const text = { encoder: new TextEncoder(), decoder: new TextDecoder() };
const noDependencies: readonly Encoded[] = [];
const headRoom = 64;
/** Beside the count of buffers: they are the user's own. */
const liveBit = 2 ** 31;

function headCount({ buffers, isLive }: Encoded): number {
  return isLive === true ? buffers.length + liveBit : buffers.length;
}

export interface Batch {
  readonly bytes: Uint8Array;
  readonly buffers: readonly SharedArrayBuffer[];
}

/** Gathers the messages of one turn. */
export class BatchWriter {
  #bytes: Uint8Array = new Uint8Array(16 * 1024);
  #view: DataView = new DataView(this.#bytes.buffer);
  #length = 0;
  #buffers: SharedArrayBuffer[] = [];
  #routes: WeakMap<Route, number> = new WeakMap();
  #routeCount = 0;

  get length(): number {
    return this.#length;
  }

  /** Returns how many bytes the message took, in band and out. */
  write(message: Message): number {
    const before = this.#length;
    switch (message.kind) {
      case "call": {
        const route = this.#route(message.route);
        this.#head(kinds.call, message.id);
        this.#view.setUint32(this.#length, route, true);
        this.#view.setUint32(this.#length + 4, message.dependencies.length, true);
        this.#length += 8;
        let outside = this.#body(message.arguments);
        for (const dependency of message.dependencies) outside += this.#body(dependency);
        return this.#length - before + outside;
      }
      case "result":
        this.#head(kinds.result, message.id);
        return this.#body(message.value) + this.#length - before;
      case "failure":
        this.#head(kinds.failure, message.id);
        return this.#body(message.error) + this.#length - before;
      case "fetch":
        this.#head(kinds.fetch, message.id);
        this.#text(message.objectId);
        return this.#length - before;
      case "reference":
        this.#head(kinds.reference, 0);
        this.#view.setInt32(this.#length, message.change, true);
        this.#length += 4;
        this.#text(message.objectId);
        this.#text(message.holder);
        return this.#length - before;
      default:
        return assertNever(message);
    }
  }

  /** Takes what was written; the copy has the exact size, because posting a view posts its whole memory. */
  take(): Batch {
    const bytes = this.#bytes.slice(0, this.#length);
    const buffers = this.#buffers;
    this.#length = 0;
    if (buffers.length > 0) this.#buffers = [];
    return { bytes, buffers };
  }

  #route(route: Route): number {
    const known = this.#routes.get(route);
    if (known !== undefined) return known;
    const index = this.#routeCount++;
    this.#routes.set(route, index);
    this.#head(kinds.route, index);
    this.#text(route.target);
    this.#text(route.method);
    return index;
  }

  #head(kind: number, id: number): void {
    this.#room(headRoom);
    this.#bytes[this.#length] = kind;
    this.#view.setUint32(this.#length + 1, id, true);
    this.#length += 5;
  }

  #body(encoded: Encoded): number {
    const size = encoded.end - encoded.start;
    const shared = size >= outOfBandBytes && encoded.bytes.buffer instanceof SharedArrayBuffer;
    this.#room((shared ? 0 : size) + headRoom);
    const view = this.#view;
    view.setUint32(this.#length, size, true);
    view.setUint32(this.#length + 4, headCount(encoded), true);
    view.setUint32(this.#length + 8, encoded.referenceCount, true);
    this.#length += 12;
    let outside = 0;
    if (shared) {
      const memory = encoded.bytes.buffer;
      view.setUint32(this.#length, encoded.bytes.byteOffset + encoded.start, true);
      this.#length += 4;
      this.#buffers.push(memory);
      outside += size;
    } else if (size < 48) {
      // A loop beats subarray + set on small bodies.
      const { bytes, start } = encoded;
      const at = this.#length;
      for (let index = 0; index < size; index++)
        this.#bytes[at + index] = bytes[start + index] as number;
      this.#length += size;
    } else {
      this.#bytes.set(encoded.bytes.subarray(encoded.start, encoded.end), this.#length);
      this.#length += size;
    }
    for (const buffer of encoded.buffers) {
      this.#buffers.push(buffer);
      outside += buffer.byteLength;
    }
    return outside;
  }

  #text(value: string): void {
    const bytes = text.encoder.encode(value);
    this.#room(bytes.length + headRoom);
    this.#view.setUint32(this.#length, bytes.length, true);
    this.#bytes.set(bytes, this.#length + 4);
    this.#length += 4 + bytes.length;
  }

  #room(size: number): void {
    const needed = this.#length + size;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** Reads batches of one channel, in order: it remembers the routes that were named. */
export class BatchReader {
  #routes: Route[] = [];

  /** @throws RaySystemError or RangeError on bytes that are not a batch */
  read(batch: Batch, onMessage: (message: Message) => void): void {
    const cursor = new Cursor(batch);
    while (!cursor.done) {
      const kind = cursor.uint8();
      const id = cursor.uint32();
      switch (kind) {
        case kinds.route:
          this.#routes[id] = { target: cursor.text(), method: cursor.text() };
          break;
        case kinds.call: {
          const index = cursor.uint32();
          const route = this.#routes[index];
          if (route === undefined) throw new RaySystemError(`call ${id} names an unknown route`);
          const count = cursor.uint32();
          const args = cursor.body();
          const dependencies =
            count === 0 ? noDependencies : Array.from({ length: count }, () => cursor.body());
          onMessage({ kind: "call", id, route, arguments: args, dependencies });
          break;
        }
        case kinds.result:
          onMessage({ kind: "result", id, value: cursor.body() });
          break;
        case kinds.failure:
          onMessage({ kind: "failure", id, error: cursor.body() });
          break;
        case kinds.fetch:
          onMessage({ kind: "fetch", id, objectId: cursor.text() });
          break;
        case kinds.reference: {
          const change = cursor.int32();
          onMessage({ kind: "reference", change, objectId: cursor.text(), holder: cursor.text() });
          break;
        }
        default:
          throw new RaySystemError(`unknown frame kind ${kind}`);
      }
    }
  }
}

const noBuffers: readonly SharedArrayBuffer[] = [];

class Cursor {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #buffers: readonly SharedArrayBuffer[];
  #at = 0;
  #nextBuffer = 0;

  constructor(batch: Batch) {
    this.#bytes = batch.bytes;
    this.#view = new DataView(batch.bytes.buffer, batch.bytes.byteOffset, batch.bytes.byteLength);
    this.#buffers = batch.buffers;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  uint8(): number {
    return this.#view.getUint8(this.#at++);
  }

  uint16(): number {
    const value = this.#view.getUint16(this.#at, true);
    this.#at += 2;
    return value;
  }

  uint32(): number {
    const value = this.#view.getUint32(this.#at, true);
    this.#at += 4;
    return value;
  }

  int32(): number {
    const value = this.#view.getInt32(this.#at, true);
    this.#at += 4;
    return value;
  }

  text(): string {
    const size = this.uint32();
    const value = text.decoder.decode(this.#bytes.subarray(this.#at, this.#at + size));
    this.#at += size;
    return value;
  }

  body(): Encoded {
    const size = this.uint32();
    const countAndLive = this.uint32();
    const isLive = countAndLive >= liveBit;
    const bufferCount = isLive ? countAndLive - liveBit : countAndLive;
    const referenceCount = this.uint32();
    let bytes = this.#bytes;
    let start = this.#at;
    if (size >= outOfBandBytes) {
      start = this.uint32();
      const memory = this.#buffer();
      adoptShared(memory);
      bytes = Buffer.from(memory);
    } else {
      this.#at += size;
    }
    const buffers =
      bufferCount === 0 ? noBuffers : Array.from({ length: bufferCount }, () => this.#buffer());
    const end = start + size;
    if (isLive)
      return { bytes, start, end, buffers, referenceCount, references: undefined, isLive };
    for (let index = 0; index < bufferCount; index++) adoptShared(buffers[index]!);
    return { bytes, start, end, buffers, referenceCount, references: undefined };
  }

  #buffer(): SharedArrayBuffer {
    const buffer = this.#buffers[this.#nextBuffer++];
    if (buffer === undefined)
      throw new RaySystemError("a buffer that a message names did not arrive");
    return buffer;
  }
}
