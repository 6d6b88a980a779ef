/**
 * JSON as Python's json module writes it: with NaN and Infinity, if those are allowed, and with
 * whole numbers that a double cannot hold, as bigints.
 *
 * JSON.parse with a reviver takes 15 to 140 times as long as without, and servers parse on their
 * only thread. So the text is parsed plainly first, which also finds its errors at their places. If
 * it has numbers that need care, it is parsed again with marked strings in their place.
 */

import { randomUUID } from "node:crypto";

const names = /(?<![\w.+-])(?:-?Infinity|NaN)/;

/** Whole numbers with as many digits as one has that a double may not hold. */
const longIntegers = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/;

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
  let value: unknown;
  let named: readonly Token[] = [];
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    named = tokensIn(text, names);
    const [first] = named;
    if (first === undefined) throw error;
    if (!allowNan) {
      throw new SyntaxError(`${first.text} is no JSON (${error.message})`, { cause: error });
    }
    // Numbers of the same width: another error is reported at its own place.
    value = JSON.parse(replaced(text, named, ({ length }) => "0".padEnd(length)));
  }
  const long = exact ? tokensIn(text, longIntegers).filter(isUnsafe) : [];
  const marked = [...named, ...long].toSorted((a, b) => a.start - b.start);
  return marked.length === 0 ? value : withMarks(text, marked);
}

/** A number in a text, outside of its strings. */
interface Token {
  readonly start: number;
  readonly text: string;
}

function isUnsafe({ text }: Token): boolean {
  return !Number.isSafeInteger(Number(text));
}

/** Returns the matches outside of strings, up to where the text is no JSON. */
function tokensIn(text: string, pattern: RegExp): Token[] {
  const search = new RegExp(pattern, "g");
  const found: Token[] = [];
  // The next string begins at `open`; the one before it ends at `close`.
  let open: number | undefined;
  let close = -1;
  for (let match = search.exec(text); match !== null; match = search.exec(text)) {
    open ??= quoteFrom(text, 0);
    while (open < match.index) {
      close = endOfString(text, open);
      open = quoteFrom(text, close + 1);
    }
    if (match.index < close) search.lastIndex = close;
    else found.push({ start: match.index, text: match[0] });
  }
  return found;
}

/** Returns the length of the text where it has no more quotes. */
function quoteFrom(text: string, from: number): number {
  const index = text.indexOf('"', from);
  return index < 0 ? text.length : index;
}

/** Returns the place of the quote that ends the string. @param open the place of its first quote */
function endOfString(text: string, open: number): number {
  for (let close = quoteFrom(text, open + 1); ; close = quoteFrom(text, close + 1)) {
    let escapes = 0;
    while (text[close - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0 || close === text.length) return close;
  }
}

function replaced(text: string, tokens: readonly Token[], by: (token: string) => string): string {
  const parts: string[] = [];
  let end = 0;
  for (const token of tokens) {
    parts.push(text.slice(end, token.start), by(token.text));
    end = token.start + token.text.length;
  }
  return [...parts, text.slice(end)].join("");
}

/** @param tokens what JSON does not have, or a double does not hold; all else is JSON */
function withMarks(text: string, tokens: readonly Token[]): unknown {
  const mark = `${randomUUID()} `;
  const marked = replaced(text, tokens, (token) => `"${mark}${token}"`);
  return unmarked(JSON.parse(marked), (value) => {
    if (!value.startsWith(mark)) return value;
    const token = value.slice(mark.length);
    return /\d$/.test(token) ? BigInt(token) : numbers[token];
  });
}

/** Changes the strings of a parsed value in place. */
function unmarked(parsed: unknown, valueOf: (text: string) => unknown): unknown {
  const root = [parsed];
  // No recursion: JSON.parse takes values that are deeper than the stack.
  const holders: object[] = [root];
  const seen = (value: unknown): void => {
    if (typeof value === "object" && value !== null) holders.push(value);
  };
  for (let holder = holders.pop(); holder !== undefined; holder = holders.pop()) {
    if (isList(holder)) {
      for (const [index, value] of holder.entries()) {
        if (typeof value === "string") holder[index] = valueOf(value);
        else seen(value);
      }
    } else {
      // Each key is the object's own, "__proto__" too, so setting it sets no prototype.
      for (const [key, value] of Object.entries(holder)) {
        if (typeof value === "string") Reflect.set(holder, key, valueOf(value));
        else seen(value);
      }
    }
  }
  return root[0];
}

function isList(value: object): value is unknown[] {
  return Array.isArray(value);
}
