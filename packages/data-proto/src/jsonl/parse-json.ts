/**
 * JSON as Python's json module writes it: with NaN and Infinity, if those are allowed.
 */

import { randomUUID } from "node:crypto";

/** Strings match as a whole, so that their content stays. */
const tokens = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

const numbers: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
};

/** Throws SyntaxError. */
export function parseJson(text: string, allowNan: boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const found = numberIn(text);
    if (found === undefined) throw error;
    if (allowNan) return withNumbers(text);
    throw new SyntaxError(`${found} is no JSON (${error.message})`, { cause: error });
  }
}

function numberIn(text: string): string | undefined {
  return text.match(tokens)?.find((token) => Object.hasOwn(numbers, token));
}

function withNumbers(text: string): unknown {
  const mark = `${randomUUID()} `;
  const marked = text.replace(tokens, (token) =>
    Object.hasOwn(numbers, token) ? `"${mark}${token}"` : token,
  );
  const value: unknown = JSON.parse(marked, (_key, one: unknown) =>
    typeof one === "string" && one.startsWith(mark) ? numbers[one.slice(mark.length)] : one,
  );
  return value;
}
