/**
 * Values that msgpackr must not see: a `Special` takes their place and is revived while unpacking.
 *
 * Unpacking is synchronous, so the current reviver is a variable of this module; nested unpacking
 * saves and restores it.
 */
import { types } from "node:util";
import { addExtension } from "msgpackr/pack";
import { RaySystemError } from "../../shared/errors.ts";
import { giveOut } from "../memory-pool.ts";
import { Links } from "./links.ts";
import { defineOwn, putTogether } from "./lists.ts";
import { serializers } from "./serializers.ts";

/** An object with an `id` contains itself; the inner mention is "later". */
export type SpecialContent =
  | readonly ["reference", unknown]
  | readonly ["error", unknown, id?: number]
  | readonly ["list", number, readonly number[], unknown[], unknown[], unknown[], id?: number]
  | readonly ["object", unknown[], unknown[], id?: number]
  | readonly ["later", number]
  | readonly ["boxed", unknown]
  | readonly ["pattern", unknown, string]
  | readonly ["memory", unknown]
  | readonly ["over", unknown, string, number, number]
  | readonly ["buffer", string, number, number, number]
  | readonly ["view", string, Uint8Array]
  | readonly ["class", string, unknown]
  | readonly ["slot", number]
  | readonly ["negative-zero"]
  | readonly ["text", Uint8Array];

/** Takes the place of a value that msgpackr must not see. */
export class Special {
  content: SpecialContent;
  constructor(content: SpecialContent) {
    this.content = content;
  }
}

/** The context of one decoding. */
export interface Reviver {
  readonly buffers: readonly SharedArrayBuffer[];
  readonly slots: readonly unknown[];
  readonly reference: (data: unknown) => object;
  readonly failure: (failure: unknown) => Error;
  /** Whether parts that cannot be revived become texts that say so. */
  readonly isLenient?: boolean;
  /**
   * Whether only refs are wanted: a host that passes a value on need not have the classes inside
   * it.
   */
  readonly referencesOnly: boolean;
}

let current: Reviver | undefined;
const noLinks: Links | undefined = undefined;
/** Links of the current decoding; made when an object contains itself. */
let links: Links | undefined = noLinks;

/** Runs `unpack`, whose specials are revived by `reviver`. */
export function reviving<T>(reviver: Reviver, unpack: () => T): T {
  const outer = current;
  const outerLinks = links;
  current = reviver;
  links = noLinks;
  try {
    const value = unpack();
    return links === undefined ? value : links.join(value);
  } finally {
    current = outer;
    links = outerLinks;
  }
}

function noted<T>(id: unknown, value: T): T {
  if (id === undefined) return value;
  links ??= new Links();
  return links.note(id, value);
}

addExtension({
  Class: Special,
  // "R", a number of msgpack's application range that msgpackr does not use.
  type: 0x52,
  write: (special: Special) => special.content,
  read: (content: SpecialContent) =>
    current?.isLenient === true ? reviveLeniently(content) : revive(content),
});

/** Marks a top-level ObjectRef argument whose value travels beside the arguments. */
export function slot(index: number): object {
  return new Special(["slot", index]);
}

type ViewConstructor = new (
  memory: ArrayBufferLike,
  offset: number,
  length: number,
) => ArrayBufferView;

/** Float16Array exists from Node 24 on. */
const { Float16Array }: { readonly Float16Array?: ViewConstructor } = globalThis;

const viewConstructors: Readonly<
  Record<string, ViewConstructor & { readonly BYTES_PER_ELEMENT?: number }>
> = {
  // Names come from peers: without a prototype they find only these classes.
  __proto__: null as never,
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  ...(Float16Array === undefined ? {} : { Float16Array }),
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
};

function viewOver(
  kind: string,
  memory: ArrayBufferLike,
  offset: number,
  byteLength: number,
): ArrayBufferView {
  if (kind === "Buffer") return Buffer.from(memory, offset, byteLength);
  const View = viewConstructors[kind];
  if (View === undefined) throw new RaySystemError(`this Node has no ${kind}`);
  return new View(memory, offset, byteLength / (View.BYTES_PER_ELEMENT ?? 1));
}

function reviveLeniently(content: SpecialContent): unknown {
  try {
    return revive(content);
  } catch (cause) {
    return `<a value that cannot be read here: ${String(cause)}>`;
  }
}

