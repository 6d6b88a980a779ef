/**
 * Finds what cannot travel, and why. This slow pass over a value runs only after the survey refused
 * it, or to find the path of a part.
 *
 * It follows the order of the survey, reads each part once, and does not throw when a read fails.
 */
import { types } from "node:util";
import { NotEncodableError } from "../../shared/errors.ts";
import { type IsSpecial, maxDepth, memoryProblem } from "./encodable.ts";
import { isPlainArray, type Kind, kindOf } from "./kinds.ts";
import { namesOwnFile } from "../../shared/own-files.ts";
import { isClass, prototypeOf } from "../../shared/methods.ts";

/** Returns the error for the first part of `value` that cannot travel, with its path. */
export function refusalOf(value: unknown, root: string, isSpecial: IsSpecial): NotEncodableError {
  const found = findIn(value, root, isSpecial, (one, depth) => problemOf(one, depth, isSpecial));
  return found ?? refused(root, "cannot be encoded");
}

/**
 * Returns an error which says that the object `target` inside `value` cannot travel, and where it
 * is.
 */
export function refusalAt(
  { target, reason }: { readonly target: object; readonly reason: string },
  value: unknown,
  root: string,
  isSpecial: IsSpecial,
): NotEncodableError {
  const found = findIn(value, root, isSpecial, (one) => (one === target ? reason : undefined));
  return found ?? refused(root, reason);
}

/** Returns the path of the first part of `value` that `matches` accepts. */
export function pathOf(
  value: unknown,
  root: string,
  isSpecial: IsSpecial,
  matches: (part: object) => boolean,
): string | undefined {
  const found = findIn(value, root, isSpecial, (one) =>
    typeof one === "object" && one !== null && matches(one) ? "is it" : undefined,
  );
  return found?.path;
}

/**
 * Returns an error whose stack begins with the code that gave the value. Above it are only frames
 * of this package, and a deep value has many.
 */
export function refused(path: string, what: string, more?: ErrorOptions): NotEncodableError {
  const { stackTraceLimit } = Error;
  let error: NotEncodableError;
  try {
    // A program may have frozen Error.
    Reflect.set(Error, "stackTraceLimit", Number.POSITIVE_INFINITY);
    error = new NotEncodableError(path, what, more);
  } finally {
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  }
  // A formatter of the user's may give anything.
  const stack: unknown = error.stack;
  if (typeof stack !== "string") return error;
  const [head = "", ...frames] = stack.split(frameStart);
  const first = frames.findIndex((frame) => !namesOwnFile(frame) && !nodeFrame.test(frame));
  const theirs = frames.slice(Math.max(first, 0)).slice(0, stackTraceLimit);
  error.stack = [head, ...theirs].join(frameStart);
  return error;
}

const frameStart = "\n    at ";
/** A frame of V8, such as that of `Array.map`, or of Node. */
const nodeFrame = /\(<anonymous>\)$|\bnode:/;

type Problem = (value: unknown, depth: number) => string | undefined;

interface Part {
  readonly path: string;
  readonly read: () => unknown;
}

