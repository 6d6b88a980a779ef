/**
 * What may travel. Looks at a value before it is packed, because msgpackr would let some things through silently changed
 * (a class instance becomes a plain object) or throw without saying where they are.
 *
 * `survey` is the fast pass: nothing special, something special inside, or something that must be refused. `refusalOf` is the
 * slow pass that runs only after a refusal and names the path. Values are never changed here.
 */
import { NotEncodableError } from "../shared/errors.ts";

/** Buffers of this size and more travel out of band, as SharedArrayBuffer handles between threads (measured: sharing pays from about 64 KiB). */
export const outOfBandBytes: number = 64 * 1024;

/** Deeper nesting is refused: packing and unpacking recurse. */
export const maxDepth = 500;

export type Survey = "plain" | "special" | "refused";

/** How to carry a class across: `write` gives encodable data, `read` makes the instance again. */
export interface Serializer<T = unknown> {
  readonly id: string;
  readonly write: (value: T) => unknown;
  readonly read: (data: unknown) => T;
}

/** Tells the survey which objects the codec replaces: refs, handles and registered classes. */
export type IsSpecial = (value: object) => boolean;

export function survey(value: unknown, isSpecial: IsSpecial): Survey {
  if (typeof value === "object" && value !== null)
    return surveyObject(value, isSpecial, new Set(), 0);
  return surveyPrimitive(value);
}

/** A primitive, or a list of nothing but primitives, none of which needs care: most arguments and results of small calls. */
export function isFlat(value: unknown): boolean {
  if (!isPlainArray(value)) return isFlatPrimitive(value);
  for (let index = 0; index < value.length; index++) {
    if (!isFlatPrimitive(value[index])) return false;
  }
  return true;
}

/** An array of this realm or another one, and not of a class that extends it: of the prototypes only that of Array itself is an array. */
export function isPlainArray(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && Array.isArray(Object.getPrototypeOf(value));
}

function isFlatPrimitive(value: unknown): boolean {
  return (typeof value !== "object" || value === null) && surveyPrimitive(value) === "plain";
}

/** msgpackr writes -0 as 0 and a lone surrogate as three replacement characters; both travel as special values. */
export function surveyPrimitive(value: unknown): Survey {
  switch (typeof value) {
    case "number":
      return Object.is(value, -0) ? "special" : "plain";
    case "string":
      return value.isWellFormed() ? "plain" : "special";
    case "function":
    case "symbol":
      return "refused";
    default:
      return "plain";
  }
}

function surveyObject(
  value: object,
  isSpecial: IsSpecial,
  seen: Set<object>,
  depth: number,
): Survey {
  if (seen.has(value)) return "plain";
  if (depth > maxDepth) return "refused";
  seen.add(value);
  if (isPlainArray(value)) return surveyAll(value, isSpecial, seen, depth);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    if (Object.hasOwn(value, "__proto__")) return "refused";
    return surveyAll(Object.values(value), isSpecial, seen, depth);
  }
  if (prototype === Map.prototype) {
    const map = value as Map<unknown, unknown>;
    const keys = surveyAll(map.keys(), isSpecial, seen, depth);
    const values = keys === "refused" ? keys : surveyAll(map.values(), isSpecial, seen, depth);
    return keys === "plain" ? values : values === "refused" ? values : keys;
  }
  if (prototype === Set.prototype) return surveyAll(value as Set<unknown>, isSpecial, seen, depth);
  if (prototype === Date.prototype || prototype === RegExp.prototype) return "plain";
  if (isSpecial(value)) return "special";
  if (ArrayBuffer.isView(value)) {
    const kind = viewKind(value);
    if (kind === undefined || isDetached(value.buffer)) return "refused";
    return value.byteLength >= outOfBandBytes ||
      !packedViews.has(kind) ||
      value.buffer instanceof SharedArrayBuffer
      ? "special"
      : "plain";
  }
  if (value instanceof ArrayBuffer) {
    if (isDetached(value)) return "refused";
    return value.byteLength >= outOfBandBytes ? "special" : "plain";
  }
  if (value instanceof SharedArrayBuffer || value instanceof Error) return "special";
  // A plain object of another realm (node:vm) is rebuilt as one of ours.
  return isForeignPlain(prototype) ? surveyForeign(value, isSpecial, seen, depth) : "refused";
}

/** It was transferred, and holds nothing any more. */
function isDetached(buffer: ArrayBufferLike): boolean {
  return buffer instanceof ArrayBuffer && buffer.detached;
}

function surveyForeign(
  value: object,
  isSpecial: IsSpecial,
  seen: Set<object>,
  depth: number,
): Survey {
  return surveyAll(Object.values(value), isSpecial, seen, depth) === "refused"
    ? "refused"
    : "special";
}

