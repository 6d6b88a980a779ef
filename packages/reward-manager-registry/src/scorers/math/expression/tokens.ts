/**
 * Tokens of an expression, as Python's tokenizer and sympy's parser see them (`parse_expr` with
 * `standard_transformations`): names are multiplied letters, or sympy's own; digits in a name are
 * numbers; `!` wraps its operand.
 */

import { itemAt } from "../../../values/present.ts";
import { hasDigit } from "../../python-text.ts";

/** A number as it is written, because numbers with a point are rounded and others are not. */
export interface NumberToken {
  readonly kind: "number";
  readonly digits: string;
  readonly value: number;
  /** Whether it has a point or an exponent. */
  readonly isFloat: boolean;
  /** Whether it is imaginary: "3j". */
  readonly isImaginary: boolean;
}

export type Token =
  | NumberToken
  /** A letter, or a name that counts as one: with an index, or of a Greek letter. */
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "constant"; readonly name: string }
  | { readonly kind: "function"; readonly name: string }
  /** A function with its argument. */
  | { readonly kind: "applied"; readonly name: string; readonly inside: readonly Token[] }
  | { readonly kind: "operator"; readonly text: string }
  /** A line end of Python; nothing is multiplied across it. */
  | { readonly kind: "line" };

/**
 * Names of sympy and Python with at most two different letters, because a grader asks sympy only
 * about those.
 */
const constants: ReadonlySet<string> = new Set(["pi", "oo", "nan", "zoo"]);
const functions: ReadonlySet<string> = new Set(
  "sqrt ln re im csc frac li ff rf gff jn yn hn1 hn2 fft ntt fu eye all id".split(" "),
);
/** Python's keywords with as few letters, which are no names. */
const keywords: ReadonlySet<string> = new Set(["as", "if", "in", "is", "or"]);
const greek: ReadonlySet<string> = new Set(
  (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lamda lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega " +
    "stigma digamma koppa sampi"
  ).split(" "),
);

const tokenPattern = new RegExp(
  String.raw`[ \t\f]*(?:` +
    // An imaginary number, one with a point or an exponent, one of another base, or a whole one: a
    // zero before other digits is a number of its own.
    String.raw`(\d(?:_?\d)*[jJ]|(?:(?:\d(?:_?\d)*\.(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:[eE][-+]?\d(?:_?\d)*)?|\d(?:_?\d)*[eE][-+]?\d(?:_?\d)*)[jJ]?` +
    String.raw`|0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0(?:_?0)*|[1-9](?:_?\d)*)` +
    String.raw`|((?:\p{XIDS}|_)[\p{L}\p{N}_]*)|(\*\*|\/\/|[!=]=|[-+*/()!])|(\r?\n)|$)`,
  "uy",
);

/**
 * Returns undefined for other characters (as `½` is, before a letter), or Python's keywords.
 */
export function tokensOf(text: string): Token[] | undefined {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < text.length) {
    const match = tokenPattern.exec(text);
    if (match === null) return undefined;
    const [whole, digits, name, operator, line] = match;
    if (digits !== undefined) {
      tokens.push(numberToken(digits));
    } else if (name !== undefined) {
      if (keywords.has(name)) return undefined;
      tokens.push(namedToken(name));
    } else if (operator !== undefined) {
      // A space before it makes it a token of its own in Python.
      if (operator === "!" && whole !== operator) return undefined;
      tokens.push({ kind: "operator", text: operator });
    } else if (line !== undefined) {
      tokens.push({ kind: "line" });
    }
  }
  return withFactorials(tokens);
}

function numberToken(written: string): NumberToken {
  const isImaginary = /j$/i.test(written);
  const digits = (isImaginary ? written.slice(0, -1) : written).replaceAll("_", "");
  const isFloat = digits.includes(".") || (/e/i.test(digits) && !/^0x/i.test(digits));
  return { kind: "number", digits, value: Number(digits), isFloat, isImaginary };
}

function namedToken(name: string): Token {
  if (constants.has(name)) return { kind: "constant", name };
  if (functions.has(name)) return { kind: "function", name };
  return { kind: "symbol", name };
}

/**
 * Wraps each run of `!` around its operand; undefined without an operand, for three of them, or
 * where a name is called.
 */
function withFactorials(tokens: readonly Token[]): Token[] | undefined {
  if (!tokens.some((token) => isOperator(token, "!"))) return [...tokens];
  const result: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = itemAt(tokens, at);
    if (!isOperator(token, "!")) {
      result.push(token);
      continue;
    }
    const isDouble = isOperator(tokens[at + 1], "!");
    if (isDouble) at += 1;
    if (isOperator(tokens[at + 1], "!")) return undefined;
    const start = operandStart(result);
    if (start === undefined || isCalled(result, start)) return undefined;
    const name = isDouble ? "factorial2" : "factorial";
    result.push({ kind: "applied", name, inside: result.splice(start) });
  }
  return result;
}

/** Finds the start of the last value: its parenthesis, and the name of a function before that. */
function operandStart(tokens: readonly Token[]): number | undefined {
  if (tokens.length === 0 || isOperator(tokens.at(-1), "(")) return undefined;
  let depth = 0;
  for (let at = tokens.length - 1; at >= 0; at--) {
    if (isOperator(tokens[at], ")")) depth += 1;
    if (isOperator(tokens[at], "(")) depth -= 1;
    if (depth !== 0) continue;
    const kind = tokens[at - 1]?.kind;
    return kind === "function" || kind === "constant" ? at - 1 : at;
  }
  return undefined;
}

/**
 * Whether a name of one part stands before the parenthesis: to sympy `x(y)` is a call, and once the
 * parenthesis is inside of `factorial` there is nothing to call.
 */
function isCalled(tokens: readonly Token[], start: number): boolean {
  const before = tokens[start - 1];
  if (before?.kind !== "symbol" || !isOperator(tokens[start], "(")) return false;
  return splitName(before.name)?.length === 1;
}

export function isOperator(token: Token | undefined, text: string): boolean {
  return token?.kind === "operator" && token.text === text;
}

/**
 * Splits a name into its letters and numbers: "ab2" is a, b and 2. Returns undefined for digits
 * without a value in Python.
 */
export function splitName(name: string): Token[] | undefined {
  if (name.includes("_") || Array.from(name).length === 1 || greek.has(name)) {
    return [{ kind: "symbol", name }];
  }
  const parts: Token[] = [];
  for (const [part] of name.matchAll(/[0-9]+|[^0-9]/gu)) {
    if (/^[0-9]/.test(part)) parts.push(numberToken(part));
    else if (hasDigit(part)) return undefined;
    else parts.push({ kind: "symbol", name: part });
  }
  return parts;
}
