/**
 * The frames between a program in Python and the Node process that serves it, in little-endian:
 * `u32 headBytes, u32 buffers, u64 bytes of each buffer, head, buffers`. The head is JSON text, and
 * buffers are the memory of arrays and bytes.
 *
 * `python/src/rayling/wire/frames.py` is the other side.
 */
import { constants } from "node:buffer";

/** Bytes are no frame: they are not from the Python side, or are read from the wrong place. */
export class FrameError extends Error {
  override readonly name: string = "FrameError";
}

export interface Frame {
  readonly head: unknown;
  /** Each in memory of its own, so that any typed array can stand on it. */
  readonly buffers: readonly ArrayBuffer[];
}

const prefixBytes = 8;
const lengthBytes = 8;

/** @returns the parts in the order in which they are written; buffers are not copied */
export function encodeFrame(head: unknown, buffers: readonly Uint8Array[]): Uint8Array[] {
  const text = JSON.stringify(head);
  const headBytes = Buffer.byteLength(text);
  const start = prefixBytes + buffers.length * lengthBytes;
  const first = Buffer.allocUnsafe(start + headBytes);
  first.writeUInt32LE(headBytes, 0);
  first.writeUInt32LE(buffers.length, 4);
  for (const [index, buffer] of buffers.entries()) {
    first.writeBigUInt64LE(BigInt(buffer.byteLength), prefixBytes + index * lengthBytes);
  }
  first.write(text, start);
  return [first, ...buffers];
}

type Part =
  | { readonly name: "prefix" }
  | { readonly name: "lengths"; readonly headBytes: number }
  | { readonly name: "head"; readonly lengths: readonly number[] }
  | { readonly name: "buffer"; readonly head: unknown; readonly lengths: readonly number[] };

/**
 * Makes frames of the chunks of a stream. A buffer is copied once, from the chunk into the memory
 * that the value keeps.
 */
export class FrameReader {
  readonly #onFrame: (frame: Frame) => void;
  #part: Part = { name: "prefix" };
  /** Bytes of this part. */
  #wanted = prefixBytes;
  /** Memory of a part that does not stand whole in one chunk, or that a value keeps. */
  #memory: Uint8Array<ArrayBuffer> | undefined;
  #filled = 0;
  #buffers: ArrayBuffer[] = [];

  constructor(onFrame: (frame: Frame) => void) {
    this.#onFrame = onFrame;
  }

  /** @throws FrameError for what is no frame */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.byteLength || this.#wanted === 0) {
      if (this.#memory === undefined && chunk.byteLength - at >= this.#wanted) {
        const end = at + this.#wanted;
        const view = chunk.subarray(at, end);
        at = end;
        this.#complete(view);
        continue;
      }
      this.#memory ??= new Uint8Array(this.#wanted);
      const end = Math.min(chunk.byteLength, at + this.#wanted - this.#filled);
      this.#memory.set(chunk.subarray(at, end), this.#filled);
      this.#filled += end - at;
      at = end;
      if (this.#filled < this.#wanted) return;
      const whole = this.#memory;
      this.#memory = undefined;
      this.#filled = 0;
      this.#complete(Buffer.from(whole.buffer));
    }
  }

  #complete(bytes: Buffer): void {
    const part = this.#part;
    switch (part.name) {
      case "prefix": {
        const headBytes = bytes.readUInt32LE(0);
        const buffers = bytes.readUInt32LE(4);
        checkPrefix(headBytes, buffers);
        if (buffers === 0) return this.#next({ name: "head", lengths: [] }, headBytes);
        return this.#next({ name: "lengths", headBytes }, buffers * lengthBytes);
      }
      case "lengths": {
        const lengths = Array.from({ length: bytes.byteLength / lengthBytes }, (_, index) =>
          bufferBytes(bytes.readBigUInt64LE(index * lengthBytes)),
        );
        return this.#next({ name: "head", lengths }, part.headBytes);
      }
      case "head":
        return this.#nextBuffer(parsed(bytes), part.lengths);
      case "buffer":
        this.#buffers.push(ownMemory(bytes));
        return this.#nextBuffer(part.head, part.lengths);
    }
  }

  #nextBuffer(head: unknown, lengths: readonly number[]): void {
    const wanted = lengths[this.#buffers.length];
    if (wanted !== undefined) {
      this.#next({ name: "buffer", head, lengths }, wanted);
      return;
    }
    const buffers = this.#buffers;
    this.#buffers = [];
    this.#next({ name: "prefix" }, prefixBytes);
    this.#onFrame({ head, buffers });
  }

  #next(part: Part, wanted: number): void {
    this.#part = part;
    this.#wanted = wanted;
  }
}

/** A head names each of its buffers, and so has at least as many bytes. */
function checkPrefix(headBytes: number, buffers: number): void {
  if (headBytes === 0 || headBytes > constants.MAX_STRING_LENGTH) {
    throw new FrameError(`a frame with a head of ${headBytes} bytes`);
  }
  if (buffers > headBytes) {
    throw new FrameError(`a frame with ${buffers} buffers and a head of ${headBytes} bytes`);
  }
}

function bufferBytes(length: bigint): number {
  if (length > constants.MAX_LENGTH)
    throw new FrameError(`a frame with a buffer of ${length} bytes`);
  return Number(length);
}

function parsed(head: Buffer): unknown {
  try {
    return JSON.parse(head.toString());
  } catch (error) {
    throw new FrameError("a frame whose head is no JSON", { cause: error });
  }
}

/** A view of a chunk is copied; memory that was filled for this part is taken. */
function ownMemory(bytes: Buffer): ArrayBuffer {
  const { buffer, byteLength } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) return buffer;
  return Uint8Array.from(bytes).buffer;
}