/** Whether it is the Object.prototype of another realm. */
export function isForeignPlain(prototype: unknown): boolean {
  return (
    typeof prototype === "object" &&
    prototype !== null &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, "isPrototypeOf")
  );
}

/** Views that msgpackr writes and reads as what they are. */
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

/** The name of a view's class, if it is a built-in one and not a subclass of it. */
export function viewKind(view: ArrayBufferView): string | undefined {
  if (Buffer.isBuffer(view)) return "Buffer";
  const { name } = view.constructor;
  const builtIn = (globalThis as Readonly<Record<string, unknown>>)[name];
  const isBuiltIn = packedViews.has(name) || name === "Float16Array";
  return isBuiltIn && view.constructor === builtIn ? name : undefined;
}

function surveyAll(
  values: Iterable<unknown>,
  isSpecial: IsSpecial,
  seen: Set<object>,
  depth: number,
): Survey {
  let found: Survey = "plain";
  for (const value of values) {
    const one =
      typeof value === "object" && value !== null
        ? surveyObject(value, isSpecial, seen, depth + 1)
        : surveyPrimitive(value);
    if (one === "refused") return one;
    if (one === "special") found = one;
  }
  return found;
}

/** The first thing in `value` that cannot travel, with its path. Call it only after `survey` refused. */
export function refusalOf(value: unknown, root: string, isSpecial: IsSpecial): NotEncodableError {
  const found = findRefusal(value, root, isSpecial, new Set(), 0);
  return found ?? new NotEncodableError(root, "cannot be encoded");
}

function findRefusal(
  value: unknown,
  path: string,
  isSpecial: IsSpecial,
  seen: Set<object>,
  depth: number,
): NotEncodableError | undefined {
  if (typeof value === "function") return new NotEncodableError(path, "is a function");
  if (typeof value === "symbol")
    return new NotEncodableError(path, `is a symbol (${String(value)})`);
  if (typeof value !== "object" || value === null || seen.has(value)) return undefined;
  if (depth > maxDepth)
    return new NotEncodableError(path, `is nested deeper than ${maxDepth} levels`);
  seen.add(value);
  if (surveyObject(value, isSpecial, new Set(), depth) !== "refused") return undefined;
  const inside = (child: unknown, childPath: string): NotEncodableError | undefined =>
    findRefusal(child, childPath, isSpecial, seen, depth + 1);
  if (isPlainArray(value)) {
    return firstOf(value.map((child, index) => () => inside(child, `${path}[${index}]`)));
  }
  const prototype = Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null;
  if (prototype === Map.prototype) {
    return firstOf(
      [...(value as Map<unknown, unknown>)].flatMap(([key, child]) => [
        () => inside(key, `${path}.keys(${keyText(key)})`),
        () => inside(child, `${path}.get(${keyText(key)})`),
      ]),
    );
  }
  if (prototype === Set.prototype) {
    return firstOf(
      [...(value as Set<unknown>)].map(
        (child, index) => () => inside(child, `${path}.values()[${index}]`),
      ),
    );
  }
  if (prototype === Object.prototype || prototype === null) {
    if (Object.hasOwn(value, "__proto__")) {
      return new NotEncodableError(path, 'has an own key "__proto__"');
    }
    return firstOf(
      Object.entries(value).map(
        ([key, child]) =>
          () =>
            inside(child, `${path}${propertyText(key)}`),
      ),
    );
  }
  const className = prototype.constructor?.name || "an unnamed class";
  if (value instanceof Promise) return new NotEncodableError(path, "is a Promise; await it first");
  const buffer = ArrayBuffer.isView(value) ? value.buffer : value;
  if (buffer instanceof ArrayBuffer && buffer.detached) {
    return new NotEncodableError(path, "is detached: its buffer was transferred elsewhere");
  }
  if (className === "ObjectRefGenerator") {
    return new NotEncodableError(
      path,
      "is a stream, which one reader takes items from: pass the refs that it gives, or call the method where they are wanted",
    );
  }
  return new NotEncodableError(
    path,
    `is an instance of ${className}; pass plain data, or register a serializer for the class`,
  );
}

function firstOf(
  searches: readonly (() => NotEncodableError | undefined)[],
): NotEncodableError | undefined {
  for (const search of searches) {
    const found = search();
    if (found !== undefined) return found;
  }
  return undefined;
}

function propertyText(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function keyText(key: unknown): string {
  if (typeof key === "string") return JSON.stringify(key);
  return typeof key === "number" || typeof key === "boolean" ? `${key}` : "…";
}
