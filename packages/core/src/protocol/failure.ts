/**
 * Error <-> data. An error keeps its class name, message, code, own fields, cause, nested errors
 * and stack. Encoding an error never fails: a field that cannot be encoded goes as text.
 *
 * `toFailure` runs where the error is thrown, and `fromFailure` where it is caught. A resolver
 * supplies the class, because only the receiving side knows its loaded classes.
 */
import { inspect } from "node:util";
import { driversText } from "../shared/code-roots.ts";
import * as known from "../shared/errors.ts";
import { namesOwnFile } from "../shared/own-files.ts";
import { isError } from "./values/kinds.ts";
import { defineOwn } from "./values/lists.ts";
import {
  markRemote,
  type RemoteSite,
  TaskError,
  UnserializableException,
} from "../shared/errors.ts";
import { terminalLine, terminalText } from "../shared/text/terminal-text.ts";
import { prototypeOf } from "../shared/methods.ts";
import { defineReads, guardTexts, privateReads, readOr } from "./error-reads.ts";

export interface FailureData {
  readonly name: string;
  /**
   * Names of its class and of the base classes, the nearest first; present when they say more than
   * its name and Error.
   */
  readonly classes?: readonly string[];
  readonly message: string;
  readonly stack: string;
  /** Own enumerable fields, including `code`. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Own fields that are errors. */
  readonly errorFields?: Readonly<Record<string, FailurePart>>;
  /** The cause: an error, or another value. */
  readonly cause?: FailurePart | { readonly value: unknown };
  /** Errors of an AggregateError. Members that are no errors are in `thrown`. */
  readonly errors?: readonly FailurePart[];
  /** Names it for later parts of the same failure that are this error, too. */
  readonly id?: number;
  /** Values of accessors that its class reads by #private fields. */
  readonly reads?: Readonly<Record<string, unknown>>;
  /**
   * Own non-enumerable fields, such as `cause`, of an error inside a value. Their contents are
   * parts of that value.
   */
  readonly hidden?: Readonly<Record<string, unknown>>;
  /** The origin of the class. */
  readonly origin?: ErrorOrigin;
  readonly site?: RemoteSite;
  /** The value of a thrown thing that is not an Error. */
  readonly thrown?: { readonly value: unknown };
}

/**
 * An error within an error: its data; or one that encloses it, as the number of levels up (0 is the
 * error itself); or one that came before, by its id.
 */
export type FailurePart = FailureData | { readonly up: number } | { readonly same: number };

/**
 * A module that exports the class. Where a remote class merely sees the error class, `exportName`
 * is the variable and `name` is the class.
 */
export interface ErrorOrigin {
  readonly moduleUrl: string;
  readonly exportName: string;
  readonly seenBy?: string;
  readonly name?: string;
}

/** Finds the module of an error class, on the side where it was thrown. */
export type FindOrigin = (errorClass: unknown) => ErrorOrigin | undefined;
/** Finds the class on the receiving side, among its loaded modules. */
export type FindClass = (origin: ErrorOrigin) => { readonly prototype: object } | undefined;

/** The error classes of this side: the origin of a class, and the class of an origin. */
export interface ErrorClasses {
  readonly findOrigin: FindOrigin;
  readonly findClass: FindClass;
}

const maxCauses = 16;
const nameParts = new Set(["name", "message", "stack"]);
const skippedFields = new Set([...nameParts, "cause", "errors"]);

/** How errors become data: which of their parts travel, and where their classes come from. */
export interface FailureOptions {
  /** Parts that it rejects go as text. */
  readonly encodable: (value: unknown) => boolean;
  readonly findOrigin?: FindOrigin | undefined;
}

/** @param site where it was thrown, if that is another runtime */
export function toFailure(
  thrown: unknown,
  { encodable, findOrigin }: FailureOptions,
  site?: RemoteSite,
): FailureData {
  const options = { encodable: (value: unknown) => canTravel(value, encodable), findOrigin };
  const failure = failureIn(thrown, { ...options, made: new Map(), ids: 0 }, []);
  return site === undefined ? failure : { ...failure, site };
}

/** One failure that is being made. */
interface Making extends FailureOptions {
  /** The data of the errors that are part of it and complete. */
  readonly made: Map<Error, { id?: number }>;
  /** How many of them have an id. */
  ids: number;
}

