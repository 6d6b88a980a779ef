/**
 * Development mode: values in shared memory are read-only by contract, and this notices who broke it.
 *
 * A checksum of each big value is taken when its owner gets it, and compared when it is looked at, before it goes to disk, and when the last
 * holder has dropped it. It costs a pass over the memory each time, and nothing at all where it is not switched on.
 */
import zlib from "node:zlib";
import type { Encoded } from "../protocol/codec.ts";
import { ObjectMutatedError } from "../shared/errors.ts";
import { warn } from "../shared/text/warning.ts";
import type { ObjectEntry } from "./object-entry.ts";
import { partsOf } from "./value-parts.ts";

interface Watched {
  readonly objectId: string;
  readonly label: string;
  readonly sums: readonly number[];
  /** Undefined while the value is on disk. */
  parts: readonly Uint8Array[] | undefined;
  isReported: boolean;
}

export class ImmutabilityCheck {
  readonly #watched: WeakMap<ObjectEntry, Watched> = new WeakMap();
  readonly #dropped: FinalizationRegistry<Watched> = new FinalizationRegistry((watched) => {
    const error = mutation(watched);
    if (error !== undefined && !watched.isReported) warn(error);
  });

  /** From now on the value of that entry must not change. */
  watch(entry: ObjectEntry, value: Encoded): void {
    const parts = partsOf(value);
    const { id, label } = entry;
    const sums = parts.map((part) => zlib.crc32(part));
    const watched = { objectId: id, label, sums, parts, isReported: false };
    this.#watched.set(entry, watched);
    this.#dropped.register(entry, watched);
  }

  /** What is wrong with the value of that entry, if it is watched and has changed. */
  check(entry: ObjectEntry): ObjectMutatedError | undefined {
    const watched = this.#watched.get(entry);
    const error = watched === undefined ? undefined : mutation(watched);
    if (watched !== undefined && error !== undefined) watched.isReported = true;
    return error;
  }

  /** Its memory is given up: the value is on disk. */
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
  if (parts === undefined || parts.every((part, index) => zlib.crc32(part) === sums[index])) {
    return undefined;
  }
  return new ObjectMutatedError(objectId, label);
}
