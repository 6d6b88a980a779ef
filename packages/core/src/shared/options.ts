/** Checks of options at the edge: an unknown name, a wrong type or a wrong range is a typed error that names it. */
import { accessSync, constants, statSync } from "node:fs";
import { InvalidOptionError } from "./errors.ts";
import { show, showKind } from "./text/show.ts";

/** Says what is wrong with a value, or nothing. */
export interface Check {
  (value: unknown): string | undefined;
  /** The value may hold a secret, and no message shows it. */
  readonly isSecret?: boolean;
}

export type Checks<T> = { readonly [K in keyof Required<T>]: Check };

/** @throws InvalidOptionError */
export function checkOptions<T extends object>(where: string, options: T, checks: Checks<T>): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new InvalidOptionError(
      "options",
      `${where}: options must be an object, not ${show(options)}`,
    );
  }
  for (const [name, value] of Object.entries(options)) {
    const check = (checks as Readonly<Record<string, Check | undefined>>)[name];
    if (check === undefined || !Object.hasOwn(checks, name)) {
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

/** The same for what may hold a secret. */
export function secret(check: Check): Check {
  return Object.assign((value: unknown) => check(value), { isSecret: true });
}

/** A number from `least` on; whole unless fractions are allowed. */
export function count(least: number, kind: "whole" | "fraction" = "whole"): Check {
  return (value) => {
    const fits = typeof value === "number" && value >= least && Number.isFinite(value);
    if (fits && (kind === "fraction" || Number.isInteger(value))) return undefined;
    return `must be a ${kind === "whole" ? "whole " : ""}number of at least ${least}`;
  };
}

/** Each has an object of its own. More values are a list, or a stream. */
const mostReturns = 65_536;

export const returnCount: Check = (value) =>
  value === "streaming" || (count(0)(value) ?? atMost(mostReturns)(value)) === undefined
    ? undefined
    : `must be a whole number of at least 0 and at most ${mostReturns}, or "streaming"`;

/** Of a number. */
export function atMost(most: number): Check {
  return (value) => ((value as number) <= most ? undefined : `must be at most ${most}`);
}

export function oneOf(...known: readonly string[]): Check {
  return (value) =>
    known.includes(value as string)
      ? undefined
      : `must be ${known.map((one) => JSON.stringify(one)).join(" or ")}`;
}

export const flag: Check = (value) =>
  typeof value === "boolean" ? undefined : "must be true or false";

export const text: Check = (value) =>
  typeof value === "string" && value.trim() !== "" ? undefined : "must be a text that is not empty";

/** It travels with each route that it is a part of, and hosts take no longer ones. */
const maxNameLength = 65_536;

export const nameText: Check = (value) =>
  text(value) ??
  ((value as string).length <= maxNameLength
    ? undefined
    : `must have ${maxNameLength} characters at most`);

/** What a timer can take: a longer one would be over at once. */
export const timerMs: Check = (value) =>
  count(1)(value) ?? ((value as number) < 2 ** 31 ? undefined : "must be below 2^31");

/** As `CredentialFiles`. */
export const credentialFiles: Check = (value) => {
  if (typeof value === "string" && value !== "") return undefined;
  const { ca, cert, key } = (value ?? {}) as Record<string, unknown>;
  const isComplete = [ca, cert, key].every((path) => typeof path === "string" && path !== "");
  return isComplete ? undefined : "must be a folder, or { ca, cert, key } with the path of each";
};

export const portNumber: Check = (value) =>
  count(0)(value) ?? ((value as number) < 65_536 ? undefined : "must be a port: below 65,536");

/** A place to write to that is there. */
export const writableDirectory: Check = (value) => {
  const problem = text(value);
  if (problem !== undefined) return problem;
  try {
    accessSync(value as string, constants.W_OK | constants.X_OK);
    return statSync(value as string).isDirectory() ? undefined : "must be a directory";
  } catch (error) {
    return `must be a directory that can be written to (${(error as { code?: string }).code ?? String(error)})`;
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

/** What `retryPolicy` lets pass. */
export type RetryPolicy = boolean | readonly (string | (new (...args: never[]) => Error))[];

/** Retry policies travel by name: classes stay where they are. */
export function errorNames(policy: RetryPolicy): boolean | readonly string[] {
  return typeof policy === "boolean"
    ? policy
    : policy.map((one) => (typeof one === "string" ? one : one.name));
}
