/**
 * Reads the bytes of a batch and validates each of them.
 */
import { RaySystemError } from "../../shared/errors.ts";
import type { Encoded } from "../codec.ts";
import { outOfBandBytes } from "../values/encodable.ts";
import type { Batch } from "../message.ts";
import { adoptShared } from "../shared-memory.ts";
import { leastBodyBytes, liveBit, locatedBit, signalBit, sizeBytes, traceBit } from "./layout.ts";

const decoder = new TextDecoder();
const noBuffers: readonly SharedArrayBuffer[] = [];

/** Bodies that are marked, the highest bit first: a higher bit counts. */
const marks = [
  { bit: liveBit, fact: { isLive: true }, isElsewhere: true },
  { bit: locatedBit, fact: { isLocated: true }, isElsewhere: true },
  { bit: signalBit, fact: { isSignal: true }, isElsewhere: false },
  { bit: traceBit, fact: { isTrace: true }, isElsewhere: false },
] as const;

const float: DataView = new DataView(new ArrayBuffer(8));
const floatBytes: Uint8Array = new Uint8Array(float.buffer);

/**
 * Reads one batch from its first byte to its last, without a DataView of it: V8 keeps up to 64
 * bytes inside the array, and a view of them would move them out (measured: half a microsecond).
 */
export class Cursor {
  readonly #bytes: Uint8Array;
  readonly #buffers: readonly SharedArrayBuffer[];
  readonly #isAhead: boolean;
  #at = 0;
  #nextBuffer = 0;

  constructor(batch: Batch, isAhead: boolean) {
    this.#isAhead = isAhead;
    this.#bytes = batch.bytes;
    this.#buffers = batch.buffers;
  }

  get at(): number {
    return this.#at;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  uint8(): number {
    return this.#bytes[this.#passed(1)]!;
  }

  float64(): number {
    const at = this.#passed(8);
    for (let index = 0; index < 8; index++) floatBytes[index] = this.#bytes[at + index]!;
    return float.getFloat64(0, true);
  }

  uint32(): number {
    return this.int32() >>> 0;
  }

  int32(): number {
    const at = this.#passed(4);
    const bytes = this.#bytes;
    return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  }

  /** Returns where the next so many bytes begin, and goes on behind them. */
  #passed(count: number): number {
    const at = this.#at;
    this.#at = at + count;
    this.#checkEnd();
    return at;
  }

  /** @throws RaySystemError for a longer text */
  text(maxBytes: number): string {
    return decoder.decode(this.bytes(maxBytes));
  }

  bytes(maxBytes: number = Infinity): Uint8Array {
    const size = this.uint32();
    if (size > maxBytes) {
      throw new RaySystemError(`a name of ${size} bytes is over the limit of ${maxBytes}`);
    }
    const start = this.#at;
    this.#at += size;
    this.#checkEnd();
    return this.#bytes.subarray(start, this.#at);
  }

  /** Reads sizes of memory that will be allocated. */
  sizes(): number[] {
    const count = this.uint32();
    if (count * sizeBytes > this.#bytes.length - this.#at) throw cutOff();
    return Array.from({ length: count }, () => {
      const size = this.float64();
      if (!Number.isSafeInteger(size) || size < 0)
        throw new RaySystemError(`malformed batch from peer: ${size} is no valid size`);
      return size;
    });
  }

  /** Reads bodies. It checks that the batch has room for the count before it makes a list. */
  bodies(count: number): Encoded[] {
    if (count * leastBodyBytes > this.#bytes.length - this.#at) throw cutOff();
    return Array.from({ length: count }, () => this.body());
  }

  body(): Encoded {
    const size = this.uint32();
    const head = this.uint32();
    const mark = head < traceBit ? undefined : markOf(head);
    const bufferCount = mark === undefined ? head : head - mark.bit;
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
    if (mark?.isElsewhere !== true && !this.#isAhead) {
      for (let index = 0; index < bufferCount; index++) adoptShared(buffers[index]!);
    }
    const body = { bytes, start, end, buffers, referenceCount, references: undefined };
    return mark === undefined ? body : { ...body, ...mark.fact };
  }

  /** Refuses reads beyond the batch: they would expose the memory behind it. */
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

/** A function of its own: a closure here would be made for each body. */
function markOf(head: number): (typeof marks)[number] | undefined {
  return marks.find(({ bit }) => head >= bit);
}

function cutOff(): RaySystemError {
  return new RaySystemError("malformed batch from peer: a message exceeds it");
}

function missingBuffer(): RaySystemError {
  return new RaySystemError("a buffer that a message names did not arrive");
}
