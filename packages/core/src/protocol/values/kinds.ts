/**
 * Finds the kind of an object from any realm: `instanceof` knows only the classes of this realm,
 * and values of `node:vm` and of some test runners have classes of their own.
 *
 * Internal slots decide, as in structured clone. A class that extends a built-in class has no kind
 * here.
 */
import { types } from "node:util";
import { prototypeOf } from "../../shared/methods.ts";

/** Kinds that travel. An "object" has no class. */
export type Kind =
  | "list"
  | "object"
  | "map"
  | "set"
  | "date"
  | "pattern"
  | "error"
  | "view"
  | "memory"
  | "boxed";

type Check = (value: unknown) => boolean;

/** The slot that decides each kind; an object may have the prototype without the slot. */
const ownKinds: ReadonlyMap<unknown, readonly [Kind, Check]> = new Map<
  unknown,
  readonly [Kind, Check]
>([
  [Map.prototype, ["map", types.isMap]],
  [Set.prototype, ["set", types.isSet]],
  [Date.prototype, ["date", types.isDate]],
  [RegExp.prototype, ["pattern", types.isRegExp]],
  [ArrayBuffer.prototype, ["memory", types.isArrayBuffer]],
  [SharedArrayBuffer.prototype, ["memory", types.isSharedArrayBuffer]],
  [Number.prototype, ["boxed", types.isNumberObject]],
  [String.prototype, ["boxed", types.isStringObject]],
  [Boolean.prototype, ["boxed", types.isBooleanObject]],
  [BigInt.prototype, ["boxed", types.isBigIntObject]],
]);

/** Returns the kind of `value` if its class is a built-in class of this realm and not a view. */
export function ownKindOf(value: object, prototype: object): Kind | undefined {
  const known = ownKinds.get(prototype);
  return known !== undefined && known[1](value) ? known[0] : undefined;
}

/**
 * Returns the kind of `value`, or undefined for an instance of any other class. The caller has
 * already handled lists and plain objects of this realm.
 */
export function kindOf(value: object, prototype: object): Kind | undefined {
  if (ArrayBuffer.isView(value)) return viewKind(value) === undefined ? undefined : "view";
  if (isError(value)) return "error";
  const own = ownKindOf(value, prototype);
  if (own !== undefined) return own;
  const kind = slotKind(value);
  if (kind !== undefined) return isForeignClass(prototype, 1) ? kind : undefined;
  const isPlain = isForeignPlain(prototype) && !types.isArgumentsObject(value);
  return isPlain ? "object" : undefined;
}

/**
 * Whether a constructor of errors made it, whatever its class is now. Node's DOMException is no
 * native error.
 */
export function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error || value instanceof DOMException;
}

function slotKind(value: object): Kind | undefined {
  if (types.isMap(value)) return "map";
  if (types.isSet(value)) return "set";
  if (types.isDate(value)) return "date";
  if (types.isRegExp(value)) return "pattern";
  if (types.isAnyArrayBuffer(value)) return "memory";
  if (types.isBoxedPrimitive(value) && !types.isSymbolObject(value)) return "boxed";
  return undefined;
}

/**
 * Whether it is an array of any realm and of no subclass: the only prototype that is itself an
 * array is Array's.
 */
export function isPlainArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && Array.isArray(Object.getPrototypeOf(value));
}

/** Whether it is the Object.prototype of another realm. */
function isForeignPlain(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "isPrototypeOf");
}

/**
 * Whether it is the prototype of a built-in class of another realm, this many levels above the
 * Object.prototype there.
 */
function isForeignClass(prototype: object, levels: number): boolean {
  let root = prototype;
  for (let level = 0; level < levels; level++) {
    const next = prototypeOf(root);
    if (next === null || next === Object.prototype) return false;
    root = next;
  }
  return isForeignPlain(root);
}

/** Reads the name of a built-in view class. Neither a subclass nor an own property hides it. */
const viewName: { readonly get?: (this: unknown) => unknown } | undefined =
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);

const prototypesHere: Map<string, unknown> = new Map();

/** Returns the prototype of a built-in class of this realm. */
function prototypeHere(name: string): unknown {
  let known = prototypesHere.get(name);
  if (known === undefined) {
    const found: unknown = Reflect.get(globalThis, name);
    known = typeof found === "function" ? found.prototype : undefined;
    prototypesHere.set(name, known);
  }
  return known;
}

/** Returns the name of a view's class, if it is a built-in class and not a subclass. */
export function viewKind(view: ArrayBufferView): string | undefined {
  const prototype = prototypeOf(view);
  if (prototype === null) return undefined;
  if (prototype === Buffer.prototype) return "Buffer";
  const given = viewName?.get?.call(view);
  const name = typeof given === "string" ? given : "DataView";
  if (prototype === prototypeHere(name)) return name;
  return isForeignClass(prototype, name === "DataView" ? 1 : 2) ? name : undefined;
}

/** Whether a view's class belongs to this realm; msgpackr knows only these. */
export function isOwnView(view: ArrayBufferView, kind: string): boolean {
  return Object.getPrototypeOf(view) === prototypeHere(kind);
}