/** @param above errors that this one is part of, the nearest first */
function failureIn(thrown: unknown, making: Making, above: readonly unknown[]): FailureData {
  const { encodable: isEncodable, findOrigin } = making;
  if (!isError(thrown)) {
    const value = isEncodable(thrown) ? thrown : safeText(thrown);
    return { name: "TaskError", message: "", stack: "", fields: {}, thrown: { value } };
  }
  const path = [thrown, ...above];
  const isDeep = above.length >= maxCauses;
  const part = (inner: Error): FailurePart | undefined => {
    const up = path.indexOf(inner);
    if (up >= 0) return { up };
    const before = making.made.get(inner);
    if (before !== undefined) return { same: (before.id ??= making.ids++) };
    return isDeep ? undefined : failureIn(inner, making, path);
  };
  const plain = (value: unknown): unknown => (isEncodable(value) ? value : safeText(value));
  const fields: Record<string, unknown> = {};
  const errorFields: Record<string, FailurePart> = {};
  for (const key of [...Object.keys(thrown), ...suppressedOf(thrown)]) {
    if (skippedFields.has(key)) continue;
    const value = readField(thrown, key);
    const inner = isError(value) ? part(value) : undefined;
    if (inner !== undefined) defineOwn(errorFields, key, inner);
    else defineOwn(fields, key, isError(value) ? safeText(value) : plain(value));
  }
  const cause: unknown = readField(thrown, "cause");
  const hasCause = cause !== undefined || Object.hasOwn(thrown, "cause");
  const causePart = isError(cause) ? part(cause) : { value: plain(cause) };
  const errors: unknown = readField(thrown, "errors");
  const members = (list: readonly unknown[]): FailurePart[] =>
    list.flatMap((one) => (isError(one) ? part(one) : failureIn(one, making, path)) ?? []);
  const failure = {
    ...headOf(thrown, findOrigin),
    fields,
    ...(Object.keys(errorFields).length === 0 ? {} : { errorFields }),
    ...(hasCause && causePart !== undefined ? { cause: causePart } : {}),
    ...(Array.isArray(errors) && !isDeep ? { errors: members(errors) } : {}),
    ...readsOf(thrown, plain),
  };
  making.made.set(thrown, failure);
  return failure;
}

/** @param plain returns what travels of a value */
function readsOf(error: Error, plain: (value: unknown) => unknown): Pick<FailureData, "reads"> {
  const found = privateReads(error);
  if (found === undefined) return {};
  const reads: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(found)) defineOwn(reads, key, plain(value));
  return { reads };
}

/**
 * Converts an error that is part of a value. Its parts stay values, so that parts which the value
 * also holds elsewhere keep their identity.
 *
 * @param encodable parts that it rejects go as text
 */
export function toErrorContent(
  error: Error,
  encodable: (value: unknown) => boolean,
  findOrigin?: FindOrigin,
): FailureData {
  const fields: Record<string, unknown> = {};
  const hidden: Record<string, unknown> = {};
  const plain = (value: unknown): unknown =>
    canTravel(value, encodable) ? value : safeText(value);
  const carry = (into: object, key: string): void => {
    defineOwn(into, key, plain(readField(error, key)));
  };
  const listed = Object.keys(error);
  for (const key of listed) if (!nameParts.has(key)) carry(fields, key);
  let hasHidden = false;
  for (const key of ["cause", "errors", ...suppressedOf(error)]) {
    if (!Object.hasOwn(error, key) || listed.includes(key)) continue;
    hasHidden = true;
    carry(hidden, key);
  }
  const head = headOf(error, findOrigin);
  return { ...head, fields, ...(hasHidden ? { hidden } : {}), ...readsOf(error, plain) };
}

/** Returns the name, the message and the origin of an error. */
function headOf(error: Error, findOrigin: FindOrigin | undefined): Omit<FailureData, "fields"> {
  const origin = originOf(error, findOrigin);
  const name = textOf(readField(error, "name"), "Error");
  const classes = classNames(error);
  const isKnownByName = classes[0] === name && classes.slice(1).every((one) => one === "Error");
  return {
    name,
    ...(classes.length === 0 || isKnownByName ? {} : { classes }),
    message: messageOf(error),
    stack: driversText(userStack(textOf(readField(error, "stack"), ""))),
    ...(origin === undefined ? {} : { origin }),
  };
}

function canTravel(value: unknown, encodable: (value: unknown) => boolean): boolean {
  try {
    return encodable(value);
  } catch {
    // A getter inside it throws.
    return false;
  }
}

/** Returns the non-enumerable fields of a SuppressedError. */
function suppressedOf(thrown: Error): readonly string[] {
  const isOne = "SuppressedError" in globalThis && thrown instanceof SuppressedError;
  return isOne ? ["error", "suppressed"] : [];
}

