/**
 * The bytes of a batch in the making. A frame is a kind byte, fixed fields (little endian) and
 * bodies; a body is the window of an `Encoded`. Bodies of `outOfBandBytes` and more are not copied:
 * they follow as shared buffers, in order.
 */
import type { Encoded } from "../codec.ts";
import { outOfBandBytes } from "../values/encodable.ts";
import type { Batch } from "../message.ts";
import { headRoom, liveBit, locatedBit, signalBit, sizeBytes, traceBit } from "./layout.ts";

const encoder = new TextEncoder();

/** Memory for small messages; what a larger one needs is rounded up to pages. */
const usualBytes: number = 16 * 1024;
const pageBytes = 4096;
/**
 * A batch of so many bytes leaves with the memory it was written in, if it fills half of it: new
 * memory costs less than copies, which a port makes two more of.
 */
const handedOverBytes: number = 12 * 1024;

export class FrameBuffer {
  #bytes: Uint8Array = newMemory(usualBytes);
  #view: DataView = new DataView(this.#bytes.buffer);
  #length = 0;
  #buffers: SharedArrayBuffer[] = [];
  /** The buffers of a value with SharedArrayBuffers of the user, if one was written. */
  #live: readonly SharedArrayBuffer[] | undefined;

  get length(): number {
    return this.#length;
  }

  get live(): readonly SharedArrayBuffer[] | undefined {
    return this.#live;
  }

  /** Returns the written bytes in memory of their own. */
  take(): Batch {
    const length = this.#length;
    const buffers = this.#buffers;
    this.#length = 0;
    if (buffers.length > 0) this.#buffers = [];
    this.#live = undefined;
    if (length < handedOverBytes || 2 * length < this.#bytes.length) {
      return { bytes: this.#bytes.slice(0, length), buffers };
    }
    const bytes = this.#bytes.subarray(0, length);
    this.#bytes = noBytes;
    return { bytes, buffers, isOwn: true };
  }

  /** @param more bytes that follow, for which there will be room at once */
  head(kind: number, id: number, more = 0): void {
    this.#room(headRoom + more);
    this.#bytes[this.#length] = kind;
    this.#view.setUint32(this.#length + 1, id, true);
    this.#length += 5;
  }

  body(encoded: Encoded): number {
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
      for (let index = 0; index < size; index++) this.#bytes[at + index] = bytes[start + index]!;
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

  /** The fields between the head of a call and its arguments. */
  callFields(sequence: number, route: number, dependencies: number): void {
    const view = this.#view;
    view.setFloat64(this.#length, sequence, true);
    view.setUint32(this.#length + 8, route, true);
    view.setUint32(this.#length + 12, dependencies, true);
    this.#length += 16;
  }

  int32(value: number): void {
    this.#view.setInt32(this.#length, value, true);
    this.#length += 4;
  }

  bytes(value: Uint8Array): void {
    this.#room(value.length + headRoom);
    this.uint32(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  sizes(sizes: readonly number[]): void {
    this.#room(sizes.length * sizeBytes + headRoom);
    this.uint32(sizes.length);
    for (const size of sizes) {
      this.#view.setFloat64(this.#length, size, true);
      this.#length += sizeBytes;
    }
  }

  uint32(value: number): void {
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  text(value: string): void {
    const bytes = encoder.encode(value);
    this.#room(bytes.length + headRoom);
    this.#view.setUint32(this.#length, bytes.length, true);
    this.#bytes.set(bytes, this.#length + 4);
    this.#length += 4 + bytes.length;
  }

  #room(size: number): void {
    const needed = this.#length + size;
    if (needed <= this.#bytes.length) return;
    const least = Math.max(usualBytes, this.#length === 0 ? 0 : this.#bytes.length * 2);
    const grown = newMemory(Math.max(least, Math.ceil(needed / pageBytes) * pageBytes));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

const noBytes: Uint8Array = new Uint8Array(0);

/** Not filled with zeros: what is behind the written bytes is never read. */
function newMemory(size: number): Uint8Array {
  return new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
}

/** Returns the number of a value's buffers, with a bit for its kind. */
function headCount({ buffers, isLive, isLocated, isSignal, isTrace }: Encoded): number {
  if (isLive === true) return buffers.length + liveBit;
  if (isLocated === true) return buffers.length + locatedBit;
  if (isTrace === true) return buffers.length + traceBit;
  return buffers.length + (isSignal === true ? signalBit : 0);
}
