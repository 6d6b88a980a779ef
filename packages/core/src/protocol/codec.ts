/**
 * Values <-> bytes: the one codec of every transport (msgpackr), with the values that msgpackr does
 * not carry by itself.
 *
 * Refs, handles, errors, big buffers and registered classes are replaced by `Special` before
 * packing and revived while unpacking. Buffers of `outOfBandBytes` and more, and packed bodies of
 * that size, leave as SharedArrayBuffers beside the bytes. msgpackr/pack is msgpackr without its
 * native string reader: threads that may be terminated at any moment run no native code.
 *
 * Invariants: the input never changes; an `Encoded` is a snapshot; a value that cannot travel
 * throws NotEncodableError with its path. docs/objects.md lists the values that arrive
 * differently, on every transport alike.
 */
import { Packr, REUSE_BUFFER_MODE } from "msgpackr/pack";
import { type NotEncodableError, RaySystemError, type RemoteSite } from "../shared/errors.ts";
import { copyBytes } from "./copy-bytes.ts";
import { checkDepth } from "./values/depth.ts";
import { isFlat, isFlatList, outOfBandBytes, survey, type Survey } from "./values/encodable.ts";
import { type FailureData, type FindClass, fromFailure, isFailure, toFailure } from "./failure.ts";
import { notePath } from "./values/live-memory.ts";
import { pathOf, refusalAt, refusalOf, refused } from "./values/refusal.ts";
import { type SignalPlaces, Writing, type WritingRules } from "./values/replace.ts";
import { serializers } from "./values/serializers.ts";
import { leastLentBytes, lentMemory } from "./lent-memory.ts";
import { allocateShared } from "./shared-memory.ts";
import { notSmall, SmallPacker, unpackSmall } from "./small-values.ts";
import { type Reviver, reviving, Special } from "./values/special.ts";
import { asError } from "../shared/errors/thrown.ts";

/**
 * A packed value: a window of `bytes`, the buffers that travel beside it, and the refs and handles
 * inside it.
 */
export interface Encoded {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly buffers: readonly SharedArrayBuffer[];
  readonly referenceCount: number;
  /**
   * The refs and handles in order; they keep their targets alive. Undefined until the first
   * decoding of a value that arrived.
   */
  references: readonly object[] | undefined;
  /**
   * Whether some of its buffers are the user's own SharedArrayBuffers. The user may change these,
   * so the value cannot move to other memory.
   */
  readonly isLive?: boolean;
  /** Whether this is a stub of a value that stays on the host that made it. */
  readonly isLocated?: boolean;
  /** Whether this is the state of an AbortSignal: aborted or not, and the reason. */
  readonly isSignal?: boolean;
  /** Whether this is the context of a trace, which belongs to a call and is no argument. */
  readonly isTrace?: boolean;
  /** Whether `bytes` is lent memory (lent-memory.ts), and this its only window. */
  readonly isLent?: boolean;
}

/** Where a value was packed that has nothing beside its bytes. */
export type PackedWindow = Pick<Encoded, "bytes" | "start" | "end">;

/**
 * Whether a value is big enough to be counted: it has memory of its own beside the messages that
 * carry it.
 */
export function isBig(encoded: Encoded): boolean {
  return encoded.buffers.length > 0 || encoded.end - encoded.start >= outOfBandBytes;
}

/** The runtime's part of the codec: it writes and reads refs and handles. */
export interface ReferenceCodec extends WritingRules {
  readonly read: (data: unknown) => object;
  /**
   * Declines a ref that arrived and was not taken over: its owner learns that the ref is no longer
   * in transit.
   */
  readonly decline: (data: unknown) => void;
  readonly findClass?: FindClass;
}

/** Returns the bytes of a value: its body and its buffers. */
export function sizeOf(encoded: Encoded): number {
  let size = encoded.end - encoded.start;
  for (const { byteLength } of encoded.buffers) size += byteLength;
  return size;
}

/** Gives back the memory of a value, if it is lent. */
export function giveBackLent({ bytes, isLent }: Encoded): void {
  if (isLent === true) lentMemory.giveBack(bytes);
}