/** Whether data has the fields of every failure; a peer may have sent anything. */
export function isFailure(data: unknown): data is FailureData {
  if (typeof data !== "object" || data === null) return false;
  const {
    name,
    message,
    stack,
    fields,
    classes = [],
  } = data as Partial<Record<keyof FailureData, unknown>>;
  if (!Array.isArray(classes)) return false;
  const isText = [name, message, stack, ...classes].every((text) => typeof text === "string");
  return isText && typeof fields === "object" && fields !== null;
}

/**
 * Whether the error's class, or a base class, has that name. A thrown value that is no Error has no
 * class.
 */
export function isOfClass({ name, classes, thrown }: FailureData, wanted: string): boolean {
  if (name === wanted || classes?.includes(wanted) === true) return true;
  return wanted === "Error" && thrown === undefined;
}

/** Never throws: an error that cannot be rebuilt here keeps its texts. */
export function fromFailure(failure: unknown, findClass?: FindClass): Error {
  return revived(failure, { findClass, made: new Map() }, []);
}

/** One failure that becomes an error. */
interface Reviving {
  readonly findClass: FindClass | undefined;
  /** The errors of it that have an id. */
  readonly made: Map<unknown, Error>;
}

/** @param above the errors that this one is a cause or part of, the nearest first */
function revived(failure: unknown, reviving: Reviving, above: readonly Error[]): Error {
  if (!isFailure(failure)) return new known.RaySystemError("malformed error payload from peer");
  let error: Error;
  try {
    error = revive(failure, reviving, above);
  } catch (cause) {
    error = new UnserializableException(failure, cause);
    if (failure.site !== undefined) markRemote(error, failure.site);
  }
  if (failure.id !== undefined) reviving.made.set(failure.id, error);
  return error;
}

function revive(failure: FailureData, reviving: Reviving, above: readonly Error[]): Error {
  const site = failure.site;
  if (failure.thrown !== undefined) {
    const wrapped = new TaskError(site?.functionName ?? "remote code", failure.thrown.value);
    if (site !== undefined) markRemote(wrapped, site);
    return wrapped;
  }
  const isDom = failure.classes?.includes("DOMException") === true;
  // Only the constructor of a DOMException can set its name and message.
  const error: Error = isDom
    ? new DOMException(failure.message, failure.name)
    : new Error(failure.message);
  const home = classAtHome(failure, reviving.findClass);
  if (home !== undefined) Object.setPrototypeOf(error, home.prototype);
  else if (!isDom) Object.setPrototypeOf(error, builtInOf(failure).prototype);
  // A class that is not loaded here leaves only its name.
  const name = home === undefined ? nameOf(failure) : failure.name;
  defineParts(error, failure, (inner) => partOf(inner, reviving, [error, ...above]));
  if (readOr(error, "name") !== name) define(error, "name", name, false);
  define(error, "stack", shownStack(failure.stack), false);
  if (failure.reads !== undefined) defineReads(error, failure.reads, home !== undefined);
  if (home !== undefined) guardTexts(error);
  if (site !== undefined) markRemote(error, site);
  return error;
}

/** In the order in which they were written: a part may be one that came before. */
function defineParts(
  error: Error,
  failure: FailureData,
  part: (inner: FailurePart) => unknown,
): void {
  const { fields, hidden = {}, errorFields = {}, cause, errors } = failure;
  const unlisted = suppressedOf(error);
  for (const [key, value] of Object.entries(fields)) {
    define(error, key, value, !unlisted.includes(key));
  }
  for (const [key, value] of Object.entries(hidden)) define(error, key, value, false);
  for (const [key, inner] of Object.entries(errorFields)) {
    define(error, key, part(inner), !unlisted.includes(key));
  }
  if (cause !== undefined) {
    define(error, "cause", "value" in cause ? cause.value : part(cause), false);
  }
  if (errors !== undefined) define(error, "errors", errors.map(part), false);
}

/** @param path the error that it is part of, and those above */
function partOf(inner: FailurePart, reviving: Reviving, path: readonly Error[]): unknown {
  // A peer may have sent anything.
  if (typeof inner === "object" && inner !== null && !isFailure(inner)) {
    if ("up" in inner) return Number.isInteger(inner.up) ? path[inner.up] : undefined;
    if ("same" in inner) return reviving.made.get(inner.same);
  }
  const { thrown } = inner;
  return thrown === undefined ? revived(inner, reviving, path) : thrown.value;
}

function define(error: Error, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
}

/**
 * Makes a stack safe for people: Node prints the stack of an uncaught error as it is, and the
 * message in it may come from a model or a data set. `message` stays unchanged.
 */
