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
  /** Where it is not the plain one: one value, the method's own concurrency group. */
  readonly shape?: CallShape;
}

/** How a call is run and answered. */
export interface CallShape {
  readonly group?: string;
  /** How many values it returns; "streaming" for the items of a generator. */
  readonly returns?: number | "streaming";
  /** How many items of a stream may be made ahead of its consumer. */
  readonly ahead?: number;
  /** The call's own name; it is not kept for the next one. */
  readonly name?: string;
}

export type Message =
  | {
      readonly kind: "call";
      readonly id: number;
      /** Number of its first return value at the caller: with the caller's id, the task's id. */
      readonly sequence: number;
      readonly route: Route;
      readonly arguments: Encoded;
      /** Values of top-level ObjectRef arguments, for the slots inside `arguments`. */
      readonly dependencies: readonly Encoded[];
    }
  | { readonly kind: "result"; readonly id: number; readonly value: Encoded }
  /** Of a call that returns several values. */
  | { readonly kind: "results"; readonly id: number; readonly values: readonly Encoded[] }
  | { readonly kind: "failure"; readonly id: number; readonly error: Encoded }
  /** The actor ended before the call did: ask the directory what became of it. */
  | { readonly kind: "gone"; readonly id: number }
  /** The actor, or that life of it, is not here: the call never started. */
  | { readonly kind: "absent"; readonly id: number }
  /** The sender is about to end, and starts nothing more: calls that it has not answered have never begun. */
  | { readonly kind: "leaving" }
  /** The answer to a call that was cancelled. */
  | { readonly kind: "cancelled"; readonly id: number }
  /** One of a stream's; the stream ends with a result (how many there were) or a failure. */
  | {
      readonly kind: "item";
      readonly id: number;
      readonly index: number;
      readonly value: Encoded;
    }
  /** The consumer of a stream has taken so many of its items. */
  | { readonly kind: "consumed"; readonly id: number; readonly count: number }
  /** Asks to end a call early, and what it called if `recursive`. */
  | { readonly kind: "cancel"; readonly id: number; readonly recursive: boolean }
  /** A signal among the arguments of a call is aborted, the one of that number, for that reason. */
  | {
      readonly kind: "abort";
      readonly id: number;
      readonly index: number;
      readonly reason: Encoded;
    }
  /** Asks the owner for a value; answered by result or failure. Not `whole`, the result may be what stands for a value that is elsewhere. */
  | {
      readonly kind: "fetch";
      readonly id: number;
      readonly objectId: string;
      readonly whole: boolean;
    }
  /** The answer to a fetch, when its buffers are many bytes: the batch that it is, without them. They follow in parts, as they are wanted. */
  | {
      readonly kind: "parts";
      readonly id: number;
      readonly bytes: Uint8Array;
      /** In bytes, of each buffer. */
      readonly sizes: readonly number[];
    }
  /** So many more parts of that answer; none at all, ever, if `count` is 0. */
  | { readonly kind: "want"; readonly id: number; readonly count: number }
  /** The value of an object of the sender, unasked: its host is about to end. */
  | { readonly kind: "value"; readonly objectId: string; readonly value: Encoded }
  /** Asks the owner to cancel the call that makes an object of its. */
  | {
      readonly kind: "cancel-object";
      readonly objectId: string;
      readonly recursive: boolean;
      readonly force: boolean;
    }
  /** Changes how many references `holder` has to an object of the receiver. */
  | {
      readonly kind: "reference";
      readonly objectId: string;
      readonly holder: string;
      readonly change: number;
    };

const kinds = {
  route: 1,
  call: 2,
  result: 3,
  failure: 4,
  fetch: 5,
  reference: 6,
  results: 7,
  gone: 8,
  cancelled: 9,
  item: 10,
  consumed: 11,
  cancel: 12,
  cancelObject: 13,
  absent: 14,
  value: 15,
  leaving: 16,
  parts: 17,
  want: 18,
  abort: 19,
} as const;
const text = { encoder: new TextEncoder(), decoder: new TextDecoder() };
const noDependencies: readonly Encoded[] = [];
const headRoom = 64;
/** Beside the count of buffers: they are the user's own; the value is elsewhere. */
const liveBit = 2 ** 31;
const locatedBit = 2 ** 30;
/** The state of a signal. */
const signalBit = 2 ** 29;

