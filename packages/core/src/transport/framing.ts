/**
 * Batches as frames of a byte stream: a fixed head, the lengths of the buffers, the batch, and the
 * buffers as raw segments.
 *
 * The head has the length of the batch and the count of buffers, 4 bytes each, little endian; then
 * each buffer has 6 bytes of length. The highest bit of the count marks a control word between the
 * two ends of the connection, which has no buffers. The next bit marks a part of an answer: the
 * length is that of its data, which follows the 4-byte number of the fetch and is read into its
 * destination.
 *
 * A frame that lies whole in one chunk becomes a window of it, without a copy. Buffers go straight
 * into SharedArrayBuffers, as between threads. Lengths are checked before anything is allocated for
 * them, and memory is allocated only as bytes arrive.
 */
import type { Batch, Part } from "../protocol/message.ts";
import { RaySystemError } from "../shared/errors.ts";
import type { PlaceOfPart } from "./channel.ts";

export interface FrameLimits {
  readonly maxBatchBytes: number;
  readonly maxBuffers: number;
  /** The limit for all buffers of a frame together. */
  readonly maxBufferBytes: number;
}

/**
 * Limits for a trusted peer: far above a turn's output, and far below what would exhaust the
 * process unnoticed.
 */
export const peerLimits: FrameLimits = {
  maxBatchBytes: 1024 ** 3,
  maxBuffers: 1024 ** 2,
  maxBufferBytes: 64 * 1024 ** 3,
};

/** The output of a reader: a batch, or a control word between the two ends. */
export interface Frame extends Batch {
  readonly isWord?: boolean;
}

const headBytes = 8;
const wordBit = 2 ** 31;
const partBit = 2 ** 30;
const partIdBytes = 4;
/** The bytes that may be sent before other messages have their turn. */
export const maxPartBytes: number = 2 * 1024 * 1024;
/** Control words are short. */
const maxWordBytes = 64;
const lengthBytes = 6;
/** Up to this size the batch is copied behind its head: one write is cheaper than a list of two. */
const joinedBytes = 64 * 1024;
/**
 * Memory for a part that spans chunks grows in steps: it starts with at most `first` bytes and is
 * multiplied by `times` whenever it is full. A fifteenth of a big buffer is copied twice.
 * Allocating the announced length at once, which costs nothing until it is written, made systems
 * refuse to start processes.
 */
const growth = {
  bytes: { first: 64 * 1024, times: 2 },
  buffer: { first: 1024 * 1024, times: 16 },
} as const;
const noBuffers: readonly SharedArrayBuffer[] = [];
const noBytes: Uint8Array = new Uint8Array(0);

/**
 * Returns the pieces to write, in order; buffers are not copied.
 *
 * @throws RaySystemError for a frame that exceeds the peer's limits
 */
export function frameOf(batch: Batch, limits: FrameLimits = peerLimits): Uint8Array[] {
  const { bytes, buffers, part } = batch;
  if (part !== undefined) return partFrame(part);
  checkHead(bytes.length, buffers.length, limits);
  const size = headBytes + buffers.length * lengthBytes;
  const isJoined = bytes.length <= joinedBytes;
  const head = Buffer.allocUnsafe(isJoined ? size + bytes.length : size);
  head.writeUInt32LE(bytes.length, 0);
  head.writeUInt32LE(buffers.length, 4);
  let at = headBytes;
  let total = 0;
  for (const { byteLength } of buffers) {
    total += byteLength;
    at = head.writeUIntLE(byteLength, at, lengthBytes);
  }
  checkBuffers(total, limits);
  if (isJoined) head.set(bytes, size);
  const pieces: Uint8Array[] = isJoined ? [head] : [head, bytes];
  for (const buffer of buffers) if (buffer.byteLength > 0) pieces.push(new Uint8Array(buffer));
  return pieces;
}

function partFrame({ id, data }: Part): Uint8Array[] {
  const start = Buffer.allocUnsafe(headBytes + partIdBytes);
  start.writeUInt32LE(data.length, 0);
  start.writeUInt32LE(partBit, 4);
  start.writeUInt32LE(id, headBytes);
  return [start, data];
}

/** Returns the frame of a control word between the two ends. */
export function wordFrame(word: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(headBytes + word.length);
  frame.writeUInt32LE(word.length, 0);
  frame.writeUInt32LE(wordBit, 4);
  frame.set(word, headBytes);
  return frame;
}

/** A part whose chunk ended in the middle of it. */
interface Filling {
  readonly kind: keyof typeof growth;
  readonly size: number;
  target: Uint8Array;
  filled: number;
}