const packr: Packr = new Packr({
  structuredClone: true,
  useRecords: true,
  copyBuffers: true,
  // A key named toJSON is an ordinary key.
  useToJSON: false,
});
/**
 * Packs values without shared parts: it keeps no table of seen objects and makes no view of its own
 * for the result (measured: half the cost of a small call).
 */
const treePackr: Packr = new Packr({
  useRecords: true,
  moreTypes: true,
  copyBuffers: true,
  useToJSON: false,
});
const smallPacker: SmallPacker = new SmallPacker();
/** A packer whose memory is larger than this starts with new memory. */
const packerBytes: number = 1024 * 1024;
const noBuffers: readonly SharedArrayBuffer[] = [];
const noSlots: readonly unknown[] = [];
const noReferences: readonly object[] = [];
/** Replaces a ref that was not taken over. */
const declined: object = {};

export class Codec {
  readonly #references: ReferenceCodec;
  readonly #isSpecial: (value: object) => boolean;
  readonly #isSpecialArgument: (value: object) => boolean;
  /** Revives values without refs, buffers and slots, which are nearly all values. */
  readonly #bare: Reviver;

  constructor(references: ReferenceCodec) {
    this.#references = references;
    this.#bare = {
      buffers: noBuffers,
      slots: noSlots,
      referencesOnly: false,
      failure: (failure) => this.reviveFailure(failure),
      reference: () => {
        throw new RaySystemError("malformed value from peer: its header does not count a ref");
      },
    };
    this.#isSpecialArgument = (value) => value instanceof AbortSignal || this.#isSpecial(value);
    this.#isSpecial = (value) =>
      value instanceof Special ||
      references.isReference(value) ||
      value instanceof URL ||
      serializers.byClass.has(value.constructor);
  }

  /** Encodes a number, a short text and the like, which always travel; undefined for the rest. */
  encodeSmall(value: unknown): Encoded | undefined {
    return smallPacker.value(value) ? smallWindow() : undefined;
  }

  /** Packs a list of such values; undefined for others. Read it before the next value is packed. */
  packSmallList(list: readonly unknown[]): PackedWindow | undefined {
    return smallPacker.list(list) ? smallPacker : undefined;
  }

  /**
   * @param borrows whether the result may lie in lent memory (`isLent`), for a caller that gives it
   * back
   * @throws NotEncodableError naming the path below `root`
   */
  encode(value: unknown, root: string, borrows = false): Encoded {
    if (smallPacker.value(value)) return smallWindow();
    if (this.#isFlat(value, root)) return packTree(value, root, borrows);
    return this.#encodeDeep(value, root, borrows);
  }

  /**
   * Encodes a list that the runtime made itself: it has all of its items and no other properties.
   * The result may lie in lent memory (`isLent`), which a caller may give back.
   *
   * @param slots takes the AbortSignals inside; without it they are refused
   */
  encodeList(list: readonly unknown[], root: string, slots?: SignalPlaces): Encoded {
    return smallPacker.list(list) ? smallWindow() : this.encodeOtherList(list, root, slots);
  }

  /** As `encodeList`, for a list that `packSmallList` did not take. */
  encodeOtherList(list: readonly unknown[], root: string, slots?: SignalPlaces): Encoded {
    return isFlatList(list)
      ? packTree(list, root, true)
      : this.#encodeDeep(list, root, true, slots);
  }

  #encodeDeep(value: unknown, root: string, borrows: boolean, slots?: SignalPlaces): Encoded {
    const isSpecial = slots === undefined ? this.#isSpecial : this.#isSpecialArgument;
    let found: Survey;
    try {
      found = survey(value, isSpecial);
    } catch {
      // A getter inside the value, or a proxy, throws.
      throw refusalOf(value, root, isSpecial);
    }
    if (found === "tree") return packTree(value, root, borrows);
    if (found === "plain") return pack(value, root, noBuffers, noReferences);
    if (found === "refused") throw refusalOf(value, root, isSpecial);
    const where = (matches: (part: object) => boolean): string | undefined =>
      pathOf(value, root, isSpecial, matches);
    const writing = new Writing(
      this.#references,
      {
        encodable: (inner, depth) => survey(inner, isSpecial, depth) !== "refused",
        refuse: (target, reason) => refusalAt({ target, reason }, value, root, isSpecial),
        refuseWritten: (part, written) => {
          const path = where((one) => one === part) ?? root;
          return refusalOf(written, `${path} (as its serializer wrote it)`, isSpecial);
        },
      },
      slots,
    );
    const replaced = writing.write(value);
    const encoded = pack(replaced, root, writing.buffers, writing.references);
    const { live } = writing;
    if (live === undefined) return encoded;
    notePath(live, () => where((part) => memoryOf(part) === live));
    return { ...encoded, isLive: true };
  }

  #isFlat(value: unknown, root: string): boolean {
    try {
      return isFlat(value);
    } catch {
      throw refusalOf(value, root, this.#isSpecial);
    }
  }

  encodable(value: unknown): boolean {
    return survey(value, this.#isSpecial) !== "refused";
  }

  /** Returns why `value` cannot travel, with the path below `root`. Encodes nothing. */
  refusal(value: unknown, root: string): NotEncodableError | undefined {
    try {
      if (this.encodable(value)) return undefined;
    } catch {
      // A getter inside the value, or a proxy, throws.
    }
    return refusalOf(value, root, this.#isSpecial);
  }

  /** Never throws: parts of the error that cannot travel go as text. */
  encodeFailure(thrown: unknown, site?: RemoteSite): Encoded {
    try {
      const { findOrigin } = this.#references;
      const encodable = (value: unknown): boolean => this.encodable(value);
      const failure = toFailure(thrown, { encodable, findOrigin }, site);
      return this.encode(failure, "error");
    } catch (unreadable) {
      const text = `<an error that cannot be read: ${String(unreadable)}>`;
      return this.encode(
        {
          name: "Error",
          message: text,
          stack: "",
          fields: {},
          ...(site === undefined ? {} : { site }),
        },
        "error",
      );
    }
  }

  /** @param slots values for the places that `slot` marks */
  decode(encoded: Encoded, slots: readonly unknown[] = noSlots): unknown {
    const isBare =
      encoded.referenceCount === 0 && encoded.buffers.length === 0 && slots.length === 0;
    if (!isBare) return this.#unpack(encoded, this.#reviverFor(encoded, slots));
    const small = unpackSmall(encoded.bytes, encoded.start, encoded.end);
    return small === notSmall ? this.#unpack(encoded, this.#bare) : small;
  }

  #unpack(encoded: Encoded, reviver: Reviver): unknown {
    try {
      checkDepth(encoded.bytes, encoded.start, encoded.end);
      return reviving(reviver, (): unknown =>
        packr.unpack(encoded.bytes, { start: encoded.start, end: encoded.end }),
      );
    } catch (cause) {
      throw new RaySystemError(
        `a value of ${encoded.end - encoded.start} bytes cannot be decoded: ${asError(cause).message}`,
        { cause },
      );
    }
  }

  /** Takes over the refs inside a value that arrived, before user code sees it. */
  claim(encoded: Encoded): void {
    if (encoded.referenceCount === 0 || encoded.references !== undefined) return;
    this.#unpack(encoded, this.#reviverFor(encoded, noSlots, true));
  }

  /** Gives back the refs inside a value that nobody will read, except those already taken over. */
  decline(encoded: Encoded): void {
    if (encoded.referenceCount <= (encoded.references?.length ?? 0)) return;
    const decline = (data: unknown): object => {
      this.#references.decline(data);
      return declined;
    };
    this.#unpack(encoded, this.#reviverFor(encoded, noSlots, true, decline));
  }

  /**
   * A second decoding of one value gets the refs of the first, because each ref is taken over once.
   */
  #reviverFor(
    encoded: Encoded,
    slots: readonly unknown[],
    referencesOnly = false,
    read: (data: unknown) => object = this.#references.read,
  ): Reviver {
    const known: object[] = [...(encoded.references ?? [])];
    let index = 0;
    encoded.references = known;
    return {
      buffers: encoded.buffers,
      slots,
      referencesOnly,
      failure: this.#bare.failure,
      reference: (data) => (known[index++] ??= read(data)),
    };
  }

  /**
   * Decodes an error. Parts that cannot be read here do not stop the rest.
   *
   * @throws RaySystemError on bytes that are no failure
   */
  decodeFailure(encoded: Encoded): FailureData {
    const data = this.#decodeLeniently(encoded);
    if (!isFailure(data)) throw new RaySystemError("malformed error payload from peer");
    return data;
  }

  #decodeLeniently(encoded: Encoded): unknown {
    try {
      return this.decode(encoded);
    } catch {
      const reviver = { ...this.#reviverFor(encoded, noSlots), isLenient: true };
      return this.#unpack(encoded, reviver);
    }
  }

  reviveFailure(failure: unknown): Error {
    return fromFailure(failure, this.#references.findClass);
  }
}

