/**
 * Counts the memory of this runtime's big values, and moves some of them to disk when it is too
 * much.
 *
 * A value with a part of 64 KiB or more counts, each piece of memory once. Above 80 % of the budget
 * the least recently used values are written to disk in the background and released. Above the
 * whole budget that happens synchronously. Values return when they are used. Garbage is collected
 * first, because unreferenced values need no disk. A value that is still being read while it moves
 * away stays in memory for its reader, and is found there again. A value with the user's own shared
 * memory stays in place.
 */
import { isBig } from "../protocol/codec.ts";
import type { FailureData } from "../protocol/failure.ts";
import {
  allocateShared,
  collectGarbage,
  seenBytes,
  uncollectedBytes,
} from "../protocol/shared-memory.ts";
import { ObjectLostError, ObjectStoreFullError, OutOfDiskError } from "../shared/errors.ts";
import { warn } from "../shared/text/warning.ts";
import type { Budget } from "./budget.ts";
import type { ImmutabilityCheck } from "./immutability.ts";
import type { Away, ObjectEntry } from "./object-entry.ts";
import { DiskFull, type Extent, type SpillFiles } from "./spill-files.ts";
import { partsOf, type Remains, remainsOf, valueOf } from "./value-parts.ts";

/** The object memory of one runtime. */
export interface ObjectStats {
  /** The number of its big values, in memory or on disk. */
  readonly objects: number;
  readonly bytesInMemory: number;
  readonly bytesSpilled: number;
  /** The shared memory that it sees: kept, being read, or dropped and not yet collected. */
  readonly bytesSeen: number;
  /** The number of values that left memory, and of those that were brought back. */
  readonly spills: number;
  readonly restores: number;
}

/** Spilling starts at the high mark and goes on to the low mark, so that values leave in groups. */
const highMark = 0.8;
const lowMark = 0.7;

/** Ray fuses small values into files of 100 MB. */
const fileBytes: number = 100 * 1000 * 1000;

/** Less garbage than this is not worth a collection. */
const leastGarbage: number = 8 * 1024 * 1024;

/** Memory that several values share counts once. */
interface Piece {
  readonly byteLength: number;
  keepers: number;
}

class Kept {
  readonly entry: WeakRef<ObjectEntry>;
  readonly pieces: readonly Piece[];
  readonly byteLength: number;
  /** Its copy on disk. Values do not change, so it is written once. */
  extent: Extent | undefined = undefined;
  isAway = false;
  bringing: Promise<void> | undefined = undefined;

  constructor(entry: ObjectEntry, pieces: readonly Piece[], byteLength: number) {
    this.entry = new WeakRef(entry);
    this.pieces = pieces;
    this.byteLength = byteLength;
  }
}

/** Memory that can be found again as long as somebody reads it. */
class WeakPart {
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
    return Buffer.from(memory as ArrayBuffer, this.#offset, this.#length);
  }
}

export interface ObjectMemoryParts {
  readonly budget: Budget;
  readonly files: SpillFiles;
  readonly describe: (error: Error) => FailureData;
  /** Present in development mode. */
  readonly immutability?: ImmutabilityCheck | undefined;
}

export class ObjectMemory {
  readonly #budget: Budget;
  readonly #files: SpillFiles;
  readonly #describe: (error: Error) => FailureData;
  readonly #immutability: ImmutabilityCheck | undefined;
  readonly #kept: WeakMap<ObjectEntry, Kept> = new WeakMap();
  readonly #pieces: WeakMap<ArrayBufferLike, Piece> = new WeakMap();
  /** Values in memory, the least recently used first. */
  readonly #order: Set<Kept> = new Set();
  /** Entries whose values must stay because they are about to be read. */
  readonly #pinned: Map<ObjectEntry, number> = new Map();
  readonly #dropped: FinalizationRegistry<Kept>;
  #round: Promise<void> | undefined;
  #objects = 0;
  #bytesInMemory = 0;
  #bytesSpilled = 0;
  #spills = 0;
  #restores = 0;
  #hasWarned = false;
  #isOpen = true;