function shownStack(stack: string): string {
  return terminalText(stack, { colours: true });
}

/** Drops frames of the runtime and of Node, which say nothing about the user's mistake. */
function userStack(stack: string): string {
  return stack
    .split("\n")
    .filter((line) => !isFrame(line) || !(namesOwnFile(line) || /[( ]node:internal\//.test(line)))
    .join("\n");
}

function isFrame(line: string): boolean {
  return line.trimStart().startsWith("at ");
}

/** Adds the place of the local call below the remote stack. */
export function appendLocalStack(error: Error, local: string): void {
  const frames = userStack(local).split("\n").filter(isFrame);
  if (frames.length === 0) return;
  const site = known.remoteSiteOf(error);
  const remote =
    site === undefined ? "" : `    at <${terminalLine(site.functionName)} on ${site.hostId}>\n`;
  Object.defineProperty(error, "stack", {
    value: `${error.stack ?? String(error)}\n${remote}${frames.join("\n")}`,
    enumerable: false,
    writable: true,
    configurable: true,
  });
}

const builtIn: Readonly<Record<string, { readonly prototype: object }>> = {
  // Names come from peers: without a prototype they find only these classes.
  __proto__: null as never,
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
  DOMException,
  // Node 24 and later.
  ...("SuppressedError" in globalThis ? { SuppressedError } : {}),
};

/** Names the module of the runtime's own errors, on every side. */
const ownModule = "rayling:errors";

const ownClasses: ReadonlyMap<string, { readonly prototype: object }> = new Map(
  Object.entries(known).filter(
    (one): one is [string, typeof known.RayError] =>
      typeof one[1] === "function" && one[1].prototype instanceof Error,
  ),
);

function originOf(thrown: Error, findOrigin: FindOrigin | undefined): ErrorOrigin | undefined {
  const prototype: { readonly constructor?: unknown } | null = prototypeOf(thrown);
  const maker = prototype?.constructor;
  const name = typeof maker === "function" ? maker.name : "";
  const own = ownClasses.get(name);
  if (own !== undefined && prototype === own.prototype) {
    return { moduleUrl: ownModule, exportName: name };
  }
  return findOrigin?.(thrown.constructor);
}

function classAtHome(
  { origin }: FailureData,
  findClass: FindClass | undefined,
): { readonly prototype: object } | undefined {
  if (origin === undefined) return undefined;
  return origin.moduleUrl === ownModule ? ownClasses.get(origin.exportName) : findClass?.(origin);
}

/** Returns the nearest class of the language. */
function builtInOf({ name, classes = [] }: FailureData): { readonly prototype: object } {
  // DOMException keeps name and message in internal slots that a plain Error lacks.
  const nearest = [...classes, name].find((one) => one !== "DOMException" && one in builtIn);
  return builtIn[nearest ?? "Error"] ?? Error;
}

/**
 * Returns the name of the class for errors that only inherit a name from a class of the language.
 */
function nameOf({ name, classes = [] }: FailureData): string {
  const [own] = classes;
  return own !== undefined && !(own in builtIn) && name in builtIn ? own : name;
}

const mostClasses = 16;

function classNames(thrown: Error): string[] {
  const names: string[] = [];
  try {
    for (let level = parentOf(thrown); level !== undefined; level = parentOf(level)) {
      const isRoot = parentOf(level) === undefined;
      if (isRoot || names.length === mostClasses) break;
      const { constructor }: { readonly constructor?: unknown } = level;
      const name = typeof constructor === "function" ? textOf(constructor.name, "") : "";
      if (name !== "") names.push(name);
    }
  } catch {
    // A proxy that forbids inspection keeps the name that it reports.
  }
  return names;
}

function parentOf(value: object): object | undefined {
  return prototypeOf(value) ?? undefined;
}

function readField(error: Error, key: string): unknown {
  try {
    return Reflect.get(error, key);
  } catch (cause) {
    // A getter that throws must not hide the error that carries it.
    return `<unreadable: ${cause instanceof Error ? cause.message : safeText(cause)}>`;
  }
}

/** Returns the message as text, as structured clone makes it of any value. */
function messageOf(error: Error): string {
  const message = readField(error, "message");
  if (typeof message === "string") return message;
  try {
    return String(message);
  } catch {
    // Its toString throws.
    return safeText(message);
  }
}

function textOf(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}

function safeText(value: unknown): string {
  try {
    return inspect(value, { depth: 2 });
  } catch {
    // A custom inspect may throw; the type remains.
    return `<${typeof value}>`;
  }
}