/** Returns the memory of a view, or the buffer itself. */
function memoryOf(part: object): object {
  return ArrayBuffer.isView(part) ? part.buffer : part;
}

/**
 * Packs under way: a getter inside a value may make a call, whose arguments are packed meanwhile.
 * The packers share their memory and their place in it, which belong to the outermost pack.
 */
let packing = 0;

function pack(
  value: unknown,
  root: string,
  buffers: readonly SharedArrayBuffer[],
  references: readonly object[],
): Encoded {
  let bytes: Uint8Array;
  packing += 1;
  try {
    bytes = packr.pack(value);
  } catch (cause) {
    throw refused(root, `cannot be packed: ${String(cause)}`);
  } finally {
    packing -= 1;
  }
  return encodedOf(bytes.length < outOfBandBytes ? bytes : shared(bytes), buffers, references);
}

function packTree(value: unknown, root: string, borrows: boolean): Encoded {
  let bytes: Buffer & { start: number; end: number };
  packing += 1;
  try {
    bytes = treePackr.pack(value, REUSE_BUFFER_MODE) as typeof bytes;
  } catch (cause) {
    throw refused(root, `cannot be packed: ${String(cause)}`);
  } finally {
    packing -= 1;
  }
  // This is the packer's own memory, with the window of this value. The packer continues behind the
  // window and does not write into it again.
  const { start, end } = bytes;
  if (end - start >= outOfBandBytes) {
    return encodedOf(shared(bytes.subarray(start, end)), noBuffers, noReferences);
  }
  if (!borrows || end - start < leastLentBytes || packing > 0) return windowOf(bytes, start, end);
  const lent = lentMemory.lend(end - start);
  lent.set(bytes.subarray(start, end));
  // The packer may write into the window again.
  treePackr.position = start;
  return { ...windowOf(lent, 0, end - start), isLent: true };
}

