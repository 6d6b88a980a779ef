/**
 * Values <-> bytes: the one codec of every transport (msgpackr), with what msgpackr does not carry by itself.
 *
 * Refs, handles, errors, big buffers and registered classes are replaced by `Special` before packing and revived while
 * unpacking. Buffers of `outOfBandBytes` and more, and packed bodies of that size, leave as SharedArrayBuffers beside the bytes.
 * Invariants: the input is never changed; an `Encoded` is a snapshot; what cannot travel throws NotEncodableError with its path.
 * What arrives differently, on every transport alike: objects without a prototype come as plain ones, holes in arrays as undefined.
 */
import { addExtension, Packr } from "msgpackr";
import {
  InvalidOptionError,
  NotEncodableError,
  RaySystemError,
  type RemoteSite,
} from "../shared/errors.ts";
import { threadSlot } from "../shared/thread-slot.ts";
import {
  outOfBandBytes,
  refusalOf,
  type Serializer,
  survey,
  surveyPrimitive,
} from "./encodable.ts";
import {
  type FailureData,
  type FindClass,
  type FindOrigin,
  fromFailure,
  toFailure,
} from "./failure.ts";

/** A packed value: a window of `bytes`, the buffers that travel beside it, and the refs and handles inside it. */
export interface Encoded {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly buffers: readonly SharedArrayBuffer[];
  readonly referenceCount: number;
  /** The refs and handles themselves, in order: they keep alive what they point to. Undefined until the first decoding of a value that arrived. */
  references: readonly object[] | undefined;
}

/** What the runtime adds: how its refs and handles are written down and come back. `write` undefined: not one of mine. */
export interface ReferenceCodec {
  readonly isReference: (value: object) => boolean;
  readonly write: (value: object) => unknown;
  readonly read: (data: unknown) => object;
  readonly findOrigin?: FindOrigin;
  readonly findClass?: FindClass;
}

type SpecialContent =
  | readonly ["reference", unknown]
  | readonly ["error", unknown]
  | readonly ["buffer", string, number, number, number]
  | readonly ["node-buffer", Uint8Array]
  | readonly ["class", string, unknown]
  | readonly ["slot", number]
  | readonly ["negative-zero"]
  | readonly ["text", Uint8Array];

/** Stands for what msgpackr must not see itself. */
class Special {
  readonly content: SpecialContent;
  constructor(content: SpecialContent) {
    this.content = content;
  }
}

/** Set only while one `unpack` runs, which is synchronous. */
interface Decoding {
  readonly codec: Codec;
  readonly buffers: readonly SharedArrayBuffer[];
  readonly slots: readonly unknown[];
  /** Of an earlier encoding or decoding of the same value: a ref is taken over once. */
  readonly known: readonly object[] | undefined;
  readonly found: object[];
}

let decoding: Decoding | undefined;

addExtension({
  Class: Special,
  type: 0x52,
  write: (special: Special) => special.content,
  read: (content: SpecialContent) => revive(content),
});

const packr: Packr = new Packr({ structuredClone: true, useRecords: true, copyBuffers: true });
const noBuffers: readonly SharedArrayBuffer[] = [];
const noSlots: readonly unknown[] = [];
const noReferences: readonly object[] = [];

interface Serializers {
  readonly byClass: Map<unknown, Serializer>;
  readonly byId: Map<string, Serializer>;
}

/** Of the thread, because modules register while they load, before there is a runtime. */
const serializers: Serializers = threadSlot("serializers", () => ({
  byClass: new Map(),
  byId: new Map(),
}));

/** @throws InvalidOptionError when another class has taken the id */
export function addSerializer(registeredClass: unknown, serializer: Serializer): void {
  const taken = [...serializers.byClass].find(
    ([other, { id }]) => id === serializer.id && other !== registeredClass,
  );
  if (taken !== undefined) {
    throw new InvalidOptionError(
      "id",
      `a serializer with id "${serializer.id}" is registered for another class`,
    );
  }
  serializers.byClass.set(registeredClass, serializer);
  serializers.byId.set(serializer.id, serializer);
}

/** Holds the place of a top-level ObjectRef argument whose value travels beside the arguments. */
export function slot(index: number): object {
  return new Special(["slot", index]);
}

export class Codec {
  readonly #references: ReferenceCodec;
  readonly #isSpecial: (value: object) => boolean;

  constructor(references: ReferenceCodec) {
    this.#references = references;
    this.#isSpecial = (value) =>
      value instanceof Special ||
      references.isReference(value) ||
      value instanceof URL ||
      serializers.byClass.has(value.constructor);
  }

