/**
 * Inserts omitted parts of an expression where sympy does (`implicit_multiplication_application`):
 * multiplication signs, parentheses around a function's argument, and the place of an exponent
 * before it.
 *
 * A power binds to the letter before it: "ab^2" is a·b², because names are split before the
 * multiplication.
 */

import { isOperator, splitName } from "./tokens.ts";
import type { Token } from "./tokens.ts";
import { itemAt } from "../../../values/present.ts";

const times: Token = { kind: "operator", text: "*" };
const open: Token = { kind: "operator", text: "(" };
const close: Token = { kind: "operator", text: ")" };

/** Returns undefined for an unreadable expression. */
export function withImplied(tokens: readonly Token[]): Token[] | undefined {
  const split: Token[] = [];
  for (const token of tokens) {
    if (token.kind === "symbol") {
      const parts = splitName(token.name);
      if (parts === undefined) return undefined;
      split.push(...parts);
    } else if (token.kind === "applied") {
      const inside = withImplied(token.inside);
      if (inside === undefined) return undefined;
      split.push({ ...token, inside });
    } else {
      split.push(token);
    }
  }
  const multiplied = withProducts(split);
  if (!multiplied.some((token) => token.kind === "function")) return multiplied;
  return withExponentsBehind(withApplications(multiplied));
}

function withProducts(tokens: readonly Token[]): Token[] {
  const result: Token[] = [];
  for (const [index, token] of tokens.entries()) {
    if (index > 0 && isProduct(itemAt(tokens, index - 1), token)) result.push(times);
    result.push(token);
  }
  return result;
}

function isProduct(left: Token, right: Token): boolean {
  const begins = right.kind !== "line" && (right.kind !== "operator" || right.text === "(");
  if (!begins) return false;
  if (left.kind === "operator") return left.text === ")";
  return left.kind !== "function" && left.kind !== "line";
}

/**
 * Reads "ln 2x" as ln(2x): the argument ends at the next sign that is neither a product nor a
 * power.
 */
function withApplications(tokens: readonly Token[]): Token[] {
  const result: Token[] = [];
  let missing = 0;
  let passes = 0;
  let isAfterPower = false;
  for (const [index, token] of tokens.entries()) {
    result.push(token);
    const next = tokens[index + 1];
    if (next === undefined) break;
    const isNext = (...texts: readonly string[]): boolean =>
      texts.some((text) => isOperator(next, text));
    const isName = token.kind === "function" || token.kind === "constant";
    if (isName && next.kind !== "operator" && next.kind !== "line") {
      if (token.kind === "function") {
        result.push(open);
        missing += 1;
      }
    } else if (isName && isNext("**")) {
      if (token.kind === "function") isAfterPower = true;
    } else if (isAfterPower) {
      const isValue = !isName && token.kind !== "operator" && token.kind !== "line";
      if ((isValue || isOperator(token, "*")) && !isNext("*")) {
        if (!isNext("(")) {
          result.push(open);
          missing += 1;
        }
        isAfterPower = false;
      }
    } else if (missing > 0) {
      if (isNext("*", "**")) {
        passes = 1;
      } else if (passes > 0) {
        passes -= 1;
      } else {
        result.push(close);
        missing -= 1;
      }
    }
  }
  for (; missing > 0; missing--) result.push(close);
  return result;
}

/** Reads "ln**2(x)" as ln(x)**2. */
function withExponentsBehind(tokens: readonly Token[]): Token[] {
  const result: Token[] = [];
  let exponent: Token[] = [];
  let isExponent = false;
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1];
    if (next === undefined) {
      result.push(token);
      break;
    }
    if (token.kind === "function" && isOperator(next, "**")) {
      isExponent = true;
    } else if (isExponent) {
      exponent.push(token);
      if (isOperator(next, "(") && isOperator(token, ")")) isExponent = false;
      if (isOperator(next, "(") && isOperator(token, "*")) {
        isExponent = false;
        exponent.pop();
      }
      continue;
    } else if (exponent.length > 0) {
      if (isOperator(token, "(")) depth += 1;
      if (isOperator(token, ")")) depth -= 1;
      if (depth === 0) {
        result.push(token, ...exponent);
        exponent = [];
        continue;
      }
    }
    result.push(token);
  }
  return [...result, ...exponent];
}