function findIn(
  value: unknown,
  root: string,
  isSpecial: IsSpecial,
  problem: Problem,
): NotEncodableError | undefined {
  const seen = new Set<object>();
  const look = (one: unknown, path: string, depth: number): NotEncodableError | undefined => {
    let what: string | undefined;
    try {
      what = problem(one, depth);
    } catch (cause) {
      // A proxy throws, or was revoked.
      return refused(path, `cannot be read: ${String(cause)}`, { cause });
    }
    if (what !== undefined) return refused(path, what);
    if (typeof one !== "object" || one === null || seen.has(one)) return undefined;
    seen.add(one);
    for (const part of partsOf(one, path, isSpecial)) {
      let child: unknown;
      try {
        child = part.read();
      } catch (cause) {
        return refused(part.path, `cannot be read: ${String(cause)}`, { cause });
      }
      const found = look(child, part.path, depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return look(value, root, 0);
}

/** Yields the parts of a container, in the order of the survey. */
function* partsOf(value: object, path: string, isSpecial: IsSpecial): Generator<Part> {
  const kind = containerKind(value, isSpecial);
  if (kind === "list" || kind === "object") {
    for (const key of Object.keys(value)) {
      const isItem = kind === "list" && /^\d+$/.test(key);
      yield {
        path: path + (isItem ? `[${key}]` : propertyText(key)),
        read: (): unknown => Reflect.get(value, key),
      };
    }
  } else if (types.isMap(value)) {
    const map: ReadonlyMap<unknown, unknown> = value;
    for (const key of map.keys()) yield { path: `${path}.keys(${keyText(key)})`, read: () => key };
    for (const [key, one] of map) yield { path: `${path}.get(${keyText(key)})`, read: () => one };
  } else if (types.isSet(value)) {
    const set: ReadonlySet<unknown> = value;
    let index = 0;
    for (const one of set) {
      yield { path: `${path}.values()[${index++}]`, read: () => one };
    }
  }
}

function containerKind(value: object, isSpecial: IsSpecial): Kind | undefined {
  if (Array.isArray(value)) return isPlainArray(value) ? "list" : undefined;
  const prototype = prototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return "object";
  return isSpecial(value) ? undefined : kindOf(value, prototype);
}

function problemOf(value: unknown, depth: number, isSpecial: IsSpecial): string | undefined {
  if (isClass(value)) return "is a class; pass data, or the actor class that remote() makes of it";
  if (typeof value === "function") {
    return "is a function; pass what it works on, or a remote function";
  }
  if (typeof value === "symbol") return `is a symbol (${String(value)})`;
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
  const advice = adviceFor(value);
  if (advice !== undefined) return advice;
  const kind = containerKind(value, isSpecial);
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) {
    if (kind === "view" || kind === "memory") return memoryProblem(value);
  }
  if (kind !== undefined || isSpecial(value)) return undefined;
  if (value instanceof AbortSignal) {
    return "is an AbortSignal, which travels only as an argument of a call, for as long as that call runs: pass it to the call, or end the call with ray.cancel";
  }
  return `is ${nameOf(value)}; pass plain data, or register a serializer for the class`;
}

function nameOf(value: object): string {
  const { constructor }: { readonly constructor?: unknown } = value;
  const name = typeof constructor === "function" ? constructor.name : "";
  const what = `an instance of ${name === "" ? "an unnamed class" : name}`;
  return types.isProxy(value) ? `a proxy of ${what}` : what;
}

/** Returns advice for kinds of objects, whatever realm they come from. */
function adviceFor(value: object): string | undefined {
  if (types.isPromise(value)) return "is a Promise; await it first";
  if (types.isGeneratorObject(value)) {
    return "is a generator; pass a list of what it gives ([...generator]), or have a method yield it";
  }
  if (types.isArgumentsObject(value)) return "is an arguments object; pass [...arguments]";
  if (types.isSymbolObject(value)) return "is a symbol in an object";
  const name = classOf(value);
  if (name === "ObjectRefGenerator") {
    return "is a stream, which one reader takes items from: pass the refs that it gives, or call the method where they are wanted";
  }
  return Object.hasOwn(adviceByClass, name)
    ? `is an instance of ${name}; ${adviceByClass[name]}`
    : undefined;
}

function classOf(value: object): string {
  if (types.isProxy(value)) return "";
  const prototype: { readonly constructor?: unknown } | null = prototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return "";
  const { constructor } = prototype;
  return typeof constructor === "function" ? constructor.name : "";
}

/** Advice by class name, for classes whose instances do not travel. */
const adviceByClass: Readonly<Record<string, string>> = {
  WeakMap: "nobody can list what is in it: pass a Map",
  WeakSet: "nobody can list what is in it: pass a Set",
  WeakRef: "pass what it refers to (ref.deref())",
  Blob: "pass its bytes (await blob.bytes()) and its type",
  File: "pass its bytes (await file.bytes()), name and type",
  FormData: "pass its entries ([...form])",
  Headers: "pass its entries ([...headers])",
  URLSearchParams: "pass its text (String(parameters))",
  Request: "pass its url, method, headers and body as data",
  Response: "pass its status and body (await response.bytes())",
  ReadableStream: "have a method yield its chunks, or pass what it gives as data",
  WritableStream: "pass a handle of an actor that writes",
  TransformStream: "pass a handle of an actor that transforms",
  KeyObject: "pass what it exports (key.export())",
  PublicKeyObject: "pass what it exports (key.export())",
  PrivateKeyObject: "pass what it exports (key.export())",
  SecretKeyObject: "pass what it exports (key.export())",
  CryptoKey: "pass what crypto.subtle.exportKey gives",
  X509Certificate: "pass its text (String(certificate))",
  MessagePort: "pass a handle of an actor, or a Queue",
  MessageChannel: "pass a handle of an actor, or a Queue",
  Worker: "pass a handle of an actor",
  Module: "pass the bytes that it is compiled from",
};

function propertyText(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function keyText(key: unknown): string {
  if (typeof key === "string") return JSON.stringify(key);
  return typeof key === "number" || typeof key === "boolean" || typeof key === "bigint"
    ? `${key}`
    : "…";
}
