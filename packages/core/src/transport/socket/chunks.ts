/**
 * A byte stream that comes in chunks, read in pieces of a known size.
 *
 * A piece that lies whole in one chunk becomes a window of it, without a copy. Memory for a piece
 * that spans chunks is allocated only as bytes arrive.
 */
import { RaySystemError } from "../../shared/errors.ts";

/**
 * Memory for a piece that spans chunks grows in steps: it starts with at most `first` bytes and is
 * multiplied by `times` whenever it is full. A fifteenth of a big buffer is copied twice.
 * Allocating the announced length at once, which costs nothing until it is written, made systems
 * refuse to start processes.
 */
const growth = {
  bytes: { first: 64 * 1024, times: 2 },
  buffer: { first: 1024 * 1024, times: 16 },
} as const;

/** A piece whose chunk ended in the middle of it. */
interface Filling {
  readonly kind: keyof typeof growth;
  readonly size: number;
  target: Uint8Array;
  filled: number;
}

/** The unread bytes of a stream: the current chunk, and the piece that was begun. */
export class Chunks {
  #chunk: Uint8Array = new Uint8Array(0);
  #at = 0;
  #filling: Filling | undefined;

  /** The unread bytes of the current chunk, which must be used up before the next. */
  get unread(): number {
    return this.#chunk.length - this.#at;
  }

  /** Whether a piece was begun that is not whole yet. */
  get hasBegun(): boolean {
    return this.#filling !== undefined;
  }

  push(chunk: Uint8Array): void {
    if (this.unread > 0) {
      this.#chunk = Buffer.concat([this.#chunk.subarray(this.#at), chunk]);
    } else {
      this.#chunk = chunk;
    }
    this.#at = 0;
  }

  /** Returns the number, 4 bytes little endian, that many bytes ahead in the chunk. */
  uint32(ahead: number): number {
    return uint32(this.#chunk, this.#at + ahead);
  }

  /** Returns a window of unread bytes that lie whole in the chunk, after `skipped` other ones. */
  window(skipped: number, size: number): Uint8Array {
    const start = this.#at + skipped;
    this.#at = start + size;
    return this.#chunk.subarray(start, this.#at);
  }

  /**
   * Returns the next bytes as a window of the chunk if they lie whole in it, else as a copy that is
   * filled chunk by chunk; undefined until they are there.
   */
  take(size: number): Uint8Array | undefined {
    if (this.#filling === undefined) {
      if (this.unread >= size) return this.window(0, size);
      if (this.unread === 0) return undefined;
    }
    return this.#whole((this.#filling ??= newFilling("bytes", size)));
  }

  /** Returns the next bytes in shared memory of their own, or undefined until they are there. */
  takeShared(size: number): SharedArrayBuffer | undefined {
    const memory = this.#whole((this.#filling ??= newFilling("buffer", size)))?.buffer;
    if (memory === undefined || memory instanceof SharedArrayBuffer) return memory;
    throw new RaySystemError("internal: a buffer was read into memory that is not shared");
  }

  /** Reads the next bytes into all of that memory. Returns whether they are there. */
  takeInto(target: Uint8Array): boolean {
    this.#filling ??= { kind: "buffer", size: target.length, target, filled: 0 };
    return this.#whole(this.#filling) !== undefined;
  }

  /**
   * Returns the memory for the next bytes, if they have a single destination of at least `least`
   * bytes. A caller that has the bytes may write them there and then calls `filled`.
   */
  gap(least: number): Uint8Array | undefined {
    const filling = this.#filling;
    if (filling === undefined || this.unread > 0) return undefined;
    const left = filling.target.length - filling.filled;
    return left < least ? undefined : filling.target.subarray(filling.filled);
  }

  filled(bytes: number): void {
    if (this.#filling !== undefined) this.#filling.filled += bytes;
  }

  /** Returns the piece when it is whole; if it is not, the chunk is used up. */
  #whole(filling: Filling): Uint8Array | undefined {
    for (;;) {
      const wanted = Math.min(filling.target.length - filling.filled, this.unread);
      filling.target.set(this.#chunk.subarray(this.#at, this.#at + wanted), filling.filled);
      filling.filled += wanted;
      this.#at += wanted;
      if (filling.filled === filling.size) {
        this.#filling = undefined;
        return filling.target;
      }
      if (this.unread === 0) return undefined;
      const target = memoryFor(filling, growth[filling.kind].times * filling.target.length);
      target.set(filling.target);
      filling.target = target;
    }
  }
}

function newFilling(kind: Filling["kind"], size: number): Filling {
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

/** Returns the number at that place: 4 bytes, little endian. */
export function uint32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] ?? 0) |
      ((bytes[at + 1] ?? 0) << 8) |
      ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24)) >>>
    0
  );
}