  /** @throws NotEncodableError naming the path below `root`. */
  encode(value: unknown, root: string): Encoded {
    const found = survey(value, this.#isSpecial);
    if (found === "plain") return pack(value, noBuffers, noReferences);
    if (found === "refused") throw refusalOf(value, root, this.#isSpecial);
    const writing = new Writing(this.#references, (inner) => this.encodable(inner));
    const replaced = writing.replace(value);
    return pack(replaced, writing.buffers, writing.references);
  }

  encodable(value: unknown): boolean {
    return survey(value, this.#isSpecial) !== "refused";
  }

  /** Never throws: what the error cannot carry goes as text. */
  encodeFailure(thrown: unknown, site?: RemoteSite): Encoded {
    const failure = toFailure(
      thrown,
      (value) => this.encodable(value),
      this.#references.findOrigin,
      site,
    );
    return this.encode(failure, "error");
  }

  /** @param slots values for the places that `slot` holds */
  decode(encoded: Encoded, slots: readonly unknown[] = noSlots): unknown {
    const outer = decoding;
    const state: Decoding = {
      codec: this,
      buffers: encoded.buffers,
      slots,
      known: encoded.references,
      found: [],
    };
    decoding = state;
    try {
      const value: unknown = packr.unpack(encoded.bytes, {
        start: encoded.start,
        end: encoded.end,
      });
      if (encoded.references === undefined) encoded.references = state.found;
      return value;
    } catch (cause) {
      throw new RaySystemError(
        `a value of ${encoded.end - encoded.start} bytes cannot be decoded`,
        { cause },
      );
    } finally {
      decoding = outer;
    }
  }

  decodeFailure(encoded: Encoded): FailureData {
    return this.decode(encoded) as FailureData;
  }

  reviveFailure(failure: FailureData): Error {
    return fromFailure(failure, this.#references.findClass);
  }

  reviveReference(data: unknown, state: Decoding): object {
    const reference = state.known?.[state.found.length] ?? this.#references.read(data);
    state.found.push(reference);
    return reference;
  }

  reviveClass(id: string, data: unknown): unknown {
    if (id === "URL") return new URL(data as string);
    const serializer = serializers.byId.get(id);
    if (serializer === undefined) {
      throw new RaySystemError(
        `no serializer "${id}" is registered here; call registerSerializer at the top of a module that both sides load`,
      );
    }
    return serializer.read(data);
  }
}

function pack(
  value: unknown,
  buffers: readonly SharedArrayBuffer[],
  references: readonly object[],
): Encoded {
  const referenceCount = references.length;
  let bytes: Uint8Array;
  try {
    bytes = packr.pack(value);
  } catch (cause) {
    throw new NotEncodableError("value", `cannot be packed: ${String(cause)}`);
  }
  if (bytes.length < outOfBandBytes) {
    return { bytes, start: 0, end: bytes.length, buffers, referenceCount, references };
  }
  // Big bodies move once, into shared memory, and travel as handles from then on.
  const shared = Buffer.from(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return { bytes: shared, start: 0, end: shared.length, buffers, referenceCount, references };
}

/** One encoding: copies only what lies on the way to something special. */
class Writing {
  readonly buffers: SharedArrayBuffer[] = [];
  readonly references: object[] = [];
  readonly #codec: ReferenceCodec;
  readonly #encodable: (value: unknown) => boolean;
  readonly #copies: Map<object, unknown> = new Map();

  constructor(codec: ReferenceCodec, encodable: (value: unknown) => boolean) {
    this.#codec = codec;
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
    if (Array.isArray(value)) {
      const copy: unknown[] = [];
      this.#copies.set(value, copy);
      for (const child of value) copy.push(this.replace(child));
      return copy;
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) {
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
    if (this.#codec.isReference(value)) {
      this.references.push(value);
      return new Special(["reference", this.#codec.write(value)]);
    }
    if (value instanceof Error) {
      const failure = toFailure(value, this.#encodable, this.#codec.findOrigin);
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
    const kind = value instanceof Buffer ? "Buffer" : value.constructor.name;
    const memory = view === undefined ? (value as ArrayBuffer | SharedArrayBuffer) : view.buffer;
    const offset = view?.byteOffset ?? 0;
    const byteLength = value.byteLength;
    if (memory instanceof SharedArrayBuffer) {
      return new Special(["buffer", kind, this.#carry(memory), offset, byteLength]);
    }
    if (byteLength >= outOfBandBytes) {
      const shared = new SharedArrayBuffer(byteLength);
      new Uint8Array(shared).set(new Uint8Array(memory, offset, byteLength));
      return new Special(["buffer", kind, this.#carry(shared), 0, byteLength]);
    }
    if (kind !== "Buffer") return value;
    return new Special(["node-buffer", new Uint8Array(memory, offset, byteLength)]);
  }

  #carry(memory: SharedArrayBuffer): number {
    const known = this.buffers.indexOf(memory);
    return known >= 0 ? known : this.buffers.push(memory) - 1;
  }
}

type ViewConstructor = new (
  memory: ArrayBufferLike,
  offset: number,
  length: number,
) => ArrayBufferView;

const viewConstructors: Readonly<
  Record<string, ViewConstructor & { readonly BYTES_PER_ELEMENT?: number }>
> = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
};

function revive(content: SpecialContent): unknown {
  const state = decoding;
  if (state === undefined)
    throw new RaySystemError("a special value was decoded outside a runtime");
  switch (content[0]) {
    case "reference":
      return state.codec.reviveReference(content[1], state);
    case "error":
      return state.codec.reviveFailure(content[1] as FailureData);
    case "class":
      return state.codec.reviveClass(content[1], content[2]);
    case "slot":
      return state.slots[content[1]];
    case "negative-zero":
      return -0;
    case "text":
      return Buffer.from(content[1]).toString("utf16le");
    case "node-buffer":
      return Buffer.from(content[1].buffer, content[1].byteOffset, content[1].byteLength);
    case "buffer": {
      const [, kind, index, offset, byteLength] = content;
      const memory = state.buffers[index];
      if (memory === undefined) throw new RaySystemError(`buffer ${index} did not arrive`);
      if (kind === "SharedArrayBuffer") return memory;
      if (kind === "ArrayBuffer") return new Uint8Array(memory, offset, byteLength).slice().buffer;
      if (kind === "Buffer") return Buffer.from(memory, offset, byteLength);
      const View = viewConstructors[kind];
      if (View === undefined) throw new RaySystemError(`unknown buffer kind ${kind}`);
      return new View(memory, offset, byteLength / (View.BYTES_PER_ELEMENT ?? 1));
    }
    default:
      throw new RaySystemError(`unknown special value ${String(content[0])}`);
  }
}
