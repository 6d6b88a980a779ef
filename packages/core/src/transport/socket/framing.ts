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
 * them.
 */
import type { Batch, Part } from "../../protocol/message.ts";
import { assertNever, RaySystemError } from "../../shared/errors.ts";
import type { PlaceOfPart } from "../channel.ts";
import { Chunks, uint32 } from "./chunks.ts";

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

type Reading =
  | { readonly kind: "head" }
  | { readonly kind: "word"; readonly size: number }
  | { readonly kind: "part-id"; readonly size: number }
  | { readonly kind: "part"; readonly id: number; readonly data: Uint8Array }
  | { readonly kind: "lengths"; readonly size: number; readonly count: number }
  | { readonly kind: "batch"; readonly size: number; readonly lengths: readonly number[] }
  | {
      readonly kind: "buffers";
      readonly bytes: Uint8Array;
      readonly lengths: readonly number[];
      readonly buffers: SharedArrayBuffer[];
    };

const head: Reading = { kind: "head" };
const noLengths: readonly number[] = [];

/** The answer of a step after which there is more to read in what has come. */
const goesOn: unique symbol = Symbol("goes on");

/** A frame, or `goesOn`, or undefined until more chunks come. */
type Step = Frame | typeof goesOn | undefined;

/** Takes chunks as they come and gives batches one at a time. */
export class FrameReader {
  limits: FrameLimits;
  placeOfPart: PlaceOfPart | undefined;
  readonly #chunks: Chunks = new Chunks();
  #reading: Reading = head;
  #frames = 0;

  constructor(limits: FrameLimits = peerLimits) {
    this.limits = limits;
  }

  /** The number of frames that have begun. */
  get frames(): number {
    return this.#frames;
  }

  /** Whether the stream may end here. */
  get isBetweenFrames(): boolean {
    return this.#reading === head && this.#chunks.unread === 0 && !this.#chunks.hasBegun;
  }

  /** Returns the memory for the next bytes, as `Chunks.gap` does. */
  gap(least: number): Uint8Array | undefined {
    return this.#chunks.gap(least);
  }

  filled(bytes: number): void {
    this.#chunks.filled(bytes);
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
  }

  /**
   * Returns the next whole batch, or undefined until more chunks come.
   *
   * @throws RaySystemError on a malformed frame
   */
  next(): Frame | undefined {
    for (;;) {
      const step = this.#step(this.#reading);
      if (step !== goesOn) return step;
    }
  }

  #step(reading: Reading): Step {
    switch (reading.kind) {
      case "head":
        return this.#wholeFrame() ?? this.#readHead();
      case "word":
        return this.#readWord(reading.size);
      case "part-id":
        return this.#readPartId(reading.size);
      case "part":
        return this.#readPart(reading.id, reading.data);
      case "lengths":
        return this.#readLengths(reading.size, reading.count);
      case "batch":
        return this.#readBatch(reading.size, reading.lengths);
      case "buffers":
        return this.#readBuffer(reading.bytes, reading.lengths, reading.buffers);
      default:
        return assertNever(reading);
    }
  }

  /** Reads the usual case: a frame without buffers that lies whole in the chunk. */
  #wholeFrame(): Batch | undefined {
    const chunks = this.#chunks;
    if (chunks.hasBegun || chunks.unread < headBytes) return undefined;
    const size = chunks.uint32(0);
    if (chunks.unread < headBytes + size || chunks.uint32(4) > 0) return undefined;
    checkHead(size, 0, this.limits);
    return { bytes: chunks.window(headBytes, size), buffers: noBuffers };
  }

  #readHead(): Step {
    const bytes = this.#chunks.take(headBytes);
    if (bytes === undefined) return undefined;
    const size = uint32(bytes, 0);
    const count = uint32(bytes, 4);
    this.#frames += 1;
    if (count >= wordBit) {
      checkWord(size, count);
      this.#reading = { kind: "word", size };
    } else if (count === partBit) {
      checkPart(size);
      this.#reading = { kind: "part-id", size };
    } else {
      checkHead(size, count, this.limits);
      this.#reading =
        count === 0
          ? { kind: "batch", size, lengths: noLengths }
          : { kind: "lengths", size, count };
    }
    return goesOn;
  }

  #readWord(size: number): Step {
    const bytes = this.#chunks.take(size);
    if (bytes === undefined) return undefined;
    this.#reading = head;
    return { bytes, buffers: noBuffers, isWord: true };
  }

  #readPartId(size: number): Step {
    const bytes = this.#chunks.take(partIdBytes);
    if (bytes === undefined) return undefined;
    const id = uint32(bytes, 0);
    const data = this.placeOfPart?.(id, size);
    if (data?.length !== size) throw new RaySystemError(`part of ${id} belongs to no fetch`);
    this.#reading = { kind: "part", id, data };
    return goesOn;
  }

  #readPart(id: number, data: Uint8Array): Step {
    if (!this.#chunks.takeInto(data)) return undefined;
    this.#reading = head;
    return { bytes: noBytes, buffers: noBuffers, part: { id, data } };
  }

  #readLengths(size: number, count: number): Step {
    const bytes = this.#chunks.take(count * lengthBytes);
    if (bytes === undefined) return undefined;
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const lengths = Array.from({ length: count }, (_, index) =>
      view.readUIntLE(index * lengthBytes, lengthBytes),
    );
    checkBuffers(
      lengths.reduce((sum, length) => sum + length, 0),
      this.limits,
    );
    this.#reading = { kind: "batch", size, lengths };
    return goesOn;
  }

  #readBatch(size: number, lengths: readonly number[]): Step {
    const bytes = this.#chunks.take(size);
    if (bytes === undefined) return undefined;
    if (lengths.length === 0) {
      this.#reading = head;
      return { bytes, buffers: noBuffers };
    }
    this.#reading = { kind: "buffers", bytes, lengths, buffers: [] };
    return goesOn;
  }

  /** Reads the next of the buffers; the frame ends with the last one. */
  #readBuffer(bytes: Uint8Array, lengths: readonly number[], buffers: SharedArrayBuffer[]): Step {
    const length = lengths[buffers.length];
    if (length === undefined) {
      this.#reading = head;
      return { bytes, buffers };
    }
    const buffer = this.#chunks.takeShared(length);
    if (buffer === undefined) return undefined;
    buffers.push(buffer);
    return goesOn;
  }
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
