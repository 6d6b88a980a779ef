/**
 * Copies of others' values that this runtime has pulled from where they were made. The owner of
 * such a value may ask for a copy when the host that kept it is gone.
 *
 * This table keeps no copy alive. It finds one as long as the entry that it came for is there, or
 * code here still has the memory of the value. A value with refs inside is found by its entry
 * alone: the refs would be kept alive otherwise.
 */
import { type Encoded, sizeOf } from "../../protocol/codec.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import { partsOf, type Remains, remainsOf, valueOf, WeakPart } from "../../store/value-parts.ts";

/** A value, by what keeps none of its memory. */
interface Seen {
  readonly remains: Remains;
  readonly parts: readonly WeakPart[];
}

class Copy {
  readonly object: ObjectEntry["id"];
  readonly owner: string;
  readonly label: string;
  readonly byteLength: number;
  readonly #entry: WeakRef<ObjectEntry>;
  readonly #seen: Seen | undefined;

  constructor({ id, owner, label }: ObjectEntry, entry: ObjectEntry, value: Encoded) {
    this.object = id;
    this.owner = owner;
    this.label = label;
    this.byteLength = sizeOf(value);
    this.#entry = new WeakRef(entry);
    this.#seen = seenOf(value);
  }

  /** Returns its entry, if that is of `runtime` and so can be asked for, or the value. */
  find(runtime: string): ObjectEntry | Encoded | undefined {
    const entry = this.#entry.deref();
    if (entry?.outcome?.ok === true && entry.owner === runtime) return entry;
    return entry?.outcome?.value ?? this.#found();
  }

  #found(): Encoded | undefined {
    if (this.#seen === undefined) return undefined;
    const found: Uint8Array[] = [];
    for (const part of this.#seen.parts) {
      const memory = part.deref();
      if (memory === undefined) return undefined;
      found.push(memory);
    }
    return valueOf(this.#seen.remains, found);
  }
}

export interface FoundCopy {
  readonly found: ObjectEntry | Encoded;
  readonly label: string;
  readonly byteLength: number;
}

export class CopiesHere {
  readonly #runtime: string;
  readonly #copies: Map<string, Set<Copy>> = new Map();
  readonly #gone: FinalizationRegistry<Copy> = new FinalizationRegistry((copy) => {
    if (!this.#has(copy)) return;
    if (copy.find(this.#runtime) === undefined) this.#forget(copy);
  });

  /** @param runtime the id of this one */
  constructor(runtime: string) {
    this.#runtime = runtime;
  }

  /** The number of objects of which a copy may be here. */
  get size(): number {
    return this.#copies.size;
  }

  /** The value of `object`, which is somebody else's, came here for `entry`. */
  note(object: ObjectEntry, entry: ObjectEntry, value: Encoded): void {
    const copy = new Copy(object, entry, value);
    const others = this.#copies.get(copy.object);
    if (others === undefined) this.#copies.set(copy.object, new Set([copy]));
    else others.add(copy);
    this.#gone.register(entry, copy);
    for (const { buffer } of partsOf(value)) this.#gone.register(buffer, copy);
  }

  /** @param owner the one who asks: a copy of an object of somebody else is not for it */
  find(objectId: string, owner: string): FoundCopy | undefined {
    for (const copy of this.#copies.get(objectId) ?? []) {
      const found = copy.owner === owner ? copy.find(this.#runtime) : undefined;
      const { label, byteLength } = copy;
      if (found !== undefined) return { found, label, byteLength };
    }
    return undefined;
  }

  #has(copy: Copy): boolean {
    return this.#copies.get(copy.object)?.has(copy) === true;
  }

  #forget(copy: Copy): void {
    const others = this.#copies.get(copy.object);
    others?.delete(copy);
    if (others?.size === 0) this.#copies.delete(copy.object);
  }
}

/** Undefined for a value that cannot be put together from the memory that its readers keep. */
function seenOf(value: Encoded): Seen | undefined {
  if (value.referenceCount > 0 || value.isLive === true) return undefined;
  const parts = partsOf(value).map((part) => new WeakPart(part));
  return parts.length === 0 ? undefined : { remains: remainsOf(value), parts };
}