/** The value that was packed by hand. */
function smallWindow(): Encoded {
  const { bytes, start, end } = smallPacker;
  return windowOf(bytes, start, end);
}

/** A value without refs, and without buffers beside it. */
export function windowOf(bytes: Uint8Array, start: number, end: number): Encoded {
  return { bytes, start, end, buffers: noBuffers, referenceCount: 0, references: noReferences };
}

/** All of `bytes`. */
function encodedOf(
  bytes: Uint8Array,
  buffers: readonly SharedArrayBuffer[],
  references: readonly object[],
): Encoded {
  const end = bytes.length;
  return { bytes, start: 0, end, buffers, referenceCount: references.length, references };
}

/** Big bodies move once, into shared memory, and travel as handles from then on. */
function shared(bytes: Uint8Array): Uint8Array {
  const body = Buffer.from(allocateShared(bytes.length));
  copyBytes(bytes, body);
  // The packers share their memory and continue behind the last value, so a large one would stay
  // allocated.
  if (bytes.length >= packerBytes && packing === 0) packr.useBuffer(Buffer.allocUnsafeSlow(8192));
  return body;
}

/**
 * Copies a value that is kept into memory of its own size. Small values share the packer's memory
 * and would keep all of it alive.
 */
export function compact(encoded: Encoded): Encoded {
  const size = encoded.end - encoded.start;
  if (encoded.bytes.buffer.byteLength < 2 * size + 64) return encoded;
  return {
    ...encoded,
    bytes: encoded.bytes.slice(encoded.start, encoded.end),
    start: 0,
    end: size,
  };
}
