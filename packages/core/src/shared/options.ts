/**
 * Checks of options where they are given: an unknown name, a wrong type or a value out of range is
 * a typed error that names it.
 */
import { accessSync, constants, statSync } from "node:fs";
import { InvalidOptionError } from "./errors.ts";
import { show, showKind } from "./text/show.ts";
import { codeOf } from "./errors/thrown.ts";

/** Returns what is wrong with a value, or undefined. */
export interface Check {
  (value: unknown): string | undefined;
  /** Whether the value may hold a secret; no message shows a secret value. */
  readonly isSecret?: boolean;
}

export type Checks<T> = { readonly [K in keyof Required<T>]: Check };

/**
 * Checks options and returns them without those that are undefined, so that they can be merged over
 * others: undefined means "not given".
 *
 * @throws InvalidOptionError
 */
export function checkOptions<T extends object>(
  where: string,
  options: T,
  checks: Checks<T>,
): WithoutUndefined<T> {
  checkValues(where, options, checks);
  return withoutUndefined(options);
}

/**
 * Checks options of which nothing is known yet.
 *
 * @throws InvalidOptionError
 */
export function checkValues(
  where: string,
  options: unknown,
  checks: Readonly<Record<string, Check>>,
): void {
  if (!isRecord(options)) {
    throw new InvalidOptionError(
      "options",
      `${where}: options must be an object, not ${show(options)}`,
    );
  }
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (check === undefined) {
      throw new InvalidOptionError(
        name,
        `${where} has no option "${name}"; it has ${Object.keys(checks).join(", ")}`,
      );
    }
    if (value === undefined) continue;
    const problem = check(value);
    if (problem !== undefined) {
      const shown = check.isSecret === true ? showKind(value) : show(value);
      throw new InvalidOptionError(name, `${where}: option ${name} ${problem}, not ${shown}`);
    }
  }
}

/**
 * Returns the options without those that are undefined, which count as not given: over other
 * options they change nothing.
 */
export function withoutUndefined<T extends object>(options: T): WithoutUndefined<T> {
  const entries = Object.entries(options);
  const given = entries.filter(([, value]) => value !== undefined);
  const same = given.length === entries.length;
  return (same ? options : Object.fromEntries(given)) as WithoutUndefined<T>;
}

export type WithoutUndefined<T> = { readonly [Name in keyof T]: Exclude<T[Name], undefined> };

/** Marks a check whose value may hold a secret. */
export function secret(check: Check): Check {
  return Object.assign((value: unknown) => check(value), { isSecret: true });
}

/** Accepts a number of at least `least`; it is whole unless fractions are allowed. */
export function count(least: number, kind: "whole" | "fraction" = "whole"): Check {
  return (value) => {
    const fits = typeof value === "number" && value >= least && Number.isFinite(value);
    if (fits && (kind === "fraction" || Number.isInteger(value))) return undefined;
    return `must be a ${kind === "whole" ? "whole " : ""}number of at least ${least}`;
  };
}

/** Each return has an object of its own. More values are a list or a stream. */
const mostReturns = 65_536;

export const returnCount: Check = (value) =>
  value === "streaming" || (count(0)(value) ?? atMost(mostReturns)(value)) === undefined
    ? undefined
    : `must be a whole number of at least 0 and at most ${mostReturns}, or "streaming"`;

/** Accepts a number of at most `most`. */
export function atMost(most: number): Check {
  return (value) =>
    typeof value === "number" && value <= most ? undefined : `must be at most ${most}`;
}

export function oneOf(...known: readonly string[]): Check {
  return (value) =>
    known.some((one) => one === value)
      ? undefined
      : `must be ${known.map((one) => JSON.stringify(one)).join(" or ")}`;
}

/** Whether a value has fields: it is an object and no list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const flag: Check = (value) =>
  typeof value === "boolean" ? undefined : "must be true or false";

export const text: Check = (value) =>
  typeof value === "string" && value.trim() !== "" ? undefined : "must be a text that is not empty";

/** A group's name travels with each route that contains it, and hosts accept no longer names. */
const maxNameLength = 65_536;

export const nameText: Check = (value) =>
  text(value) ??
  (String(value).length <= maxNameLength
    ? undefined
    : `must have ${maxNameLength} characters at most`);

/** Accepts milliseconds that a timer can wait. Node's timers end at once beyond 2^31 - 1. */
export const timerMs: Check = (value) =>
  count(1)(value) ?? (Number(value) < 2 ** 31 ? undefined : "must be below 2^31");

/** Accepts `CredentialFiles`. */
export const credentialFiles: Check = (value) => {
  if (typeof value === "string" && value !== "") return undefined;
  const { ca, cert, key } = isRecord(value) ? value : {};
  const isComplete = [ca, cert, key].every((path) => typeof path === "string" && path !== "");
  return isComplete ? undefined : "must be a folder, or { ca, cert, key } with the path of each";
};

export const portNumber: Check = (value) =>
  count(0)(value) ?? (Number(value) < 65_536 ? undefined : "must be a port: below 65,536");

/** Accepts an existing directory that this process may write to. */
export const writableDirectory: Check = (value) => {
  if (typeof value !== "string" || text(value) !== undefined) return text(value);
  try {
    accessSync(value, constants.W_OK | constants.X_OK);
    return statSync(value).isDirectory() ? undefined : "must be a directory";
  } catch (error) {
    return `must be a directory that can be written to (${codeOf(error) ?? String(error)})`;
  }
};

export const isolationKind: Check = oneOf("thread", "process", "shared");

export const taskIsolation: Check = oneOf("thread", "process");

export const retryPolicy: Check = (value) =>
  typeof value === "boolean" ||
  (Array.isArray(value) &&
    value.every((one) => typeof one === "string" || typeof one === "function"))
    ? undefined
    : "must be true, false, or a list of error classes or their names";

/** The values that `retryPolicy` accepts. */
export type RetryPolicy = boolean | readonly (string | (new (...args: never[]) => Error))[];

/** Replaces classes by their names, because retry policies travel and classes do not. */
export function errorNames(policy: RetryPolicy): boolean | readonly string[] {
  return typeof policy === "boolean"
    ? policy
    : policy.map((one) => (typeof one === "string" ? one : one.name));
}

/** Returns the options with the names of the error classes in their `retryExceptions`. */
export function withErrorNames<
  Given extends { readonly retryExceptions?: RetryPolicy | undefined },
>(
  options: Given,
): Omit<Given, "retryExceptions"> & { readonly retryExceptions?: boolean | readonly string[] } {
  const { retryExceptions, ...rest } = options;
  return retryExceptions === undefined
    ? rest
    : { ...rest, retryExceptions: errorNames(retryExceptions) };
}
