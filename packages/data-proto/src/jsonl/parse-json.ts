/**
 * JSON as Python's json module writes it: with NaN and Infinity, if those are allowed, and with
 * whole numbers that a double cannot hold, as bigints.
 */

import { randomUUID } from "node:crypto";

/** Strings match as a whole, so that their content stays. Unrolled: a string may have 20 MB. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?Infinity|NaN/g;

/** Digits that are no fraction, as many as a whole number has that a double may not hold. */
const manyDigits = /(?<![\d.])\d{16}/;

const numbers: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/** How numbers are read. */
export interface NumberRules {
  /** Whether NaN, Infinity and -Infinity are read. */
  readonly allowNan: boolean;
  /** Whether whole numbers beyond the safe ones of a double are bigints, as in Parquet. */
  readonly exact: boolean;
}

/**
 * Parses JSON of other programs: whole numbers that a double cannot hold are bigints. Throws
 * SyntaxError.
 */
export function jsonValue(text: string): unknown {
  return parseJson(text, { allowNan: false, exact: true });
}

/** Throws SyntaxError. */
export function parseJson(text: string, { allowNan, exact }: NumberRules): unknown {
  const revive = exact && manyDigits.test(text) ? exactly : undefined;
  try {
    const value: unknown = JSON.parse(text, revive);
    return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const found = numberIn(text);
    if (found === undefined) throw error;
    if (allowNan) return withNumbers(text, revive);
    throw new SyntaxError(`${found} is no JSON (${error.message})`, { cause: error });
  }
}

type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

const exactly: Reviver = (_key, value, context) => {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  return /^-?\d+$/.test(source) ? BigInt(source) : value;
};

function numberIn(text: string): string | undefined {
  return text.match(tokens)?.find((token) => Object.hasOwn(numbers, token));
}

function withNumbers(text: string, revive: Reviver = (_key, value) => value): unknown {
  const mark = `${randomUUID()} `;
  const marked = text.replace(tokens, (token) =>
    Object.hasOwn(numbers, token) ? `"${mark}${token}"` : token,
  );
  const marksToo: Reviver = (key, value, context) =>
    typeof value === "string" && value.startsWith(mark)
      ? numbers[value.slice(mark.length)]
      : revive(key, value, context);
  const value: unknown = JSON.parse(marked, marksToo);
  return value;
}
