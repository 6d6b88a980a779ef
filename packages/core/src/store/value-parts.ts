/**
 * Takes a value apart into its big memory, which can go elsewhere, and the rest, and puts it
 * together again.
 */
import { compact, type Encoded } from "../protocol/codec.ts";
import { outOfBandBytes } from "../protocol/values/encodable.ts";

/** A value without its big memory. */
export interface Remains {
  readonly bytes: Uint8Array;
  readonly referenceCount: number;
  readonly references: readonly object[] | undefined;
  /** The sizes of the body, if that is big, and of the buffers, in order. */
  readonly sizes: readonly number[];
  readonly hasBody: boolean;
}

/** Returns the big memory of a value in order: its body, if that is big, and its buffers. */
export function partsOf(value: Encoded): Uint8Array[] {
  const buffers = value.buffers.map((buffer) => new Uint8Array(buffer));
  return hasBigBody(value) ? [value.bytes.subarray(value.start, value.end), ...buffers] : buffers;
}

export function remainsOf(value: Encoded): Remains {
  const { referenceCount, references } = value;
  const hasBody = hasBigBody(value);
  const sizes = partsOf(value).map(({ length }) => length);
  if (hasBody) return { bytes: nothing, referenceCount, references, sizes, hasBody };
  const { bytes, start, end } = compact(value);
  return { bytes: bytes.subarray(start, end), referenceCount, references, sizes, hasBody };
}

/** @param parts the big memory in the original sizes; each buffer has memory of its own */
export function valueOf(remains: Remains, parts: readonly Uint8Array[]): Encoded {
  const { referenceCount, references, hasBody } = remains;
  const buffers = (hasBody ? parts.slice(1) : parts).map(
    ({ buffer }) => buffer as SharedArrayBuffer,
  );
  const bytes = (hasBody ? parts[0] : undefined) ?? remains.bytes;
  return { bytes, start: 0, end: bytes.length, buffers, referenceCount, references };
}

/** Memory that can be found again as long as somebody reads it. */
export class WeakPart {
  readonly #memory: WeakRef<ArrayBufferLike>;
  readonly #offset: number;
  readonly #length: number;

  constructor({ buffer, byteOffset, length }: Uint8Array) {
    this.#memory = new WeakRef(buffer);
    this.#offset = byteOffset;
    this.#length = length;
  }

  deref(): Uint8Array | undefined {
    const memory = this.#memory.deref();
    if (memory === undefined) return undefined;
    return Buffer.from(memory, this.#offset, this.#length);
  }
}

function hasBigBody({ bytes, start, end }: Encoded): boolean {
  return end - start >= outOfBandBytes && bytes.buffer instanceof SharedArrayBuffer;
}

const nothing: Uint8Array = new Uint8Array(0);
