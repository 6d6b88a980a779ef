/**
 * One encoding of a value that has something special inside: the value with its specials in place, and what travels beside it.
 *
 * Copies only plain containers; cycles and shared parts keep their shape. Called after the survey, so everything here may travel.
 */
import {
  isForeignPlain,
  isPlainArray,
  outOfBandBytes,
  surveyPrimitive,
  viewKind,
} from "./encodable.ts";
import { type FindOrigin, toFailure } from "./failure.ts";
import { serializers } from "./serializers.ts";
import { allocateShared, isOurs } from "./shared-memory.ts";
import { Special } from "./special.ts";

/** How refs and handles are written, and which classes of errors have a home. */
export interface WritingRules {
  readonly isReference: (value: object) => boolean;
  readonly write: (value: object) => unknown;
  readonly findOrigin?: FindOrigin;
}

export class Writing {
  readonly buffers: SharedArrayBuffer[] = [];
  readonly references: object[] = [];
  /** A buffer is the user's own shared memory. */
  isLive = false;
  readonly #rules: WritingRules;
  readonly #encodable: (value: unknown) => boolean;
  readonly #copies: Map<object, unknown> = new Map();

  constructor(rules: WritingRules, encodable: (value: unknown) => boolean) {
    this.#rules = rules;
    this.#encodable = encodable;
  }

  replace(value: unknown): unknown {
    if (typeof value !== "object" || value === null) {
      if (surveyPrimitive(value) !== "special") return value;
      if (typeof value === "number") return new Special(["negative-zero"]);
      return new Special(["text", new Uint8Array(Buffer.from(value as string, "utf16le"))]);
    }
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    if (isPlainArray(value)) {
      const copy: unknown[] = [];
      this.#copies.set(value, copy);
      for (const child of value) copy.push(this.replace(child));
      return copy;
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null || isForeignPlain(prototype)) {
      const copy: Record<string, unknown> = {};
      this.#copies.set(value, copy);
      for (const [key, child] of Object.entries(value)) copy[key] = this.replace(child);
      return copy;
    }
    if (prototype === Map.prototype) {
      const copy = new Map<unknown, unknown>();
      this.#copies.set(value, copy);
      for (const [key, child] of value as Map<unknown, unknown>)
        copy.set(this.replace(key), this.replace(child));
      return copy;
    }
    if (prototype === Set.prototype) {
      const copy = new Set<unknown>();
      this.#copies.set(value, copy);
      for (const child of value as Set<unknown>) copy.add(this.replace(child));
      return copy;
    }
    const special = this.#special(value);
    this.#copies.set(value, special);
    return special;
  }

  #special(value: object): object {
    if (this.#rules.isReference(value)) {
      this.references.push(value);
      return new Special(["reference", this.#rules.write(value)]);
    }
    if (value instanceof Error) {
      const failure = toFailure(value, this.#encodable, this.#rules.findOrigin);
      return new Special(["error", this.replace(failure)]);
    }
    if (value instanceof URL) return new Special(["class", "URL", value.href]);
    const serializer = serializers.byClass.get(value.constructor);
    if (serializer !== undefined) {
      return new Special(["class", serializer.id, this.replace(serializer.write(value))]);
    }
    if (
      ArrayBuffer.isView(value) ||
      value instanceof ArrayBuffer ||
      value instanceof SharedArrayBuffer
    ) {
      return this.#buffer(value);
    }
    return value;
  }

  #buffer(value: ArrayBufferView | ArrayBuffer | SharedArrayBuffer): object {
    const view = ArrayBuffer.isView(value) ? value : undefined;
    const kind = (view && viewKind(view)) ?? value.constructor.name;
    const memory = view === undefined ? (value as ArrayBuffer | SharedArrayBuffer) : view.buffer;
    const offset = view?.byteOffset ?? 0;
    const byteLength = value.byteLength;
    if (memory instanceof SharedArrayBuffer) {
      this.isLive ||= !isOurs(memory);
      return new Special(["buffer", kind, this.#carry(memory), offset, byteLength]);
    }
    if (byteLength >= outOfBandBytes) {
      const shared = allocateShared(byteLength);
      new Uint8Array(shared).set(new Uint8Array(memory, offset, byteLength));
      return new Special(["buffer", kind, this.#carry(shared), 0, byteLength]);
    }
    // msgpackr has no name for these two.
    if (kind !== "Buffer" && kind !== "Float16Array") return value;
    return new Special(["view", kind, new Uint8Array(memory, offset, byteLength)]);
  }

  #carry(memory: SharedArrayBuffer): number {
    const known = this.buffers.indexOf(memory);
    return known >= 0 ? known : this.buffers.push(memory) - 1;
  }
}
