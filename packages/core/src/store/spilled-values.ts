/**
 * Values that leave memory for the disk, and return. A value does not change, so it is written
 * once. A value that is still being read while it moves away is found again in its reader's memory.
 */
import type { FailureData } from "../protocol/failure.ts";
import { allocateShared } from "../protocol/shared-memory.ts";
import { ObjectLostError } from "../shared/errors.ts";
import { asError } from "../shared/errors/thrown.ts";
import type { ImmutabilityCheck } from "./immutability.ts";
import type { Kept, KeptValues } from "./kept-values.ts";
import type { ObjectEntry } from "./object-entry.ts";
import type { Extent, SpillFiles } from "./spill-files.ts";
import { partsOf, type Remains, remainsOf, valueOf, WeakPart } from "./value-parts.ts";

/** A value on disk, and how it is put together again. */
interface OnDisk {
  readonly extent: Extent;
  readonly remains: Remains;
  /** Parts of it that a reader may still have in memory. */
  readonly seen: readonly WeakPart[];
}

export interface SpilledValuesParts {
  readonly kept: KeptValues;
  readonly files: SpillFiles;
  readonly describe: (error: Error) => FailureData;
  /** Present in development mode. */
  readonly immutability: ImmutabilityCheck | undefined;
}

export class SpilledValues {
  readonly #kept: KeptValues;
  readonly #files: SpillFiles;
  readonly #describe: (error: Error) => FailureData;
  readonly #immutability: ImmutabilityCheck | undefined;
  #bytes = 0;
  #spills = 0;
  #restores = 0;

  constructor({ kept, files, describe, immutability }: SpilledValuesParts) {
    this.#kept = kept;
    this.#files = files;
    this.#describe = describe;
    this.#immutability = immutability;
  }

  /** The bytes on disk; the number of values that left memory, and of those that returned. */
  get stats(): { readonly bytes: number; readonly spills: number; readonly restores: number } {
    return { bytes: this.#bytes, spills: this.#spills, restores: this.#restores };
  }

  /** Writes values to disk; they stay in memory. */
  async write(values: readonly Kept[]): Promise<void> {
    const extents = await this.#files.write(values.map((kept) => memoryOf(kept)));
    for (const [index, kept] of values.entries()) this.#written(kept, extents[index]);
  }

  /** Writes values to disk, as `write` does, synchronously. */
  writeSync(values: readonly Kept[]): void {
    const extents = this.#files.writeSync(values.map((kept) => memoryOf(kept)));
    for (const [index, kept] of values.entries()) this.#written(kept, extents[index]);
  }

  /** Forgets the copy of a value whose entry is gone. */
  forget(kept: Kept): void {
    if (kept.isAway) this.#bytes -= kept.byteLength;
    if (kept.extent !== undefined) this.#files.release(kept.extent);
    kept.extent = undefined;
    kept.isAway = false;
  }

  /**
   * Moves a written value out of memory. Returns whether it went.
   *
   * @param weakly whether a reader's memory can be found again; a WeakRef keeps it alive for the
   * rest of this turn
   */
  moveAway(kept: Kept, weakly: boolean): boolean {
    const entry = kept.entry.deref();
    const outcome = entry?.outcome;
    if (entry === undefined || outcome?.ok !== true || outcome.value === undefined) return false;
    const { extent } = kept;
    if (extent === undefined || this.#kept.isPinned(entry)) return false;
    const remains = remainsOf(outcome.value);
    const seen = weakly ? partsOf(outcome.value).map((part) => new WeakPart(part)) : [];
    this.#immutability?.left(entry);
    this.#kept.leave(kept);
    kept.isAway = true;
    this.#bytes += kept.byteLength;
    this.#spills += 1;
    entry.moved({
      bringing: "it is read from disk",
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
      this.#bytes -= kept.byteLength;
      this.#restores += 1;
      this.#kept.enter(kept);
      entry.returned(value);
      this.#immutability?.returned(entry, value);
    } catch (cause) {
      const reason = `object ${entry.id} (${entry.label}) cannot be read back from disk: ${asError(cause).message}`;
      entry.lost(this.#describe(new ObjectLostError(entry.id, reason, { cause })));
    }
  }

  async #read(extent: Extent, remains: Remains): Promise<Uint8Array[]> {
    const parts = remains.sizes.map((size) => Buffer.from(allocateShared(size)));
    await this.#files.read(extent, parts);
    return parts;
  }

  #written(kept: Kept, extent: Extent | undefined): void {
    if (extent === undefined) return;
    // The value was written twice, or its entry is gone: this copy is not needed.
    if (kept.extent !== undefined || kept.entry.deref() === undefined) this.#files.release(extent);
    else kept.extent = extent;
  }
}

/** Returns the memory of a value, if its entry is still there. */
function memoryOf(kept: Kept): Uint8Array[] {
  const outcome = kept.entry.deref()?.outcome;
  return outcome?.ok === true && outcome.value !== undefined ? partsOf(outcome.value) : [];
}