function headCount({ buffers, isLive, isLocated, isSignal }: Encoded): number {
  if (isLive === true) return buffers.length + liveBit;
  if (isLocated === true) return buffers.length + locatedBit;
  return buffers.length + (isSignal === true ? signalBit : 0);
}

/** The count of a consumer that takes nothing any more, and whose producer is to run on: it need not wait. */
export const unlimitedItems: number = 0xffffffff;
/** The count of one that has left: the producer ends. */
export const noMoreItems: number = 0xfffffffe;

/** Far above what a session has: routes of all living actors and functions that one peer calls. */
const maxRoutes: number = 2 ** 20;

/** Of all routes that a peer names: their targets, methods and shapes. */
const maxRouteBytes: number = 256 * 1024 ** 2;

/** Of each of these; a task's says where its function is and what was given out for it. */
const maxNameBytes: number = 1024 ** 2;

/** Of an object or of who holds it: ids of runtimes, with a number or a word. */
const maxIdBytes = 1024;

/** A body is its size, its counts, and its bytes or where they are. */
const leastBodyBytes = 12;

const sizeBytes = 8;

/** Routes of calls with a name of their own use the first numbers again and again, so that names do not pile up on the other side. */
const namedRoutes = 256;

export interface Batch {
  readonly bytes: Uint8Array;
  readonly buffers: readonly SharedArrayBuffer[];
  /** A piece of an answer that comes in parts; then there is nothing else in it. */
  readonly part?: Part;
}

export interface Part {
  /** Of the fetch that it answers. */
  readonly id: number;
  /** What it says; where it arrives, the place that it was meant for. */
  readonly data: Uint8Array;
}

