/**
 * Decides which values may travel. It looks at a value before it is packed, because msgpackr
 * silently changes some values (a class instance becomes a plain object).
 *
 * `survey` is the fast pass: nothing special, something special inside, or something to refuse
 * (refusal.ts says what). Its cost grows with the content of a value: holes of arrays cost nothing.
 * It never changes a value.
 */
import { types } from "node:util";
import { isOwnView, isPlainArray, type Kind, kindOf, ownKindOf, viewKind } from "./kinds.ts";
import { hasOnlyItems } from "./lists.ts";
import { prototypeOf } from "../../shared/methods.ts";

/**
 * Buffers of this size and more travel out of band, as SharedArrayBuffer handles between threads
 * (measured: sharing pays from about 64 KiB).
 */
export const outOfBandBytes: number = 64 * 1024;

/** Deeper nesting is refused, because packing and unpacking recurse. */
export const maxDepth = 500;

/** The result of a survey. A tree is plain and contains no object twice. */
export type Survey = "tree" | "plain" | "special" | "refused";

/** The way a class travels: `write` gives encodable data, and `read` makes the instance again. */
export interface Serializer<T = unknown> {
  /** Names the class on every side; unique. */
  readonly id: string;
  /** Returns encodable data for an instance. */
  readonly write: (value: T) => unknown;
  /** Makes an instance from that data. */
  readonly read: (data: unknown) => T;
}

/** Tells the survey which objects the codec replaces: refs, handles and registered classes. */
export type IsSpecial = (value: object) => boolean;

/** @param depth the depth of `value` within the surveyed value */
export function survey(value: unknown, isSpecial: IsSpecial, depth = 0): Survey {
  if (typeof value !== "object" || value === null) return surveyPrimitive(value);
  const surveyor = new Surveyor(isSpecial);
  const found = surveyor.object(value, depth);
  return found === "plain" && !surveyor.isShared ? "tree" : found;
}

/**
 * Whether a value is a primitive, or a list of primitives, that needs no care. Most arguments and
 * results of small calls are flat.
 */
export function isFlat(value: unknown): boolean {
  if (!isPlainArray(value)) return isFlatPrimitive(value);
  return hasOnlyItems(value) && isFlatList(value);
}

/** Whether a list that has only items is flat. */
export function isFlatList(list: readonly unknown[]): boolean {
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    if (typeof item === "number") {
      if (item === 0 && 1 / item < 0) return false;
    } else if (item === undefined) {
      if (!Object.hasOwn(list, index)) return false;
    } else if (!isFlatPrimitive(item)) return false;
  }
  return true;
}

function isFlatPrimitive(value: unknown): boolean {
  return (typeof value !== "object" || value === null) && surveyPrimitive(value) === "plain";
}

/**
 * msgpackr writes -0 as 0 and a lone surrogate as three replacement characters; both travel as
 * special values.
 */
export function surveyPrimitive(value: unknown): Survey {
  switch (typeof value) {
    case "number":
      return value === 0 && 1 / value < 0 ? "special" : "plain";
    case "string":
      return value.isWellFormed() ? "plain" : "special";
    case "function":
    case "symbol":
      return "refused";
    default:
      return "plain";
  }
}

/** For short names a look at each character is faster than the call (measured). */
const shortName = 12;
const firstSurrogate = 0xd800;

/** Whether msgpackr keeps the name of a property. */
export function isPackedName(name: string): boolean {
  const { length } = name;
  if (length > shortName) return name.isWellFormed();
  for (let index = 0; index < length; index++) {
    if (name.charCodeAt(index) >= firstSurrogate) return name.isWellFormed();
  }
  return name !== "__proto__";
}

/**
 * Returns the reason why memory is unreadable, if it is: a transferred buffer has no memory, and a
 * resizable buffer may shrink below its view.
 */
export function memoryProblem(value: ArrayBufferView | ArrayBufferLike): string | undefined {
  const isView = ArrayBuffer.isView(value);
  const memory = isView ? value.buffer : value;
  if (!("detached" in memory)) return undefined;
  if (memory.detached) return "is detached: its buffer was transferred elsewhere";
  if (isView && memory.resizable && isOutOfBounds(value)) {
    return "is out of bounds: its buffer was made smaller";
  }
  return undefined;
}

function isOutOfBounds(view: ArrayBufferView): boolean {
  try {
    // Both reads touch nothing of a view that is in bounds, and throw for any other view.
    if (!types.isTypedArray(view)) return view.byteLength < 0;
    view.at(0);
    return false;
  } catch {
    return true;
  }
}

/** Among so few objects a linear search is faster than a table (measured). */
const fewObjects = 8;

/** One pass over a value. */
class Surveyor {
  /** Whether the value contains an object twice, or contains itself. */
  isShared = false;
  readonly #isSpecial: IsSpecial;
  readonly #first: object[] = [];
  /** All seen objects, once there are more than a few. */
  #seen: Set<object> | undefined;
  /** The memories of the views and buffers that were seen. */
  #memories: Set<ArrayBufferLike> | undefined;

  constructor(isSpecial: IsSpecial) {
    this.#isSpecial = isSpecial;
  }