  constructor({ budget, files, describe, immutability }: ObjectMemoryParts) {
    this.#budget = budget;
    this.#files = files;
    this.#describe = describe;
    this.#immutability = immutability;
    this.#dropped = new FinalizationRegistry((kept) => this.#forget(kept));
  }

  get stats(): ObjectStats {
    return {
      objects: this.#objects,
      bytesInMemory: this.#bytesInMemory,
      bytesSpilled: this.#bytesSpilled,
      bytesSeen: seenBytes(),
      spills: this.#spills,
      restores: this.#restores,
    };
  }

  /** Yields the values of this runtime that are in memory. */
  *inMemory(): Iterable<{ readonly entry: ObjectEntry; readonly byteLength: number }> {
    for (const { entry: weak, byteLength } of this.#order) {
      const entry = weak.deref();
      if (entry !== undefined) yield { entry, byteLength };
    }
  }

  /** The bytes in memory, of all threads of this process. */
  get bytesOfProcess(): number {
    return this.#budget.used;
  }

  /**
   * Counts the value of an entry, if it is big, and makes room for it.
   *
   * @throws ObjectStoreFullError, OutOfDiskError if it `mustFit` and no room can be made; the value
   * is not counted then
   */
  keep(entry: ObjectEntry, mustFit: boolean): void {
    const value = entry.outcome?.ok === true ? entry.outcome.value : undefined;
    if (value === undefined || !isBig(value) || value.isLive === true) return;
    const parts = partsOf(value);
    const pieces = parts.map(({ buffer }) => this.#pieceOf(buffer));
    const byteLength = parts.reduce((sum, { length }) => sum + length, 0);
    const kept = new Kept(entry, pieces, byteLength);
    this.#kept.set(entry, kept);
    this.#dropped.register(entry, kept, kept);
    this.#objects += 1;
    this.#enter(kept);
    this.#immutability?.watch(entry, value);
    if (this.#budget.used > this.#budget.limitBytes) this.#makeRoom(entry, kept, mustFit);
    else this.#relieve();
  }

  /** Returns, in development mode, the error of a changed value that is about to be read. */
  mutationOf(entry: ObjectEntry): Error | undefined {
    return this.#immutability?.check(entry);
  }

  /** Records that the value was just read. */
  used(entry: ObjectEntry): void {
    const kept = this.#kept.get(entry);
    if (kept === undefined || !this.#order.delete(kept)) return;
    this.#order.add(kept);
  }

  /**
   * Brings values that are away and keeps them in memory while `then` reads them. Entries whose
   * values do not return have failed.
   */
  async bring(entries: readonly ObjectEntry[], then: () => void): Promise<void> {
    for (const entry of entries) this.#pinned.set(entry, (this.#pinned.get(entry) ?? 0) + 1);
    try {
      await Promise.all(entries.flatMap((entry) => awayOf(entry)?.bring(entry) ?? []));
      then();
    } finally {
      for (const entry of entries) {
        const pins = (this.#pinned.get(entry) ?? 0) - 1;
        if (pins > 0) this.#pinned.set(entry, pins);
        else this.#pinned.delete(entry);
      }
      this.#relieve();
    }
  }

  /** Resolves when no write is under way any more; values in memory stay there. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#round;
  }

  #pieceOf(memory: ArrayBufferLike): Piece {
    let piece = this.#pieces.get(memory);
    if (piece === undefined) {
      piece = { byteLength: memory.byteLength, keepers: 0 };
      this.#pieces.set(memory, piece);
    }
    return piece;
  }

  #enter(kept: Kept): void {
    kept.isAway = false;
    this.#order.add(kept);
    for (const piece of kept.pieces) {
      piece.keepers += 1;
      if (piece.keepers === 1) this.#count(piece.byteLength);
    }
  }

  #leave(kept: Kept): void {
    this.#order.delete(kept);
    for (const piece of kept.pieces) {
      piece.keepers -= 1;
      if (piece.keepers === 0) this.#count(-piece.byteLength);
    }
  }

  #count(change: number): void {
    this.#bytesInMemory += change;
    this.#budget.add(change);
  }

  /** Forgets a value whose entry is gone: nobody can ask for it. */
  #forget(kept: Kept): void {
    if (this.#order.has(kept)) this.#leave(kept);
    if (kept.isAway) this.#bytesSpilled -= kept.byteLength;
    if (kept.extent !== undefined) this.#files.release(kept.extent);
    kept.extent = undefined;
    kept.isAway = false;
    this.#objects -= 1;
  }

  get #isHigh(): boolean {
    return this.#isOpen && this.#budget.used > this.#budget.limitBytes * highMark;
  }

  /** Spills in the background, if the memory is above the high mark. */
  #relieve(): void {
    if (!this.#isHigh || this.#round !== undefined) return;
    this.#round = this.#spillRound().finally(() => (this.#round = undefined));
  }

  async #spillRound(): Promise<void> {
    await turn();
    if (this.#isHigh && this.#collect()) {
      // Finalizers run in a turn of their own.
      await turn();
      await turn();
    }
    while (this.#isHigh) {
      const victims = this.#victims();
      if (victims.length === 0) return;
      const unwritten = victims.filter(({ extent }) => extent === undefined);
      if (unwritten.length > 0) {
        const values = unwritten.map((kept) => this.#partsOf(kept));
        try {
          const extents = await this.#files.write(values);
          for (const [index, kept] of unwritten.entries()) this.#written(kept, extents[index]);
        } catch (error) {
          this.#warn(error, unwritten);
          return;
        }
      }
      const moved = victims.filter((kept) => this.#moveAway(kept, true));
      if (moved.length === 0) return;
    }
  }

  /** Makes room synchronously, because the budget is used up. */
  #makeRoom(entry: ObjectEntry, newest: Kept, mustFit: boolean): void {
    for (const kept of this.#order) {
      if (!this.#isHigh) return;
      if (kept.extent !== undefined) this.#moveAway(kept, false);
    }
    if (this.#collect()) {
      // Their finalizers run later; this does their work now.
      for (const kept of this.#order) if (kept.entry.deref() === undefined) this.#leave(kept);
    }
    while (this.#isHigh) {
      const victims = this.#victims();
      if (victims.length === 0) return;
      const unwritten = victims.filter(({ extent }) => extent === undefined);
      try {
        const extents = this.#files.writeSync(unwritten.map((kept) => this.#partsOf(kept)));
        for (const [index, kept] of unwritten.entries()) this.#written(kept, extents[index]);
      } catch (error) {
        if (!mustFit) return this.#warn(error, [newest]);
        this.#dropped.unregister(newest);
        this.#kept.delete(entry);
        this.#forget(newest);
        throw fullError(error, entry.label, newest.byteLength);
      }
      const moved = victims.filter((kept) => this.#moveAway(kept, false));
      if (moved.length === 0) return;
    }
  }

  /** Returns whether garbage was collected. */
  #collect(): boolean {
    if (uncollectedBytes() < Math.max(leastGarbage, this.#budget.limitBytes / 16)) return false;
    collectGarbage();
    return true;
  }

  /** Returns the least recently used values: as many as are necessary, or as fit into one file. */
  #victims(): Kept[] {
    const victims: Kept[] = [];
    const surplus = this.#budget.used - this.#budget.limitBytes * lowMark;
    let byteLength = 0;
    for (const kept of this.#order) {
      if (byteLength >= surplus || byteLength >= fileBytes) break;
      const entry = kept.entry.deref();
      if (entry === undefined || this.#pinned.has(entry)) continue;
      victims.push(kept);
      byteLength += kept.byteLength;
    }
    return victims;
  }

  #partsOf(kept: Kept): Uint8Array[] {
    const outcome = kept.entry.deref()?.outcome;
    return outcome?.ok === true && outcome.value !== undefined ? partsOf(outcome.value) : [];
  }

  #written(kept: Kept, extent: Extent | undefined): void {
    if (extent === undefined) return;
    // The value was written twice, or its entry is gone: this copy is not needed.
    if (kept.extent !== undefined || kept.entry.deref() === undefined) this.#files.release(extent);
    else kept.extent = extent;
  }

  /**
   * @param weakly whether a reader's memory can be found again; a WeakRef keeps it alive for the
   * rest of this turn
   */
  #moveAway(kept: Kept, weakly: boolean): boolean {
    const entry = kept.entry.deref();
    const outcome = entry?.outcome;
    if (entry === undefined || outcome?.ok !== true || outcome.value === undefined) return false;
    const { extent } = kept;
    if (extent === undefined || this.#pinned.has(entry)) return false;
    const remains = remainsOf(outcome.value);
    const seen = weakly ? partsOf(outcome.value).map((part) => new WeakPart(part)) : [];
    this.#immutability?.left(entry);
    this.#leave(kept);
    kept.isAway = true;
    this.#bytesSpilled += kept.byteLength;
    this.#spills += 1;
    entry.moved({
      bring: (asked) =>
        (kept.bringing ??= this.#restore(asked, kept, { extent, remains, seen }).finally(
          () => (kept.bringing = undefined),
        )),
    });
    return true;
  }

  async #restore(entry: ObjectEntry, kept: Kept, { extent, remains, seen }: OnDisk): Promise<void> {
    try {
      const found = seen.flatMap((part) => part.deref() ?? []);
      const isThere = found.length === remains.sizes.length;
      const value = valueOf(remains, isThere ? found : await this.#read(extent, remains));
      this.#bytesSpilled -= kept.byteLength;
      this.#restores += 1;
      this.#enter(kept);
      entry.returned(value);
      this.#immutability?.returned(entry, value);
    } catch (cause) {
      const { message } = cause as Error;
      const reason = `object ${entry.id} (${entry.label}) cannot be read back from disk: ${message}`;
      entry.lost(this.#describe(new ObjectLostError(entry.id, reason, { cause })));
    }
  }

  async #read(extent: Extent, remains: Remains): Promise<Uint8Array[]> {
    const parts = remains.sizes.map((size) => Buffer.from(allocateShared(size)));
    await this.#files.read(extent, parts);
    return parts;
  }

  #warn(error: unknown, culprits: readonly Kept[]): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const label = culprits[0]?.entry.deref()?.label ?? "a value";
    const { message } = fullError(error, label, culprits[0]?.byteLength ?? 0);
    warn(`${message}; values stay in memory, above the limit`, "RAYLING_OBJECT_STORE_FULL");
  }
}

/** A value on disk, and how it is put together again. */
interface OnDisk {
  readonly extent: Extent;
  readonly remains: Remains;
  /** Parts of it that a reader may still have in memory. */
  readonly seen: readonly WeakPart[];
}

/** Translates a failed write into the user's error. */
function fullError(error: unknown, label: string, byteLength: number): Error {
  const options = { cause: error };
  if (error instanceof DiskFull) {
    return new OutOfDiskError(label, byteLength, error.directory, options);
  }
  const why = `its limit is reached and nothing can be moved to disk: ${String(error)}`;
  return new ObjectStoreFullError(label, byteLength, why, options);
}

export function awayOf(entry: ObjectEntry): Away | undefined {
  return entry.outcome?.ok === true ? entry.outcome.away : undefined;
}

/** Waits for a turn of the event loop without keeping the process alive. */
function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve).unref());
}
