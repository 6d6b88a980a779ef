/**
 * One encoding of a value that contains something special: it makes a copy with the specials in
 * place, and collects what travels beside it.
 *
 * It copies only containers; cycles and shared parts keep their shape. It runs after the survey, so
 * every part may travel, except the output of serializers and cycles through their classes.
 */
import { types } from "node:util";
import { isPackedName, maxDepth, surveyPrimitive } from "./encodable.ts";
import { type FindOrigin, toErrorContent } from "../failure.ts";
import { isError, isPlainArray, kindOf, viewKind } from "./kinds.ts";
import { hasOnlyItems, takeApart } from "./lists.ts";
import { Memories } from "./memories.ts";
import { serializers } from "./serializers.ts";
import { isOurs } from "../shared-memory.ts";
import { slot, Special, type SpecialContent } from "./special.ts";
import { prototypeOf } from "../../shared/methods.ts";

/** Writes refs and handles, and finds the modules of error classes. */
export interface WritingRules {
  readonly isReference: (value: object) => boolean;
  readonly write: (value: object) => unknown;
  readonly findOrigin?: FindOrigin;
}

/** The codec's services for one encoding. */
export interface WritingHelp {
  readonly encodable: (value: unknown, depth: number) => boolean;
  /** Makes the error which says that `part` cannot travel, with its path in the value. */
  readonly refuse: (part: object, reason: string) => Error;
  /** Makes the error for the first part of a serializer's output for `part` that cannot travel. */
  readonly refuseWritten: (part: object, written: unknown) => Error;
}

/** A composed object whose parts are being replaced. */
interface Open {
  readonly order: number;
  /** Whether an inner part mentions it; then it gets a number. */
  isMentioned: boolean;
}

/** Gives each AbortSignal a slot: its state travels beside the value. */
export interface SignalPlaces {
  add(signal: AbortSignal): number;
}

export class Writing {
  readonly references: object[] = [];
  /** The user's own shared memory, if a buffer is of that kind. */
  live: SharedArrayBuffer | undefined;
  readonly #rules: WritingRules;
  readonly #help: WritingHelp;
  readonly #signals: SignalPlaces | undefined;
  readonly #copies: Map<object, unknown> = new Map();
  #open: Map<object, Open> | undefined;
  readonly #memories: Memories = new Memories();
  /** Orders of the open instances that a serializer writes. */
  readonly #written: number[] = [];
  #opened = 0;
  #depth = 0;

  constructor(rules: WritingRules, help: WritingHelp, signals?: SignalPlaces) {
    this.#rules = rules;
    this.#help = help;
    this.#signals = signals;
  }

  get buffers(): readonly SharedArrayBuffer[] {
    return this.#memories.carried;
  }

  /** Returns the value to pack. */
  write(value: unknown): unknown {
    const replaced = this.#replace(value);
    this.#memories.settle();
    return replaced;
  }

