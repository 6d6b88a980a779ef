/**
 * The big values of a runtime: which of them are in memory, in order of their last use, and how
 * many bytes that is.
 */
import type { Encoded } from "../protocol/codec.ts";
import { LooseRef } from "../protocol/loose-ref.ts";
import { leastPooledBytes } from "../protocol/memory-pool.ts";
import type { Budget } from "./memory-budget.ts";
import type { ObjectEntry } from "./object-entry.ts";
import type { Extent } from "./spill-files.ts";
import { partsOf } from "./value-parts.ts";

/** Ray fuses small values into files of 100 MB. */
const fileBytes: number = 100 * 1000 * 1000;

/** Memory that several values share counts once. */
interface Piece {
  readonly byteLength: number;
  keepers: number;
}

/** One big value, in memory or on disk. */
export class Kept {
  readonly entry: Pick<LooseRef<ObjectEntry>, "deref">;
  readonly pieces: readonly Piece[];
  readonly byteLength: number;
  /** Its copy on disk. Values do not change, so it is written once. */
  extent: Extent | undefined = undefined;
  isAway = false;
  bringing: Promise<void> | undefined = undefined;

  constructor(entry: ObjectEntry, pieces: readonly Piece[], byteLength: number) {
    // Code without turns puts and drops values whose memory is used again: none may keep them.
    this.entry = byteLength < leastPooledBytes ? new WeakRef(entry) : new LooseRef(entry);
    this.pieces = pieces;
    this.byteLength = byteLength;
  }
}

export class KeptValues implements Iterable<Kept> {
  readonly #budget: Budget;
  readonly #kept: WeakMap<ObjectEntry, Kept> = new WeakMap();
  readonly #pieces: WeakMap<ArrayBufferLike, Piece> = new WeakMap();
  /** Values in memory, the least recently used first. */
  readonly #order: Set<Kept> = new Set();
  /** Entries whose values must stay because they are about to be read. */
  readonly #pinned: Map<ObjectEntry, number> = new Map();
  #count = 0;
  #bytes = 0;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** The number of values, in memory or on disk. */
  get count(): number {
    return this.#count;
  }

  /** The bytes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Iterates over the values in memory, the least recently used first. */
  [Symbol.iterator](): Iterator<Kept> {
    return this.#order.values();
  }

  /** Counts the value of an entry. */
  add(entry: ObjectEntry, value: Encoded): Kept {
    const parts = partsOf(value);
    const pieces = parts.map(({ buffer }) => this.#pieceOf(buffer));
    const byteLength = parts.reduce((sum, { length }) => sum + length, 0);
    const kept = new Kept(entry, pieces, byteLength);
    this.#kept.set(entry, kept);
    this.#count += 1;
    this.enter(kept);
    return kept;
  }

  /** Forgets a value. */
  remove(kept: Kept): void {
    if (this.#order.has(kept)) this.leave(kept);
    this.#count -= 1;
    const entry = kept.entry.deref();
    if (entry !== undefined) this.#kept.delete(entry);
  }

  /** Records that the value was just read. */
  used(entry: ObjectEntry): void {
    const kept = this.#kept.get(entry);
    if (kept === undefined || !this.#order.delete(kept)) return;
    this.#order.add(kept);
  }

  /** The value is in memory. */
  enter(kept: Kept): void {
    kept.isAway = false;
    this.#order.add(kept);
    for (const piece of kept.pieces) {
      piece.keepers += 1;
      if (piece.keepers === 1) this.#change(piece.byteLength);
    }
  }

  /** The value is in memory no longer. */
  leave(kept: Kept): void {
    this.#order.delete(kept);
    for (const piece of kept.pieces) {
      piece.keepers -= 1;
      if (piece.keepers === 0) this.#change(-piece.byteLength);
    }
  }

  #change(change: number): void {
    this.#bytes += change;
    this.#budget.add(change);
  }

  /** Keeps the values of entries in memory. */
  pin(entries: readonly ObjectEntry[]): void {
    for (const entry of entries) this.#pinned.set(entry, (this.#pinned.get(entry) ?? 0) + 1);
  }

  unpin(entries: readonly ObjectEntry[]): void {
    for (const entry of entries) {
      const pins = (this.#pinned.get(entry) ?? 0) - 1;
      if (pins > 0) this.#pinned.set(entry, pins);
      else this.#pinned.delete(entry);
    }
  }

  isPinned(entry: ObjectEntry): boolean {
    return this.#pinned.has(entry);
  }

  /**
   * Returns the least recently used values: as many as have those bytes together, or as fit into
   * one file.
   */
  leastUsed(bytes: number): Kept[] {
    const found: Kept[] = [];
    let byteLength = 0;
    for (const kept of this.#order) {
      if (byteLength >= bytes || byteLength >= fileBytes) break;
      const entry = kept.entry.deref();
      if (entry === undefined || this.#pinned.has(entry)) continue;
      found.push(kept);
      byteLength += kept.byteLength;
    }
    return found;
  }

  #pieceOf(memory: ArrayBufferLike): Piece {
    let piece = this.#pieces.get(memory);
    if (piece === undefined) {
      piece = { byteLength: memory.byteLength, keepers: 0 };
      this.#pieces.set(memory, piece);
    }
    return piece;
  }
}