  object(value: object, depth: number): Survey {
    if (this.#hasSeen(value)) {
      this.isShared = true;
      return "plain";
    }
    if (depth > maxDepth) return "refused";
    if (Array.isArray(value)) {
      if (isPlainArray(value)) return this.#list(value, depth);
      return this.#isSpecial(value) ? "special" : "refused";
    }
    const prototype = prototypeOf(value);
    if (prototype === Object.prototype || prototype === null) {
      return this.#fields(value, depth);
    }
    if (ArrayBuffer.isView(value)) {
      const kind = viewKind(value);
      if (kind !== undefined) return this.#view(value, kind);
    }
    const own = ownKindOf(value, prototype);
    if (own !== undefined) return this.#ofKind(own, value, prototype, depth);
    if (this.#isSpecial(value)) return "special";
    const kind = kindOf(value, prototype);
    return kind === undefined ? "refused" : asSpecial(this.#ofKind(kind, value, prototype, depth));
  }

  #ofKind(kind: Kind, value: object, prototype: object, depth: number): Survey {
    switch (kind) {
      case "map": {
        if (!types.isMap(value)) return "refused";
        const keys = this.#all([...value.keys()], depth);
        const values = keys === "refused" ? keys : this.#all([...value.values()], depth);
        return keys === "special" && values === "plain" ? keys : values;
      }
      case "set":
        return types.isSet(value) ? this.#all([...value], depth) : "refused";
      case "object":
        return this.#fields(value, depth);
      case "date":
        return "plain";
      case "pattern":
        return types.isRegExp(value) && value.source.isWellFormed() ? "plain" : "special";
      case "memory":
        return types.isAnyArrayBuffer(value) ? this.#buffer(value, prototype) : "refused";
      default:
        return "special";
    }
  }

  /** Remembers an object and returns whether it was known. */
  #hasSeen(value: object): boolean {
    if (this.#seen !== undefined) {
      const { size } = this.#seen;
      return this.#seen.add(value).size === size;
    }
    const first = this.#first;
    for (let index = 0; index < first.length; index++) if (first[index] === value) return true;
    first.push(value);
    if (first.length > fewObjects) this.#seen = new Set(first);
    return false;
  }

  /** A list is special unless it has all of its items and no other properties. */
  #list(list: readonly unknown[], depth: number): Survey {
    if (!hasOnlyItems(list)) return asSpecial(this.#all(Object.values(list), depth));
    let found: Survey = "plain";
    for (let index = 0; index < list.length; index++) {
      const item = list[index];
      let one: Survey;
      if (typeof item === "number") {
        if (item === 0 && 1 / item < 0) found = "special";
        continue;
      }
      if (typeof item === "object" && item !== null) one = this.object(item, depth + 1);
      else if (item === undefined) {
        if (Object.hasOwn(list, index)) continue;
        return asSpecial(this.#all(Object.values(list), depth));
      } else one = surveyPrimitive(item);
      if (one === "refused") return one;
      if (one === "special") found = one;
    }
    return found;
  }

  #fields(value: object, depth: number): Survey {
    const names = Object.keys(value);
    if (isArguments(value, names)) return "refused";
    const found = this.#all(Object.values(value), depth);
    if (found !== "plain") return found;
    for (const name of names) if (!isPackedName(name)) return "special";
    return found;
  }

  #view(view: ArrayBufferView, kind: string): Survey {
    const isData = kind === "DataView";
    // A positive length proves that the view is in bounds; the length of a DataView out of bounds
    // throws.
    if ((isData || view.byteLength === 0) && memoryProblem(view) !== undefined) return "refused";
    const memory = view.buffer;
    const isPacked = packedViews.has(kind) && isOwnView(view, kind);
    return isPacked && view.byteLength === memory.byteLength ? this.#memory(memory) : "special";
  }

  #buffer(memory: ArrayBufferLike, prototype: object): Survey {
    if (memoryProblem(memory) !== undefined) return "refused";
    return prototype === ArrayBuffer.prototype ? this.#memory(memory) : "special";
  }

  /** Memory is plain if msgpackr writes it as it is: small, and shown by at most one view. */
  #memory(memory: ArrayBufferLike): Survey {
    const isOwn = Object.getPrototypeOf(memory) === ArrayBuffer.prototype;
    if (!isOwn || memory.byteLength >= outOfBandBytes) return "special";
    if (this.#memories?.has(memory) === true) return "special";
    (this.#memories ??= new Set()).add(memory);
    return "plain";
  }

  #all(values: readonly unknown[], depth: number): Survey {
    let found: Survey = "plain";
    for (let index = 0; index < values.length; index++) {
      const value = values[index];
      const one =
        typeof value === "object" && value !== null
          ? this.object(value, depth + 1)
          : surveyPrimitive(value);
      if (one === "refused") return one;
      if (one === "special") found = one;
    }
    return found;
  }
}

/**
 * The `arguments` of a function look like a plain object, with names that few plain objects have.
 */
function isArguments(value: object, names: readonly string[]): boolean {
  return (names.length === 0 || names[0] === "0") && types.isArgumentsObject(value);
}

function asSpecial(found: Survey): Survey {
  return found === "refused" ? found : "special";
}

/** Views that msgpackr reads and writes without loss. */
const packedViews: ReadonlySet<string> = new Set([
  "Int8Array",
  "Uint8Array",
  "Uint8ClampedArray",
  "Int16Array",
  "Uint16Array",
  "Int32Array",
  "Uint32Array",
  "Float32Array",
  "Float64Array",
  "BigInt64Array",
  "BigUint64Array",
  "DataView",
]);
