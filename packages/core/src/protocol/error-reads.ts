/**
 * Reads of a class of errors by its #private fields, which do not travel: an error that comes
 * back is an instance of its class without them, and its accessors would throw in the code that
 * catches it. Where it is thrown, the values of such accessors are read; where it is caught, they
 * become properties of the error.
 */
import { inspect } from "node:util";
import { gettersOf, prototypeOf } from "../shared/methods.ts";
import { defineOwn } from "./values/lists.ts";

/** Parts that every error carries by themselves. */
const carried: ReadonlySet<string> = new Set([
  "name",
  "message",
  "stack",
  "cause",
  "errors",
  "__proto__",
]);
const none: readonly string[] = [];
/** The accessors of classes of errors that were encoded, by their prototypes. */
const known: WeakMap<object, readonly string[]> = new WeakMap();

/** Returns the values of accessors that a copy of the error, made of its fields, cannot give. */
export function privateReads(error: Error): Readonly<Record<string, unknown>> | undefined {
  const prototype = prototypeOf(error);
  const names = prototype === null ? none : accessorsOf(prototype);
  if (names.length === 0) return undefined;
  const copy = {};
  Object.setPrototypeOf(copy, prototype);
  for (const key of [...Object.keys(error), "message", "cause", "errors"]) {
    if (Object.hasOwn(error, key)) hide(copy, key, readOr(error, key));
  }
  let reads: Record<string, unknown> | undefined;
  for (const name of names) {
    // One that came from elsewhere has such values as properties.
    if (Object.prototype.propertyIsEnumerable.call(error, name)) continue;
    const value = readOr(error, name);
    if (value === undefined || readOr(copy, name) !== undefined) continue;
    reads ??= {};
    defineOwn(reads, name, value);
  }
  return reads;
}

function accessorsOf(prototype: object): readonly string[] {
  let names = known.get(prototype);
  if (names === undefined) {
    // The constructor of a DOMException makes its own.
    const isOwn = prototype === DOMException.prototype;
    names = isOwn ? none : gettersOf(prototype).filter((name) => !carried.has(name));
    known.set(prototype, names);
  }
  return names;
}

/**
 * Defines the values that the class of the error cannot read here.
 *
 * @param reads what `privateReads` gave, as a peer sent it
 * @param isAtHome whether the class is known here; otherwise they are fields like the others
 */
export function defineReads(
  error: Error,
  reads: Readonly<Record<string, unknown>>,
  isAtHome: boolean,
): void {
  for (const [key, value] of Object.entries(reads)) {
    if (readOr(error, key) !== undefined) continue;
    if (isAtHome) hide(error, key, value);
    else defineOwn(error, key, value);
  }
}

type Shown = (this: unknown, ...args: unknown[]) => unknown;

/** Lets an error be shown also where its class needs #private fields for it. */
export function guardTexts(error: Error): void {
  guard(error, inspect.custom, (_depth, options) =>
    inspect(error, {
      ...(typeof options === "object" ? options : undefined),
      customInspect: false,
    }),
  );
  guard(error, "toString", () => Error.prototype.toString.call(error));
}

function guard(error: Error, key: string | symbol, instead: Shown): void {
  const shown = readOr(error, key);
  if (typeof shown !== "function" || shown === Error.prototype.toString) return;
  hide(error, key, (...args: readonly unknown[]): unknown => {
    try {
      return Reflect.apply(shown, error, args);
    } catch {
      // It says less about the error than its texts do.
      return Reflect.apply(instead, error, args);
    }
  });
}

/** Returns the value of a property; undefined: its accessor throws, too. */
export function readOr(error: object, key: string | symbol): unknown {
  try {
    return Reflect.get(error, key);
  } catch {
    // A class that cannot read its own state says nothing of the error.
    return undefined;
  }
}

function hide(target: object, key: string | symbol, value: unknown): void {
  Object.defineProperty(target, key, {
    value,
    enumerable: false,
    writable: true,
    configurable: true,
  });
}