/** Gathers the messages of one turn. */
export class BatchWriter {
  #bytes: Uint8Array = new Uint8Array(16 * 1024);
  #view: DataView = new DataView(this.#bytes.buffer);
  #length = 0;
  #buffers: SharedArrayBuffer[] = [];
  /** Those of one value among them that has memory of the user's own. */
  #live: readonly SharedArrayBuffer[] | undefined;
  #routes: WeakMap<Route, number> = new WeakMap();
  #routeCount = namedRoutes;
  /** Numbers of routes that nobody can use any more: given to new ones, so that the other side does not keep every route there ever was. */
  readonly #freeRoutes: number[] = [];
  readonly #droppedRoutes: FinalizationRegistry<number> = new FinalizationRegistry((index) =>
    this.#freeRoutes.push(index),
  );
  readonly #named: Route[] = [];
  #nextNamed = 0;

  get length(): number {
    return this.#length;
  }

  /** The buffers of one value that has memory of the user's own in it, if what was written and not taken yet has such a one. */
  get live(): readonly SharedArrayBuffer[] | undefined {
    return this.#live;
  }

  /** Returns how many bytes the message took, in band and out. */
  write(message: Message): number {
    const before = this.#length;
    switch (message.kind) {
      case "call": {
        const route = this.#route(message.route);
        this.#head(kinds.call, message.id);
        this.#view.setFloat64(this.#length, message.sequence, true);
        this.#view.setUint32(this.#length + 8, route, true);
        this.#view.setUint32(this.#length + 12, message.dependencies.length, true);
        this.#length += 16;
        let outside = this.#body(message.arguments);
        for (const dependency of message.dependencies) outside += this.#body(dependency);
        return this.#length - before + outside;
      }
      case "result":
        this.#head(kinds.result, message.id);
        return this.#body(message.value) + this.#length - before;
      case "results": {
        this.#head(kinds.results, message.id);
        this.#uint32(message.values.length);
        let outside = 0;
        for (const value of message.values) outside += this.#body(value);
        return outside + this.#length - before;
      }
      case "item":
        this.#head(kinds.item, message.id);
        this.#uint32(message.index);
        return this.#body(message.value) + this.#length - before;
      case "gone":
      case "absent":
      case "cancelled":
        this.#head(kinds[message.kind], message.id);
        return this.#length - before;
      case "leaving":
        this.#head(kinds.leaving, 0);
        return this.#length - before;
      case "want":
        this.#head(kinds.want, message.id);
        this.#uint32(message.count);
        return this.#length - before;
      case "parts":
        this.#head(kinds.parts, message.id);
        this.#uint32(message.bytes.length);
        this.#room(message.bytes.length + message.sizes.length * sizeBytes + headRoom);
        this.#bytes.set(message.bytes, this.#length);
        this.#length += message.bytes.length;
        this.#uint32(message.sizes.length);
        for (const size of message.sizes) {
          this.#view.setFloat64(this.#length, size, true);
          this.#length += sizeBytes;
        }
        return this.#length - before;
      case "consumed":
        this.#head(kinds.consumed, message.id);
        this.#uint32(message.count);
        return this.#length - before;
      case "abort":
        this.#head(kinds.abort, message.id);
        this.#uint32(message.index);
        return this.#body(message.reason) + this.#length - before;
      case "cancel":
        this.#head(kinds.cancel, message.id);
        this.#uint32(message.recursive ? 1 : 0);
        return this.#length - before;
      case "failure":
        this.#head(kinds.failure, message.id);
        return this.#body(message.error) + this.#length - before;
      case "fetch":
        this.#head(kinds.fetch, message.id);
        this.#uint32(message.whole ? 1 : 0);
        this.#text(message.objectId);
        return this.#length - before;
      case "cancel-object":
        this.#head(kinds.cancelObject, (message.recursive ? 1 : 0) + (message.force ? 2 : 0));
        this.#text(message.objectId);
        return this.#length - before;
      case "value":
        this.#head(kinds.value, 0);
        this.#text(message.objectId);
        return this.#body(message.value) + this.#length - before;
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
    this.#live = undefined;
    return { bytes, buffers };
  }

  #route(route: Route): number {
    const known = this.#routes.get(route);
    if (known !== undefined && (known >= namedRoutes || this.#named[known] === route)) return known;
    const index = route.shape?.name === undefined ? this.#number(route) : this.#name(route);
    this.#routes.set(route, index);
    this.#head(kinds.route, index);
    this.#text(route.target);
    this.#text(route.method);
    this.#text(route.shape === undefined ? "" : JSON.stringify(route.shape));
    return index;
  }

  #number(route: Route): number {
    const index = this.#freeRoutes.pop() ?? this.#routeCount++;
    this.#droppedRoutes.register(route, index);
    return index;
  }

  #name(route: Route): number {
    const index = this.#nextNamed;
    this.#nextNamed = (index + 1) % namedRoutes;
    this.#named[index] = route;
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
    if (encoded.isLive === true) this.#live ??= encoded.buffers;
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

  #uint32(value: number): void {
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
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
  readonly #isAhead: boolean;
  readonly #maxRouteBytes: number;
  #routes: Route[] = [];
  readonly #routeSizes: number[] = [];
  #routeBytes = 0;

  /** @param isAhead it looks into batches that are still to be read in their turn: calls are passed over, for what they name may not be known yet */
  constructor(isAhead = false, routeBytes: number = maxRouteBytes) {
    this.#isAhead = isAhead;
    this.#maxRouteBytes = routeBytes;
  }

  /** @throws RaySystemError or RangeError on bytes that are not a batch */
  read(batch: Batch, onMessage: (message: Message) => void): void {
    const cursor = new Cursor(batch, this.#isAhead);
    while (!cursor.done) {
      const kind = cursor.uint8();
      const id = cursor.uint32();
      switch (kind) {
        case kinds.route:
          this.#named(id, cursor);
          break;
        case kinds.call: {
          const sequence = cursor.float64();
          const index = cursor.uint32();
          const route = this.#routes[index];
          if (route === undefined && !this.#isAhead)
            throw new RaySystemError(`call ${id} names an unknown route`);
          const count = cursor.uint32();
          const args = cursor.body();
          const dependencies = count === 0 ? noDependencies : cursor.bodies(count);
          if (route === undefined || this.#isAhead) break;
          onMessage({ kind: "call", id, sequence, route, arguments: args, dependencies });
          break;
        }
        case kinds.result:
          onMessage({ kind: "result", id, value: cursor.body() });
          break;
        case kinds.failure:
          onMessage({ kind: "failure", id, error: cursor.body() });
          break;
        case kinds.results:
          onMessage({ kind: "results", id, values: cursor.bodies(cursor.uint32()) });
          break;
        case kinds.item:
          onMessage({ kind: "item", id, index: cursor.uint32(), value: cursor.body() });
          break;
        case kinds.gone:
          onMessage({ kind: "gone", id });
          break;
        case kinds.absent:
          onMessage({ kind: "absent", id });
          break;
        case kinds.leaving:
          onMessage({ kind: "leaving" });
          break;
        case kinds.cancelled:
          onMessage({ kind: "cancelled", id });
          break;
        case kinds.consumed:
          onMessage({ kind: "consumed", id, count: cursor.uint32() });
          break;
        case kinds.abort:
          onMessage({ kind: "abort", id, index: cursor.uint32(), reason: cursor.body() });
          break;
        case kinds.want:
          onMessage({ kind: "want", id, count: cursor.uint32() });
          break;
        case kinds.parts:
          onMessage({ kind: "parts", id, bytes: cursor.bytes(), sizes: cursor.sizes() });
          break;
        case kinds.cancel:
          onMessage({ kind: "cancel", id, recursive: cursor.uint32() === 1 });
          break;
        case kinds.fetch:
          onMessage({
            kind: "fetch",
            id,
            whole: cursor.uint32() === 1,
            objectId: cursor.text(maxIdBytes),
          });
          break;
        case kinds.value:
          onMessage({ kind: "value", objectId: cursor.text(maxIdBytes), value: cursor.body() });
          break;
        case kinds.cancelObject:
          onMessage({
            kind: "cancel-object",
            objectId: cursor.text(maxIdBytes),
            recursive: (id & 1) === 1,
            force: (id & 2) === 2,
          });
          break;
        case kinds.reference: {
          const change = cursor.int32();
          onMessage({
            kind: "reference",
            change,
            objectId: cursor.text(maxIdBytes),
            holder: cursor.text(maxIdBytes),
          });
          break;
        }
        default:
          throw new RaySystemError(`unknown frame kind ${kind}`);
      }
    }
  }

  #named(id: number, cursor: Cursor): void {
    if (id >= maxRoutes) throw new RaySystemError(`route ${id} is over the limit`);
    const start = cursor.at;
    const route = readRoute(cursor);
    const size = cursor.at - start;
    this.#routeBytes += size - (this.#routeSizes[id] ?? 0);
    this.#routeSizes[id] = size;
    if (this.#routeBytes > this.#maxRouteBytes) {
      throw new RaySystemError(`routes of ${this.#routeBytes} bytes are over the limit`);
    }
    this.#routes[id] = route;
  }
}

function readRoute(cursor: Cursor): Route {
  const target = cursor.text(maxNameBytes);
  const method = cursor.text(maxNameBytes);
  const shape = cursor.text(maxNameBytes);
  return shape === "" ? { target, method } : { target, method, shape: shapeOf(JSON.parse(shape)) };
}

/** @throws RaySystemError for what is none */
function shapeOf(value: unknown): CallShape {
  const { group, returns, ahead, name } = (value ?? {}) as Record<keyof CallShape, unknown>;
  const isText = (one: unknown): boolean => one === undefined || typeof one === "string";
  const isCount = (one: unknown): boolean => one === undefined || Number.isSafeInteger(one);
  if (isText(group) && isText(name) && isCount(ahead) && (isCount(returns) || isText(returns))) {
    return value as CallShape;
  }
  throw new RaySystemError("a call of no known shape");
}

const noBuffers: readonly SharedArrayBuffer[] = [];

class Cursor {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #buffers: readonly SharedArrayBuffer[];
  readonly #isAhead: boolean;
  #at = 0;
  #nextBuffer = 0;

  constructor(batch: Batch, isAhead: boolean) {
    this.#isAhead = isAhead;
    this.#bytes = batch.bytes;
    this.#view = new DataView(batch.bytes.buffer, batch.bytes.byteOffset, batch.bytes.byteLength);
    this.#buffers = batch.buffers;
  }

  get at(): number {
    return this.#at;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  uint8(): number {
    return this.#view.getUint8(this.#at++);
  }

  float64(): number {
    const value = this.#view.getFloat64(this.#at, true);
    this.#at += 8;
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

  /** @throws RaySystemError for one that is longer */
  text(maxBytes: number): string {
    return text.decoder.decode(this.bytes(maxBytes));
  }

  bytes(maxBytes = Infinity): Uint8Array {
    const size = this.uint32();
    if (size > maxBytes) {
      throw new RaySystemError(`a name of ${size} bytes is over the limit of ${maxBytes}`);
    }
    const start = this.#at;
    this.#at += size;
    this.#checkEnd();
    return this.#bytes.subarray(start, this.#at);
  }

  /** Of memory to be taken. */
  sizes(): number[] {
    const count = this.uint32();
    if (count * sizeBytes > this.#bytes.length - this.#at) throw cutOff();
    return Array.from({ length: count }, () => {
      const size = this.float64();
      if (!Number.isSafeInteger(size) || size < 0) throw new RaySystemError(`${size} is no size`);
      return size;
    });
  }

  /** A count that the batch has no room for is not made a list of. */
  bodies(count: number): Encoded[] {
    if (count * leastBodyBytes > this.#bytes.length - this.#at) throw cutOff();
    return Array.from({ length: count }, () => this.body());
  }

  body(): Encoded {
    const size = this.uint32();
    const head = this.uint32();
    const isLive = head >= liveBit;
    const isLocated = !isLive && head >= locatedBit;
    const isSignal = !isLive && !isLocated && head >= signalBit;
    const bufferCount = isLive
      ? head - liveBit
      : isLocated
        ? head - locatedBit
        : isSignal
          ? head - signalBit
          : head;
    const referenceCount = this.uint32();
    let bytes = this.#bytes;
    let start = this.#at;
    if (size >= outOfBandBytes) {
      start = this.uint32();
      const memory = this.#buffer();
      if (start + size > memory.byteLength) throw cutOff();
      if (!this.#isAhead) adoptShared(memory);
      bytes = Buffer.from(memory);
    } else {
      this.#at += size;
      this.#checkEnd();
    }
    const buffers = bufferCount === 0 ? noBuffers : this.#takeBuffers(bufferCount);
    const end = start + size;
    if (isLocated)
      return { bytes, start, end, buffers, referenceCount, references: undefined, isLocated };
    if (isLive)
      return { bytes, start, end, buffers, referenceCount, references: undefined, isLive };
    if (this.#isAhead) return { bytes, start, end, buffers, referenceCount, references: undefined };
    for (let index = 0; index < bufferCount; index++) adoptShared(buffers[index]!);
    if (isSignal)
      return { bytes, start, end, buffers, referenceCount, references: undefined, isSignal };
    return { bytes, start, end, buffers, referenceCount, references: undefined };
  }

  /** What reaches beyond its batch would be read, and passed on, with what lies behind it. */
  #checkEnd(): void {
    if (this.#at > this.#bytes.length) throw cutOff();
  }

  #takeBuffers(count: number): SharedArrayBuffer[] {
    if (count > this.#buffers.length - this.#nextBuffer) throw missingBuffer();
    return Array.from({ length: count }, () => this.#buffer());
  }

  #buffer(): SharedArrayBuffer {
    const buffer = this.#buffers[this.#nextBuffer++];
    if (buffer === undefined) throw missingBuffer();
    return buffer;
  }
}

function cutOff(): RaySystemError {
  return new RaySystemError("a message that reaches beyond its batch");
}

function missingBuffer(): RaySystemError {
  return new RaySystemError("a buffer that a message names did not arrive");
}
