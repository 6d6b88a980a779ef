/**
 * A big answer to a fetch travels in parts. The receiver says how many more parts it wants, so that
 * only few are on their way and other messages on the channel go between them.
 *
 * An answer is a batch with one result in it. The batch goes first, without its buffers; the
 * buffers follow in order, each in pieces of `maxPartBytes`, and are read into the memory that they
 * will have.
 */
import type { Batch, Part } from "../../protocol/message.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { maxPartBytes } from "../../transport/socket/framing.ts";

/**
 * Parts that are on their way at most: 16 MiB, which keeps a connection of 1 GB/s busy over a round
 * trip of 16 ms.
 */
const partsAhead = 8;

/** Answers above this come in parts; what is smaller is no more than a part. */
export const wholeBytes: number = maxPartBytes;

/** Parts of one answer, at the owner. */
export class OutgoingParts {
  readonly #id: number;
  readonly #buffers: readonly SharedArrayBuffer[];
  #wanted = 0;
  #buffer = 0;
  #at = 0;

  constructor(id: number, buffers: readonly SharedArrayBuffer[]) {
    this.#id = id;
    this.#buffers = buffers.filter(({ byteLength }) => byteLength > 0);
  }

  get isDone(): boolean {
    return this.#buffer === this.#buffers.length;
  }

  /** @throws RaySystemError for more than anybody asks for */
  want(count: number): void {
    this.#wanted += count;
    if (this.#wanted > partsAhead) {
      throw new RaySystemError(`${this.#wanted} parts of ${this.#id} are too many at once`);
    }
  }

  /** The next parts, as many as are wanted. */
  *next(): Iterable<Part> {
    for (; this.#wanted > 0; this.#wanted--) {
      const buffer = this.#buffers[this.#buffer];
      if (buffer === undefined) return;
      const size = Math.min(maxPartBytes, buffer.byteLength - this.#at);
      const data = new Uint8Array(buffer, this.#at, size);
      this.#at += size;
      if (this.#at === buffer.byteLength) {
        this.#buffer += 1;
        this.#at = 0;
      }
      yield { id: this.#id, data };
    }
  }
}

/** Parts of one answer, where it is wanted. */
export class IncomingParts {
  readonly batch: Batch;
  readonly #id: number;
  readonly #places: readonly SharedArrayBuffer[];
  #unwanted: number;
  #onTheWay = 0;
  #buffer = 0;
  #at = 0;

  /** Takes the memory. @throws RangeError when there is not so much */
  constructor(id: number, bytes: Uint8Array, sizes: readonly number[]) {
    this.#id = id;
    const buffers = sizes.map((size) => new SharedArrayBuffer(size));
    this.batch = { bytes, buffers };
    this.#places = buffers.filter(({ byteLength }) => byteLength > 0);
    this.#unwanted = sizes.reduce((count, size) => count + Math.ceil(size / maxPartBytes), 0);
  }

  get isWhole(): boolean {
    return this.#buffer === this.#places.length;
  }

  /**
   * The memory for the next part; the same memory again until that part has arrived.
   *
   * @throws RaySystemError for a part of another size
   */
  place(size: number): Uint8Array {
    const buffer = this.#places[this.#buffer];
    const left = (buffer?.byteLength ?? 0) - this.#at;
    if (buffer === undefined || size !== Math.min(maxPartBytes, left)) {
      throw new RaySystemError(`a part of ${size} bytes does not belong to ${this.#id}`);
    }
    return new Uint8Array(buffer, this.#at, size);
  }

  /** How many are to be asked for now. */
  want(): number {
    const count = Math.min(this.#unwanted, partsAhead - this.#onTheWay);
    this.#unwanted -= count;
    this.#onTheWay += count;
    return count;
  }

  arrived(size: number): void {
    this.#onTheWay -= 1;
    this.#at += size;
    if (this.#at < (this.#places[this.#buffer]?.byteLength ?? 0)) return;
    this.#buffer += 1;
    this.#at = 0;
  }
}