/** Specials that hold no refs: they are skipped when only refs are wanted. */
const withoutReferences: ReadonlySet<unknown> = new Set<SpecialContent[0]>([
  "error",
  "list",
  "object",
  "later",
  "over",
  "class",
  "slot",
]);

function revive(content: SpecialContent): unknown {
  const state = current;
  if (state === undefined)
    throw new RaySystemError("a special value was decoded outside a runtime");
  if (state.referencesOnly && withoutReferences.has(content[0])) return undefined;
  switch (content[0]) {
    case "reference":
      return state.reference(content[1]);
    case "error":
      return noted(content[2], state.failure(content[1]));
    case "list":
      return reviveList(content);
    case "object":
      return reviveObject(content);
    case "later":
      links ??= new Links();
      return links.standIn(content[1]);
    case "boxed":
      return boxed(content[1]);
    case "pattern":
      return new RegExp(textOf(content[1]), content[2]);
    case "memory":
      return memoryOf(content[1]);
    case "over":
      return viewOver(content[2], memoryOf(content[1]), content[3], content[4]);
    case "class":
      return reviveClass(content[1], content[2]);
    case "slot":
      return at(state.slots, content[1], "slot");
    case "negative-zero":
      return -0;
    case "text":
      return Buffer.from(bytesOf(content[1])).toString("utf16le");
    case "view": {
      const bytes = bytesOf(content[2]);
      return viewOver(content[1], Uint8Array.from(bytes).buffer, 0, bytes.byteLength);
    }
    case "buffer":
      return reviveBuffer(content, state.buffers);
    default:
      throw new RaySystemError(`unknown special value ${String(content[0])}`);
  }
}

type ContentOf<Kind extends SpecialContent[0]> = Extract<
  SpecialContent,
  readonly [Kind, ...unknown[]]
>;

function reviveList([, length, runs, items, names, values, id]: ContentOf<"list">): unknown {
  checkLists([runs, items, names, values]);
  return noted(id, putTogether({ length, runs, items, names, values }));
}

function reviveObject([, names, values, id]: ContentOf<"object">): unknown {
  checkLists([names, values]);
  return noted(id, objectOf(names, values));
}

function reviveBuffer(
  [, kind, index, offset, byteLength]: ContentOf<"buffer">,
  buffers: readonly SharedArrayBuffer[],
): unknown {
  const memory = at(buffers, index, "buffer");
  if (kind === "ArrayBuffer") return new Uint8Array(memory, offset, byteLength).slice().buffer;
  giveOut(memory);
  if (kind === "SharedArrayBuffer") return memory;
  return viewOver(kind, memory, offset, byteLength);
}

/** Returns an item by an index that a peer named; other properties of the list are out of reach. */
function at<T>(list: readonly T[], index: unknown, what: string): T {
  if (typeof index !== "number" || !(index >= 0 && index < list.length)) {
    throw new RaySystemError(`${what} ${String(index)} did not arrive`);
  }
  return list[index] as T;
}

function textOf(value: unknown): string {
  if (typeof value !== "string") throw new RaySystemError("malformed text from peer");
  return value;
}

/** Refuses data that only claims a length, because a view of it would be that long. */
function bytesOf(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new RaySystemError("malformed bytes from peer");
  return value;
}

function checkLists(lists: readonly unknown[]): void {
  if (!lists.every(Array.isArray)) throw new RaySystemError("malformed parts from peer: no lists");
}

function objectOf(names: readonly unknown[], values: readonly unknown[]): object {
  if (names.length !== values.length) {
    throw new RaySystemError("malformed object from peer: names and values do not fit");
  }
  const object = {};
  for (const [index, name] of names.entries()) {
    if (typeof name !== "string") throw new RaySystemError("malformed object from peer: no name");
    defineOwn(object, name, values[index]);
  }
  return object;
}

function boxed(primitive: unknown): unknown {
  if (primitive === null || primitive === undefined || typeof primitive === "object") {
    throw new RaySystemError("malformed primitive from peer");
  }
  return Object(primitive);
}

function memoryOf(value: unknown): ArrayBufferLike {
  if (!types.isAnyArrayBuffer(value)) throw new RaySystemError("malformed buffer from peer");
  return value;
}

function reviveClass(id: string, data: unknown): unknown {
  if (id === "URL") return new URL(textOf(data));
  const serializer = serializers.byId.get(id);
  if (serializer === undefined) {
    throw new RaySystemError(
      `no serializer "${id}" is registered here; call registerSerializer at the top of a module that both sides load`,
    );
  }
  return serializer.read(data);
}
