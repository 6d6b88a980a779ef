/**
 * A ring of bytes in memory that two threads share: one writes batches, the other reads them.
 *
 * It replaces the MessagePort, where each message costs a structured clone and a system call that
 * wakes the reader's event loop: a reader that looks needs no message at all, and another one needs
 * one until it has looked. Every entry has the number of its batch among all of the channel, which
 * puts it in order with batches that come by the port.
 *
 * Both sides only wait for memory, never for each other: a side whose thread ends in the middle
 * leaves an entry that nobody sees.
 */

/**
 * Int32 slots before the entries: bytes ever written and ever read (both wrap around), whether the
 * reader looks by itself, and whether it was woken.
 */
const writtenSlot = 0;
const readSlot = 1;
const lookingSlot = 2;
const wokenSlot = 3;
const stateBytes = 16;

/** Numbers that both sides may change (`Channel.sentClaims`). */
const claimCount = 1024;
const entriesAt: number = stateBytes + 4 * claimCount;

/** Bytes for entries, a power of two. */
const capacity = 1 << 14;

/** An entry: the length of its bytes, the number of its batch, the bytes; in steps of 8 bytes. */
const headerBytes = 8;

/** In place of a length: the next entry is at the start of the ring. */
const atStart = -1;

/** Bytes of the longest batch that is written: copying a longer one costs more than the port. */
const mostBytes = 1024;

export class SharedRing {
  /** The memory, of which the other side makes its own ring. */
  readonly buffer: SharedArrayBuffer;
  readonly claims: Int32Array;
  readonly #state: Int32Array;
  readonly #headers: Int32Array;
  readonly #bytes: Uint8Array;
  /** Bytes ever written, at the writer, or ever read, at the reader; wraps around. */
  #count = 0;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(entriesAt + capacity)) {
    this.buffer = buffer;
    this.#state = new Int32Array(buffer, 0, stateBytes / 4);
    this.claims = new Int32Array(buffer, stateBytes, claimCount);
    this.#headers = new Int32Array(buffer, entriesAt);
    this.#bytes = new Uint8Array(buffer, entriesAt);
  }

  /** For the writer: whether the reader will read without a message by the port. */
  get isLooking(): boolean {
    return Atomics.load(this.#state, lookingSlot) === 1;
  }

  /** For the reader. After it stopped it must read once more: the writer may have seen it look. */
  setLooking(isLooking: boolean): void {
    Atomics.store(this.#state, lookingSlot, isLooking ? 1 : 0);
  }

  /** For the writer, after it wrote. Returns whether it has to wake the reader now. */
  wakes(): boolean {
    return !this.isLooking && Atomics.exchange(this.#state, wokenSlot, 1) === 0;
  }

  /** For the reader, before it reads because it was woken. */
  wasWoken(): void {
    Atomics.store(this.#state, wokenSlot, 0);
  }

  /** @returns false, with nothing written, for a batch that is long or has no room */
  write(number: number, bytes: Uint8Array): boolean {
    const size = bytes.byteLength;
    if (size > mostBytes) return false;
    const offset = this.#count & (capacity - 1);
    const whole = wholeOf(size);
    const skipped = offset + whole > capacity ? capacity - offset : 0;
    const used = (this.#count - Atomics.load(this.#state, readSlot)) | 0;
    if (used + skipped + whole > capacity) return false;
    if (skipped > 0) this.#headers[offset >> 2] = atStart;
    const start = skipped > 0 ? 0 : offset;
    this.#headers[start >> 2] = size;
    this.#headers[(start >> 2) + 1] = number;
    this.#bytes.set(bytes, start + headerBytes);
    this.#count = (this.#count + skipped + whole) | 0;
    Atomics.store(this.#state, writtenSlot, this.#count);
    return true;
  }

  /** Returns the bytes of the next entry, if that is the batch of this number. */
  read(number: number): Uint8Array | undefined {
    if (Atomics.load(this.#state, writtenSlot) === this.#count) return undefined;
    const offset = this.#count & (capacity - 1);
    const skipped = this.#headers[offset >> 2] === atStart ? capacity - offset : 0;
    const start = skipped > 0 ? 0 : offset;
    if (this.#headers[(start >> 2) + 1] !== number) return undefined;
    const size = this.#headers[start >> 2] ?? 0;
    const bytes = this.#bytes.slice(start + headerBytes, start + headerBytes + size);
    this.#count = (this.#count + skipped + wholeOf(size)) | 0;
    Atomics.store(this.#state, readSlot, this.#count);
    return bytes;
  }
}

/** Bytes of an entry. */
function wholeOf(size: number): number {
  return headerBytes + ((size + 7) & ~7);
}
