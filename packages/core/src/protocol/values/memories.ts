/**
 * The buffers of one encoding: it decides which travel in the message and which beside it as
 * SharedArrayBuffers, and which views bring their whole buffer.
 *
 * Views of one buffer share it at the receiver, with their offsets, unless the part that none of
 * them shows is larger than what they show and not small. A view of a small part of a large buffer
 * brings only that part. A Buffer always brings only its part, because its memory is usually Node's
 * pool.
 */
import { types } from "node:util";
import { copyBytes } from "../copy-bytes.ts";
import { outOfBandBytes } from "./encodable.ts";
import { allocateToFill } from "../shared-memory.ts";
import { Special, type SpecialContent } from "./special.ts";

/** An unshown part of this many bytes is too small to matter. */
const smallRest = 1024;

/** A view, or a buffer, which shows all of its memory. */
export interface Shown {
  readonly kind: string;
  readonly memory: ArrayBufferLike;
  readonly byteOffset: number;
  readonly byteLength: number;
}

interface Use {
  readonly shown: Shown;
  /** The special that replaces it. */
  readonly special: Special;
}

export class Memories {
  readonly #carried: SharedArrayBuffer[] = [];
  #uses: Map<ArrayBufferLike, Use[]> | undefined;

  /** Buffers that travel beside the message. */
  get carried(): readonly SharedArrayBuffer[] {
    return this.#carried;
  }

  /** Returns the replacement of a view or a buffer. Its content may change until `settle`. */
  add(shown: Shown): Special {
    const { kind, memory, byteOffset, byteLength } = shown;
    if (types.isSharedArrayBuffer(memory)) {
      return new Special(["buffer", kind, this.#carry(memory), byteOffset, byteLength]);
    }
    const special = new Special(noContent);
    if (kind === "Buffer") this.#alone({ shown, special });
    else {
      const use = { shown, special };
      this.#uses ??= new Map();
      const uses = this.#uses.get(memory);
      if (uses === undefined) this.#uses.set(memory, [use]);
      else uses.push(use);
    }
    return special;
  }

  settle(): void {
    for (const [memory, uses] of this.#uses ?? []) {
      const shown = uses.reduce((sum, use) => sum + use.shown.byteLength, 0);
      const rest = memory.byteLength - shown;
      const isLone = uses.length === 1;
      const isWhole = rest <= (isLone ? smallRest : Math.max(shown, smallRest));
      const isAlone = isLone && (rest === 0 || shown >= outOfBandBytes);
      if (isWhole && !isAlone) this.#whole(memory, uses);
      else for (const use of uses) this.#alone(use);
    }
  }

  /** Carries only the part that the view shows. */
  #alone({ shown, special }: Use): void {
    const { kind, memory, byteOffset, byteLength } = shown;
    const bytes = new Uint8Array(memory, byteOffset, byteLength);
    if (byteLength >= outOfBandBytes) {
      special.content = ["buffer", kind, this.#copy(bytes), 0, byteLength];
    } else if (kind === "ArrayBuffer") special.content = ["memory", bytes.slice().buffer];
    else special.content = ["view", kind, bytes];
  }

  /** Carries the whole buffer, which all of its uses share. */
  #whole(memory: ArrayBufferLike, uses: readonly Use[]): void {
    const { byteLength: size } = memory;
    const own = uses.find(({ shown }) => shown.kind === "ArrayBuffer")?.special;
    if (size >= outOfBandBytes && own === undefined) {
      const index = this.#copy(new Uint8Array(memory));
      for (const { shown, special } of uses) {
        const { kind, byteOffset, byteLength } = shown;
        special.content = ["buffer", kind, index, byteOffset, byteLength];
      }
      return;
    }
    const shared = own ?? new Special(noContent);
    shared.content =
      size >= outOfBandBytes
        ? ["buffer", "ArrayBuffer", this.#copy(new Uint8Array(memory)), 0, size]
        : ["memory", new Uint8Array(memory).slice().buffer];
    for (const { shown, special } of uses) {
      if (special === own) continue;
      special.content = ["over", shared, shown.kind, shown.byteOffset, shown.byteLength];
    }
  }

  #copy(bytes: Uint8Array): number {
    const shared = allocateToFill(bytes.byteLength);
    copyBytes(bytes, new Uint8Array(shared));
    return this.#carry(shared);
  }

  #carry(memory: SharedArrayBuffer): number {
    const known = this.#carried.indexOf(memory);
    return known >= 0 ? known : this.#carried.push(memory) - 1;
  }
}

const noContent: SpecialContent = ["memory", undefined];
