/**
 * Error <-> data. An error keeps its class name, message, code, own fields, cause, nested errors and stack; carrying one never
 * fails: a field that cannot be encoded goes as text.
 *
 * `toFailure` runs where the error was thrown, `fromFailure` where it is caught. Which class to give it back is asked of a
 * resolver, because only the receiving side knows what it has loaded.
 */
import { inspect } from "node:util";
import * as known from "../shared/errors.ts";
import { markRemote, type RemoteSite, TaskError } from "../shared/errors.ts";

export interface FailureData {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** Own enumerable fields, `code` among them. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause?: FailureData | { readonly value: unknown };
  /** Of an AggregateError. */
  readonly errors?: readonly FailureData[];
  /** Where to find the class: a module that exports it. */
  readonly origin?: ErrorOrigin;
  readonly site?: RemoteSite;
  /** The thrown thing was not an Error: this is its value. */
  readonly thrown?: { readonly value: unknown };
}

export interface ErrorOrigin {
  readonly moduleUrl: string;
  readonly exportName: string;
}

/** Finds the module that exports an error class, on the side where it was thrown. */
export type FindOrigin = (errorClass: unknown) => ErrorOrigin | undefined;
/** Finds the class again on the other side, among what is loaded there. */
export type FindClass = (origin: ErrorOrigin) => { readonly prototype: object } | undefined;

const maxCauses = 16;
const skippedFields = new Set(["name", "message", "stack", "cause", "errors"]);

export function toFailure(
  thrown: unknown,
  encodable: (value: unknown) => boolean,
  findOrigin?: FindOrigin,
  site?: RemoteSite,
  depth = 0,
): FailureData {
  const where = site === undefined ? {} : { site };
  if (!(thrown instanceof Error)) {
    const value = encodable(thrown) ? thrown : safeText(thrown);
    return { name: "TaskError", message: "", stack: "", fields: {}, thrown: { value }, ...where };
  }
  const fields: Record<string, unknown> = {};
  for (const key of Object.keys(thrown)) {
    if (skippedFields.has(key)) continue;
    const value = readField(thrown, key);
    fields[key] =
      value instanceof Error
        ? { $error: toFailure(value, encodable, findOrigin, undefined, depth + 1) }
        : encodable(value)
          ? value
          : safeText(value);
  }
  const cause: unknown = thrown.cause;
  const next = (inner: unknown): FailureData =>
    toFailure(inner, encodable, findOrigin, undefined, depth + 1);
  const errors: unknown = (thrown as { errors?: unknown }).errors;
  const origin = findOrigin?.(thrown.constructor);
  return {
    name: textOf(thrown.name, "Error"),
    message: textOf(thrown.message, ""),
    stack: userStack(textOf(thrown.stack, "")),
    fields,
    ...(cause === undefined || depth >= maxCauses
      ? {}
      : cause instanceof Error
        ? { cause: next(cause) }
        : { cause: { value: encodable(cause) ? cause : safeText(cause) } }),
    ...(Array.isArray(errors) && depth < maxCauses ? { errors: errors.map(next) } : {}),
    ...(origin === undefined ? {} : { origin }),
    ...where,
  };
}

export function fromFailure(failure: FailureData, findClass?: FindClass): Error {
  const site = failure.site;
  if (failure.thrown !== undefined) {
    const wrapped = new TaskError(site?.functionName ?? "remote code", failure.thrown.value);
    if (site !== undefined) markRemote(wrapped, site);
    return wrapped;
  }
  const cause = failure.cause;
  const options: ErrorOptions =
    cause === undefined
      ? {}
      : { cause: "value" in cause ? cause.value : fromFailure(cause, findClass) };
  const error = new Error(failure.message, options);
  Object.setPrototypeOf(error, prototypeFor(failure, findClass));
  const define = (key: string, value: unknown, enumerable: boolean): void => {
    Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
  };
  for (const [key, value] of Object.entries(failure.fields)) {
    define(key, isCarriedError(value) ? fromFailure(value.$error, findClass) : value, true);
  }
  if (failure.errors !== undefined) {
    define(
      "errors",
      failure.errors.map((inner) => fromFailure(inner, findClass)),
      false,
    );
  }
  if (error.name !== failure.name) define("name", failure.name, false);
  define("stack", failure.stack, false);
  if (site !== undefined) markRemote(error, site);
  return error;
}

/** The runtime's own frames say nothing about the user's mistake. */
const ownFrames: string = new URL("..", import.meta.url).href;

function userStack(stack: string): string {
  return stack
    .split("\n")
    .filter(
      (line) => !isFrame(line) || !(line.includes(ownFrames) || line.includes("(node:internal/")),
    )
    .join("\n");
}

function isFrame(line: string): boolean {
  return line.trimStart().startsWith("at ");
}

/** Adds the place of the local call below the remote stack, so that a trace leads home. */
export function appendLocalStack(error: Error, local: string): void {
  const frames = userStack(local).split("\n").filter(isFrame);
  if (frames.length === 0) return;
  const site = known.remoteSiteOf(error);
  const remote = site === undefined ? "" : `    at <${site.functionName} on ${site.hostId}>\n`;
  Object.defineProperty(error, "stack", {
    value: `${error.stack ?? String(error)}\n${remote}${frames.join("\n")}`,
    enumerable: false,
    writable: true,
    configurable: true,
  });
}

const builtIn: Readonly<Record<string, { readonly prototype: object }>> = {
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
  DOMException,
};

function prototypeFor(failure: FailureData, findClass: FindClass | undefined): object {
  const found = failure.origin === undefined ? undefined : findClass?.(failure.origin);
  if (found !== undefined) return found.prototype;
  const own = (known as unknown as Record<string, { readonly prototype: object } | undefined>)[
    failure.name
  ];
  if (own?.prototype instanceof Error) return own.prototype;
  // DOMException keeps name and message in internal slots that a plain Error lacks.
  const base = failure.name === "DOMException" ? undefined : builtIn[failure.name];
  return base?.prototype ?? Error.prototype;
}

function isCarriedError(value: unknown): value is { $error: FailureData } {
  return typeof value === "object" && value !== null && Object.keys(value).join() === "$error";
}

function readField(error: Error, key: string): unknown {
  try {
    return (error as unknown as Record<string, unknown>)[key];
  } catch (cause) {
    // A getter that throws must not hide the error that carries it.
    return `<unreadable: ${safeText(cause)}>`;
  }
}

function textOf(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}

function safeText(value: unknown): string {
  try {
    return inspect(value, { depth: 2 });
  } catch {
    // A custom inspect may throw; what is left to say is the type.
    return `<${typeof value}>`;
  }
}

/** Knows the classes of errors on this side: which module exports one, and the class again by that module and name. */
export interface ErrorClasses {
  readonly findOrigin: FindOrigin;
  readonly findClass: FindClass;
}

/** A death cause as plain data, for a way that does not carry error classes. */
export interface CauseData {
  readonly kind: known.DeathCause["kind"];
  readonly message: string;
  readonly exitCode?: number;
  readonly failure?: FailureData;
}

export function causeToData(cause: known.DeathCause): CauseData {
  const { error, ...rest } = cause;
  return error === undefined ? rest : { ...rest, failure: toFailure(error, isPrimitive) };
}

export function causeFromData(data: CauseData, findClass?: FindClass): known.DeathCause {
  const { failure, ...rest } = data;
  return failure === undefined ? rest : { ...rest, error: fromFailure(failure, findClass) };
}

function isPrimitive(value: unknown): boolean {
  return (
    value === null ||
    (typeof value !== "object" && typeof value !== "function" && typeof value !== "symbol")
  );
}
