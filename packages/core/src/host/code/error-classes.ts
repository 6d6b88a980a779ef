/**
 * Error classes that both sides have. The throwing side names the module of the class, and the
 * catching side takes the class from its own copy of that module. An error whose class cannot be
 * found comes back as the nearest class of the language, with its name and fields.
 *
 * The search order is: registered classes; exports of modules with `remote()` calls; variables that
 * the code of their remotes sees under the name of the class.
 */
import type { ErrorClasses, ErrorOrigin } from "../../protocol/failure.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { show } from "../../shared/text/show.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import { moduleExports, remoteCount, remotesSeen } from "./registry.ts";
import { type Seen, seenBy } from "./scopes.ts";

type ErrorClass = new (...args: never[]) => Error;

interface Known {
  /** Registered classes by name. */
  readonly registered: Map<string, ErrorClass>;
  /**
   * Origins of classes that were searched for; a failed search is repeated when there are more
   * remotes.
   */
  readonly origins: WeakMap<
    object,
    { readonly origin: ErrorOrigin | undefined; readonly among: number }
  >;
  readonly seen: Map<string, ErrorClass>;
}

const known: Known = threadSlot("error-classes", () => ({
  registered: new Map(),
  origins: new WeakMap(),
  seen: new Map(),
}));

/** Names the module of registered classes, on every side. */
const registeredModule = "rayling:registered";

/**
 * Lets errors of a class come back as its instances wherever both sides have called this function
 * with it. It is needed only for a class that the runtime cannot find itself, such as a class of a
 * library that throws it and does not export it.
 *
 * @param ErrorClass the class, known by its name
 * @throws InvalidOptionError for a value that is no error class, or when another class of that name
 * was registered
 */
export function registerError(ErrorClass: abstract new (...args: never[]) => Error): void {
  if (!isErrorClass(ErrorClass)) {
    throw new InvalidOptionError(
      "ErrorClass",
      `registerError takes a class of errors, not ${show(ErrorClass)}`,
    );
  }
  const { name } = ErrorClass;
  const other = known.registered.get(name);
  if (name === "" || (other !== undefined && other !== ErrorClass)) {
    throw new InvalidOptionError(
      "ErrorClass",
      name === ""
        ? "registerError: the class has no name to be known by"
        : `registerError: another class is registered as ${name}`,
    );
  }
  known.registered.set(name, ErrorClass);
}

export const errorClasses: ErrorClasses = {
  findOrigin(errorClass) {
    if (!isErrorClass(errorClass) || builtIn.has(errorClass)) return undefined;
    const among = remoteCount();
    const before = known.origins.get(errorClass);
    if (before !== undefined && (before.origin !== undefined || before.among === among)) {
      return before.origin;
    }
    const origin = originOf(errorClass);
    known.origins.set(errorClass, { origin, among });
    return origin;
  },
  findClass(origin) {
    const { moduleUrl, exportName } = origin;
    if (moduleUrl === registeredModule) return known.registered.get(exportName);
    const found = new Map(moduleExports()).get(moduleUrl)?.[exportName];
    if (origin.seenBy === undefined && isErrorClass(found)) return found;
    return classSeen(origin);
  },
};

function originOf(errorClass: ErrorClass): ErrorOrigin | undefined {
  const { name } = errorClass;
  if (known.registered.get(name) === errorClass) {
    return { moduleUrl: registeredModule, exportName: name };
  }
  for (const [moduleUrl, exports] of moduleExports()) {
    for (const [exportName, value] of Object.entries(exports)) {
      if (value === errorClass) return { moduleUrl, exportName, name };
    }
  }
  for (const { moduleUrl, seenBy: remote, target } of remotesSeen()) {
    for (const { path, value } of seenBy(target, name)) {
      if (value === errorClass) return { moduleUrl, seenBy: remote, exportName: path, name };
    }
  }
  return undefined;
}

/**
 * Returns the class in that variable. Where a loader has renamed imports, it takes the nearest
 * variable with the name of the class. It also searches the exports of a module that another loader
 * than Node's has loaded.
 */
function classSeen(origin: ErrorOrigin): ErrorClass | undefined {
  const text = JSON.stringify(origin);
  const before = known.seen.get(text);
  if (before !== undefined) return before;
  let ofThatName: ErrorClass | undefined;
  for (const { path, value } of seenFrom(origin)) {
    if (!isErrorClass(value)) continue;
    if (path === origin.exportName) return remembered(text, value);
    if (value.name !== "" && value.name === origin.name) ofThatName ??= value;
  }
  return ofThatName === undefined ? undefined : remembered(text, ofThatName);
}

function remembered(text: string, found: ErrorClass): ErrorClass {
  known.seen.set(text, found);
  return found;
}

function* seenFrom({ moduleUrl, seenBy: remote, name = "" }: ErrorOrigin): Iterable<Seen> {
  for (const { target, ...one } of remotesSeen()) {
    if (one.moduleUrl !== moduleUrl || one.seenBy !== (remote ?? one.seenBy)) continue;
    yield* seenBy(target, name);
  }
}

function isErrorClass(value: unknown): value is ErrorClass {
  return typeof value === "function" && value.prototype instanceof Error;
}

const builtIn: ReadonlySet<unknown> = new Set([
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
  DOMException,
]);
