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
  collectGarbage,
  collections,
  seenBytes,
  uncollectedBytes,
} from "../protocol/shared-memory.ts";
import { ObjectStoreFullError, OutOfDiskError } from "../shared/errors.ts";
import { warn } from "../shared/text/warning.ts";
import type { Budget } from "./memory-budget.ts";
import type { ImmutabilityCheck } from "./immutability.ts";
import { type Kept, KeptValues } from "./kept-values.ts";
import type { Away, ObjectEntry } from "./object-entry.ts";
import { DiskFull, type SpillFiles } from "./spill-files.ts";
import { SpilledValues } from "./spilled-values.ts";
import { timers } from "../shared/machine/timers.ts";

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

/** Less garbage than this is not worth a collection. */
const leastGarbage: number = 8 * 1024 * 1024;

export interface ObjectMemoryParts {
  readonly budget: Budget;
  readonly files: SpillFiles;
  readonly describe: (error: Error) => FailureData;
  /** Present in development mode. */
  readonly immutability?: ImmutabilityCheck | undefined;
}

export class ObjectMemory {
  readonly #budget: Budget;
  readonly #immutability: ImmutabilityCheck | undefined;
  readonly #kept: KeptValues;
  /** As many collections had been when it was last looked for values that are gone. */
  #lookedAfter = 0;
  readonly #spilled: SpilledValues;
  readonly #dropped: FinalizationRegistry<Kept>;
  #round: Promise<void> | undefined;
  #hasWarned = false;
  #isOpen = true;

  constructor({ budget, files, describe, immutability }: ObjectMemoryParts) {
    this.#budget = budget;
    this.#immutability = immutability;
    this.#kept = new KeptValues(budget);
    this.#spilled = new SpilledValues({ kept: this.#kept, files, describe, immutability });
    // Nobody can ask for a value whose entry is gone.
    this.#dropped = new FinalizationRegistry((kept) => this.#forget(kept));
  }

  get stats(): ObjectStats {
    const { bytes, spills, restores } = this.#spilled.stats;
    return {
      objects: this.#kept.count,
      bytesInMemory: this.#kept.bytes,
      bytesSpilled: bytes,
      bytesSeen: seenBytes(),
      spills,
      restores,
    };
  }

  /** Yields the values of this runtime that are in memory. */
  *inMemory(): Iterable<{ readonly entry: ObjectEntry; readonly byteLength: number }> {
    for (const { entry: weak, byteLength } of this.#kept) {
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
    const kept = this.#kept.add(entry, value);
    this.#dropped.register(entry, kept, kept);
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
    this.#kept.used(entry);
  }

  /**
   * Brings values that are away and keeps them in memory while `then` reads them. Entries whose
   * values do not return have failed.
   */
  async bring(entries: readonly ObjectEntry[], then: () => void): Promise<void> {
    this.#kept.pin(entries);
    try {
      await Promise.all(entries.flatMap((entry) => awayOf(entry)?.bring(entry) ?? []));
      then();
    } finally {
      this.#kept.unpin(entries);
      this.#relieve();
    }
  }

  /** Resolves when no write is under way any more; values in memory stay there. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#round;
  }

  #forget(kept: Kept): void {
    this.#kept.remove(kept);
    this.#spilled.forget(kept);
  }

  get #isHigh(): boolean {
    return this.#isOpen && this.#budget.isHigh;
  }

  /** Spills in the background, if the budget is high. */
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
        try {
          await this.#spilled.write(unwritten);
        } catch (error) {
          this.#warn(error, unwritten);
          return;
        }
      }
      const moved = victims.filter((kept) => this.#spilled.moveAway(kept, true));
      if (moved.length === 0) return;
    }
  }

  /** Makes room synchronously, because the budget is used up. */
  #makeRoom(entry: ObjectEntry, newest: Kept, mustFit: boolean): void {
    for (const kept of this.#kept) {
      if (!this.#isHigh) return;
      if (kept.extent !== undefined) this.#spilled.moveAway(kept, false);
    }
    // Finalizers run later; this does their work now. Without a collection a look finds nothing,
    // and keeps small values until the job ends.
    if (collections() > this.#lookedAfter) this.#leaveCollected();
    if (this.#isHigh && this.#collect()) this.#leaveCollected();
    while (this.#isHigh) {
      const victims = this.#victims();
      if (victims.length === 0) return;
      const unwritten = victims.filter(({ extent }) => extent === undefined);
      try {
        this.#spilled.writeSync(unwritten);
      } catch (error) {
        if (!mustFit) return this.#warn(error, [newest]);
        this.#dropped.unregister(newest);
        this.#forget(newest);
        throw fullError(error, entry.label, newest.byteLength);
      }
      const moved = victims.filter((kept) => this.#spilled.moveAway(kept, false));
      if (moved.length === 0) return;
    }
  }

  #leaveCollected(): void {
    this.#lookedAfter = collections();
    for (const kept of this.#kept) if (kept.entry.deref() === undefined) this.#kept.leave(kept);
  }

  /** Returns whether garbage was collected. */
  #collect(): boolean {
    if (uncollectedBytes() < Math.max(leastGarbage, this.#budget.limitBytes / 16)) return false;
    collectGarbage();
    return true;
  }

  /** Returns the values that are to leave memory next. */
  #victims(): Kept[] {
    return this.#kept.leastUsed(this.#budget.excessBytes);
  }

  #warn(error: unknown, culprits: readonly Kept[]): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const label = culprits[0]?.entry.deref()?.label ?? "a value";
    const { message } = fullError(error, label, culprits[0]?.byteLength ?? 0);
    warn(`${message}; values stay in memory, above the limit`, "RAYLING_OBJECT_STORE_FULL");
  }
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
  return new Promise((resolve) => void timers.setImmediate(resolve).unref());
}