type Reading =
  | { readonly kind: "head" }
  | { readonly kind: "lengths"; readonly size: number; readonly count: number }
  | { readonly kind: "word" }
  | { readonly kind: "part-id"; readonly size: number }
  | { readonly kind: "part"; readonly id: number; readonly size: number }
  | { readonly kind: "batch"; readonly lengths: readonly number[] }
  | {
      readonly kind: "buffer";
      readonly batch: Uint8Array;
      readonly lengths: readonly number[];
      readonly buffers: SharedArrayBuffer[];
    };

const head: Reading = { kind: "head" };
const word: Reading = { kind: "word" };
const plainBatch: Reading = { kind: "batch", lengths: [] };

/** Takes chunks as they come and gives batches one at a time. */
export class FrameReader {
  limits: FrameLimits;
  placeOfPart: PlaceOfPart | undefined;
  #chunk: Uint8Array = new Uint8Array(0);
  #at = 0;
  #reading: Reading = head;
  /** The length of the part that is being read. */
  #expected = 0;
  #part: Filling | undefined;
  #frames = 0;

  constructor(limits: FrameLimits = peerLimits) {
    this.limits = limits;
  }

  /** The unread bytes of the current chunk, which must be used up before the next. */
  get unread(): number {
    return this.#chunk.length - this.#at;
  }

  /** The number of frames that have begun. */
  get frames(): number {
    return this.#frames;
  }

  /** Whether the stream may end here. */
  get isBetweenFrames(): boolean {
    return this.unread === 0 && this.#reading === head && this.#part === undefined;
  }

  /**
   * Returns the memory for the next bytes, if they have a single destination of at least `least`
   * bytes. A caller that has the bytes may write them there and then calls `filled`.
   */
  gap(least: number): Uint8Array | undefined {
    const part = this.#part;
    if (part === undefined || this.unread > 0) return undefined;
    const left = part.target.length - part.filled;
    return left < least ? undefined : part.target.subarray(part.filled);
  }

