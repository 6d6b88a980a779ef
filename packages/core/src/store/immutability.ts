/**
 * Development mode: values in shared memory are read-only by contract, and this check finds
 * violations.
 *
 * Each big value gets a checksum when its owner receives it. The sum is compared when the value is
 * read, before it goes to disk, and when its last holder has dropped it. Each check is a pass over
 * the memory; a session without development mode pays nothing.
 */
import { crc32 } from "node:zlib";
import type { Encoded } from "../protocol/codec.ts";
import { ObjectMutatedError } from "../shared/errors.ts";
import { warn } from "../shared/text/warning.ts";
import type { ObjectEntry } from "./object-entry.ts";
import { partsOf } from "./value-parts.ts";

interface Watched {
  readonly objectId: string;
  readonly label: string;
  readonly sums: readonly number[];
  /** The checked memory; undefined while the value is on disk. */
  parts: readonly Uint8Array[] | undefined;
  isReported: boolean;
}

export class ImmutabilityCheck {
  readonly #watched: WeakMap<ObjectEntry, Watched> = new WeakMap();
  readonly #dropped: FinalizationRegistry<Watched> = new FinalizationRegistry((watched) => {
    const error = mutation(watched);
    if (error !== undefined && !watched.isReported) warn(error);
  });

  /** Starts to watch the value of an entry. */
  watch(entry: ObjectEntry, value: Encoded): void {
    const parts = partsOf(value);
    const { id, label } = entry;
    const sums = parts.map((part) => crc32(part));
    const watched = { objectId: id, label, sums, parts, isReported: false };
    this.#watched.set(entry, watched);
    this.#dropped.register(entry, watched);
  }

  /** Returns the error of a watched value that has changed, or undefined. */
  check(entry: ObjectEntry): ObjectMutatedError | undefined {
    const watched = this.#watched.get(entry);
    const error = watched === undefined ? undefined : mutation(watched);
    if (watched !== undefined && error !== undefined) watched.isReported = true;
    return error;
  }

  /** Checks a value for the last time before it leaves memory for the disk. */
  left(entry: ObjectEntry): void {
    const watched = this.#watched.get(entry);
    if (watched === undefined) return;
    const error = mutation(watched);
    if (error !== undefined && !watched.isReported) warn(error);
    watched.parts = undefined;
  }

  returned(entry: ObjectEntry, value: Encoded): void {
    const watched = this.#watched.get(entry);
    if (watched !== undefined) watched.parts = partsOf(value);
  }
}

function mutation({ objectId, label, sums, parts }: Watched): ObjectMutatedError | undefined {
  if (parts === undefined || parts.every((part, index) => crc32(part) === sums[index])) {
    return undefined;
  }
  return new ObjectMutatedError(objectId, label);
}