  #replace(value: unknown): unknown {
    if (typeof value !== "object" || value === null) {
      if (surveyPrimitive(value) !== "special") return value;
      if (typeof value === "number") return new Special(["negative-zero"]);
      return textSpecial(String(value));
    }
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    const open = this.#open?.get(value);
    if (open !== undefined) return this.#mention(value, open);
    this.#depth += 1;
    const copy = this.#copy(value);
    this.#depth -= 1;
    return copy;
  }

  #keep<Copy>(value: object, copy: Copy): Copy {
    this.#copies.set(value, copy);
    return copy;
  }

  #copy(value: object): unknown {
    if (isPlainArray(value)) return this.#list(value);
    const prototype = prototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return this.#object(value);
    if (ArrayBuffer.isView(value)) {
      const kind = viewKind(value);
      if (kind !== undefined) return this.#keep(value, this.#view(value, kind));
    }
    if (value instanceof Special) return value;
    if (this.#rules.isReference(value)) {
      this.references.push(value);
      return this.#keep(value, new Special(["reference", this.#rules.write(value)]));
    }
    if (isError(value)) return this.#error(value);
    if (this.#signals !== undefined && value instanceof AbortSignal) {
      return this.#keep(value, slot(this.#signals.add(value)));
    }
    if (value instanceof URL) {
      return this.#keep(value, new Special(["class", "URL", value.href]));
    }
    const serializer = serializers.byClass.get(value.constructor);
    if (serializer !== undefined) {
      return this.#made(value, true, () => {
        const written = serializer.write(value);
        if (!this.#help.encodable(written, this.#depth)) {
          throw this.#help.refuseWritten(value, written);
        }
        return ["class", serializer.id, this.#replace(written)];
      });
    }
    switch (kindOf(value, prototype)) {
      case "object":
        return this.#object(value);
      case "map": {
        const copy = this.#keep(value, new Map<unknown, unknown>());
        const map: ReadonlyMap<unknown, unknown> = types.isMap(value) ? value : new Map();
        for (const [key, child] of map) copy.set(this.#replace(key), this.#replace(child));
        return copy;
      }
      case "set": {
        const copy = this.#keep(value, new Set<unknown>());
        const set: ReadonlySet<unknown> = types.isSet(value) ? value : new Set();
        for (const child of set) copy.add(this.#replace(child));
        return copy;
      }
      case "date":
        return this.#keep(value, new Date(Date.prototype.getTime.call(value)));
      case "pattern": {
        const { source, flags } = value as RegExp;
        if (source.isWellFormed()) return this.#keep(value, new RegExp(source, flags));
        return this.#keep(value, new Special(["pattern", textSpecial(source), flags]));
      }
      case "boxed":
        return this.#keep(value, new Special(["boxed", this.#replace(unboxed(value))]));
      default:
        return this.#keep(value, this.#buffer(value as ArrayBufferLike));
    }
  }

  #list(list: readonly unknown[]): unknown {
    if (hasOnlyItems(list) && !hasHole(list)) {
      const copy = this.#keep<unknown[]>(list, []);
      for (let index = 0; index < list.length; index++) copy.push(this.#replace(list[index]));
      return copy;
    }
    return this.#made(list, false, () => {
      const { length, runs, items, names, values } = takeApart(list);
      const replace = (one: unknown): unknown => this.#replace(one);
      return ["list", length, runs, items.map(replace), names.map(replace), values.map(replace)];
    });
  }

  #object(value: object): unknown {
    const names = Object.keys(value);
    if (names.every(isPackedName)) {
      const copy = this.#keep<Record<string, unknown>>(value, {});
      for (const name of names) copy[name] = this.#replace(Reflect.get(value, name));
      return copy;
    }
    return this.#made(value, false, () => {
      const replaced = names.map((name) => this.#replace(name));
      return ["object", replaced, names.map((name) => this.#replace(Reflect.get(value, name)))];
    });
  }

  #error(error: Error): Special {
    const depth = this.#depth;
    // An error is five containers deep and may contain errors: it is cut where a reader would
    // refuse its depth.
    const encodable = (value: unknown): boolean =>
      depth < maxDepth && (isError(value) || this.#help.encodable(value, depth));
    return this.#made(error, false, () => {
      const content = toErrorContent(error, encodable, this.#rules.findOrigin);
      return ["error", this.#replace(content)];
    });
  }

  /**
   * Makes the special of an object that the receiver builds from its parts. If the object contains
   * itself, its number is the last part.
   */
  #made(value: object, isWritten: boolean, parts: () => SpecialContent): Special {
    const open: Open = { order: (this.#opened += 1), isMentioned: false };
    (this.#open ??= new Map()).set(value, open);
    if (isWritten) this.#written.push(open.order);
    const content = parts();
    if (isWritten) this.#written.pop();
    this.#open.delete(value);
    const all = open.isMentioned
      ? ([...content, open.order] as unknown as SpecialContent)
      : content;
    return this.#keep(value, new Special(all));
  }

  #mention(value: object, open: Open): Special {
    const written = this.#written.at(-1) ?? 0;
    if (written >= open.order) {
      throw this.#help.refuse(
        value,
        "contains itself by way of a class with a serializer, which can only be made from parts that are there",
      );
    }
    open.isMentioned = true;
    return new Special(["later", open.order]);
  }

  #view(view: ArrayBufferView, kind: string): Special {
    const { buffer, byteOffset, byteLength } = view;
    return this.#memories.add({ kind, memory: this.#known(buffer), byteOffset, byteLength });
  }

  #buffer(memory: ArrayBufferLike): Special {
    const kind = types.isSharedArrayBuffer(memory) ? "SharedArrayBuffer" : "ArrayBuffer";
    const { byteLength } = memory;
    return this.#memories.add({ kind, memory: this.#known(memory), byteOffset: 0, byteLength });
  }

  #known(memory: ArrayBufferLike): ArrayBufferLike {
    if (types.isSharedArrayBuffer(memory) && !isOurs(memory)) this.live ??= memory;
    return memory;
  }
}

function textSpecial(text: string): Special {
  return new Special(["text", new Uint8Array(Buffer.from(text, "utf16le"))]);
}

function hasHole(list: readonly unknown[]): boolean {
  for (let index = 0; index < list.length; index++) {
    if (list[index] === undefined && !Object.hasOwn(list, index)) return true;
  }
  return false;
}

/** Returns the primitive inside a boxed object of any realm. */
function unboxed(value: object): unknown {
  if (types.isNumberObject(value)) return Number.prototype.valueOf.call(value);
  if (types.isStringObject(value)) return String.prototype.valueOf.call(value);
  if (types.isBooleanObject(value)) return Boolean.prototype.valueOf.call(value);
  return BigInt.prototype.valueOf.call(value as unknown as bigint);
}