  filled(bytes: number): void {
    if (this.#part !== undefined) this.#part.filled += bytes;
  }

  push(chunk: Uint8Array): void {
    if (this.unread > 0) {
      this.#chunk = Buffer.concat([this.#chunk.subarray(this.#at), chunk]);
    } else {
      this.#chunk = chunk;
    }
    this.#at = 0;
  }

  /**
   * Returns the next whole batch, or undefined until more chunks come.
   *
   * @throws RaySystemError on a malformed frame
   */
  next(): Frame | undefined {
    for (;;) {
      const reading = this.#reading;
      switch (reading.kind) {
        case "head": {
          const whole = this.#wholeFrame();
          if (whole !== undefined) return whole;
          const bytes = this.#take(headBytes);
          if (bytes === undefined) return undefined;
          const size = uint32(bytes, 0);
          const count = uint32(bytes, 4);
          this.#frames += 1;
          if (count >= wordBit) {
            checkWord(size, count);
            this.#reading = word;
            this.#expected = size;
            break;
          }
          if (count === partBit) {
            checkPart(size);
            this.#reading = { kind: "part-id", size };
            this.#expected = partIdBytes;
            break;
          }
          checkHead(size, count, this.limits);
          this.#reading = count === 0 ? plainBatch : { kind: "lengths", size, count };
          this.#expected = count === 0 ? size : count * lengthBytes;
          break;
        }
        case "word": {
          const bytes = this.#take(this.#expected);
          if (bytes === undefined) return undefined;
          this.#reading = head;
          return { bytes, buffers: noBuffers, isWord: true };
        }
        case "part-id": {
          const bytes = this.#take(this.#expected);
          if (bytes === undefined) return undefined;
          const { size } = reading;
          const id = uint32(bytes, 0);
          const place = this.placeOfPart?.(id, size);
          if (place?.length !== size) throw new RaySystemError(`part of ${id} belongs to no fetch`);
          this.#reading = { kind: "part", id, size };
          this.#part = { kind: "buffer", size, target: place, filled: 0 };
          break;
        }
        case "part": {
          if (this.#part === undefined || !this.#fill(this.#part)) return undefined;
          const { target } = this.#part;
          this.#part = undefined;
          this.#reading = head;
          return { bytes: noBytes, buffers: noBuffers, part: { id: reading.id, data: target } };
        }
        case "lengths": {
          const bytes = this.#take(this.#expected);
          if (bytes === undefined) return undefined;
          const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
          const lengths = Array.from({ length: reading.count }, (_, index) =>
            view.readUIntLE(index * lengthBytes, lengthBytes),
          );
          checkBuffers(
            lengths.reduce((sum, length) => sum + length, 0),
            this.limits,
          );
          this.#reading = { kind: "batch", lengths };
          this.#expected = reading.size;
          break;
        }
        case "batch": {
          const bytes = this.#take(this.#expected);
          if (bytes === undefined) return undefined;
          const { lengths } = reading;
          if (lengths.length === 0) {
            this.#reading = head;
            return { bytes, buffers: noBuffers };
          }
          this.#reading = { kind: "buffer", batch: bytes, lengths, buffers: [] };
          break;
        }
        case "buffer": {
          const { batch, lengths, buffers } = reading;
          if (buffers.length === lengths.length) {
            this.#reading = head;
            return { bytes: batch, buffers };
          }
          this.#part ??= newPart("buffer", lengths[buffers.length] as number);
          if (!this.#fill(this.#part)) return undefined;
          buffers.push(this.#part.target.buffer as SharedArrayBuffer);
          this.#part = undefined;
          break;
        }
      }
    }
  }

  /** Reads the usual case: a frame without buffers that lies whole in the chunk. */
  #wholeFrame(): Batch | undefined {
    if (this.#part !== undefined || this.unread < headBytes) return undefined;
    const size = uint32(this.#chunk, this.#at);
    if (this.unread < headBytes + size || uint32(this.#chunk, this.#at + 4) > 0) return undefined;
    checkHead(size, 0, this.limits);
    const start = this.#at + headBytes;
    this.#at = start + size;
    return { bytes: this.#chunk.subarray(start, this.#at), buffers: noBuffers };
  }

  /**
   * Returns a window of the chunk if the part lies whole in it, else a copy that is filled chunk by
   * chunk.
   */
  #take(size: number): Uint8Array | undefined {
    if (this.#part === undefined) {
      if (this.unread >= size) {
        const bytes = this.#chunk.subarray(this.#at, this.#at + size);
        this.#at += size;
        return bytes;
      }
      if (this.unread === 0) return undefined;
      this.#part = newPart("bytes", size);
    }
    const part = this.#part;
    if (!this.#fill(part)) return undefined;
    this.#part = undefined;
    return part.target;
  }

  /** Returns whether the part is whole; if not, the chunk is used up. */
  #fill(part: Filling): boolean {
    for (;;) {
      const wanted = Math.min(part.target.length - part.filled, this.unread);
      part.target.set(this.#chunk.subarray(this.#at, this.#at + wanted), part.filled);
      part.filled += wanted;
      this.#at += wanted;
      if (part.filled === part.size) return true;
      if (this.unread === 0) return false;
      const target = memoryFor(part, growth[part.kind].times * part.target.length);
      target.set(part.target);
      part.target = target;
    }
  }
}

function newPart(kind: Filling["kind"], size: number): Filling {
  const { first, times } = growth[kind];
  let length = size;
  while (length > first) length = Math.ceil(length / times);
  return { kind, size, target: memoryFor({ kind, size }, length), filled: 0 };
}

function memoryFor({ kind, size }: Pick<Filling, "kind" | "size">, length: number): Uint8Array {
  const taken = Math.min(size, length);
  return kind === "bytes"
    ? Buffer.allocUnsafeSlow(taken)
    : new Uint8Array(new SharedArrayBuffer(taken));
}

function uint32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  );
}

function checkWord(size: number, count: number): void {
  if (count !== wordBit || size > maxWordBytes) {
    throw new RaySystemError(
      `invalid frame header: a control word of ${size} bytes with ${count - wordBit} buffers`,
    );
  }
}

function checkPart(size: number): void {
  if (size > 0 && size <= maxPartBytes) return;
  throw new RaySystemError(
    `invalid frame header: a part of ${size} bytes is empty or over the limit of ${maxPartBytes}`,
  );
}

function checkHead(size: number, count: number, limits: FrameLimits): void {
  if (size > limits.maxBatchBytes) {
    throw new RaySystemError(
      `a frame of ${size} bytes is over the limit of ${limits.maxBatchBytes}`,
    );
  }
  if (count > limits.maxBuffers) {
    throw new RaySystemError(
      `a frame with ${count} buffers is over the limit of ${limits.maxBuffers}`,
    );
  }
}

function checkBuffers(total: number, limits: FrameLimits): void {
  if (total > limits.maxBufferBytes) {
    throw new RaySystemError(
      `a frame with buffers of ${total} bytes is over the limit of ${limits.maxBufferBytes}`,
    );
  }
}
