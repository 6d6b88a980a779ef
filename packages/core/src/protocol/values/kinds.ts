/**
 * Says what an object is, whatever realm it comes from: `instanceof` knows only the classes of this one, and values of `node:vm` and of some
 * test runners have classes of their own.
 *
 * Internal slots decide, as they do for structured clone. A class that extends a built-in one is another class: it has no kind here.
 */
import { types } from "node:util";

/** Kinds that travel. "object" is one without a class. */
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

/** Which slot makes it what it is: a prototype can be had without one. */
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

/** What `value` is, if its class is a built-in one of this realm and no view. */
export function ownKindOf(value: object, prototype: object): Kind | undefined {
  const known = ownKinds.get(prototype);
  return known !== undefined && known[1](value) ? known[0] : undefined;
}

/** What `value` is; undefined for an instance of any other class. Call it for what is neither a plain object of this realm nor a list. */
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

/** Whether its constructor was one of errors, whatever its class says now. Node's DOMException is no native error. */
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

/** An array of any realm, and not of a class that extends it: of the prototypes only that of Array itself is an array. */
export function isPlainArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && Array.isArray(Object.getPrototypeOf(value));
}

/** Whether it is the Object.prototype of another realm. */
function isForeignPlain(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "isPrototypeOf");
}

/** Whether it is the prototype of a built-in class of another realm, so many levels above the Object.prototype there. */
function isForeignClass(prototype: object, levels: number): boolean {
  let root = prototype;
  for (let level = 0; level < levels; level++) {
    const next = Object.getPrototypeOf(root) as object | null;
    if (next === null || next === Object.prototype) return false;
    root = next;
  }
  return isForeignPlain(root);
}

/** Reads the name of a built-in view class, which neither a subclass nor a property of its own hides. */
const viewName = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype) as object,
  Symbol.toStringTag,
) as { get(this: unknown): string | undefined };

const views: Readonly<Record<string, { readonly prototype: object } | undefined>> =
  globalThis as never;

/** The name of a view's class, if it is a built-in one and not a subclass of it. */
export function viewKind(view: ArrayBufferView): string | undefined {
  const prototype = Object.getPrototypeOf(view) as object;
  if (prototype === Buffer.prototype) return "Buffer";
  const name = viewName.get.call(view) ?? "DataView";
  if (prototype === views[name]?.prototype) return name;
  return isForeignClass(prototype, name === "DataView" ? 1 : 2) ? name : undefined;
}

/** Whether a view's class is that of this realm, which msgpackr knows. */
export function isOwnView(view: ArrayBufferView, kind: string): boolean {
  return Object.getPrototypeOf(view) === views[kind]?.prototype;
}
