/**
 * Decides whether two expressions are equal for all values of their letters, as sympy does when it
 * simplifies their difference.
 *
 * They are first evaluated at points of the complex plane, which separates most unequal ones.
 * Expressions that are equal there are expanded (terms.ts), which decides exact equality: numbers
 * with a point are rounded as sympy rounds them.
 */

import { evaluate, isNear } from "./evaluate.ts";
import { infinite } from "./complex.ts";
import type { Complex } from "./complex.ts";
import type { Values } from "./evaluate.ts";
import { parseArithmetic, parseExpression } from "./parser.ts";
import type { Expression } from "./parser.ts";
import { compareTerms } from "./terms.ts";
import { itemAt } from "../../../values/present.ts";

export interface EqualityOptions {
  /**
   * Whether numbers with a point are equal up to rounding: 0.1 + 0.2 is 0.3, 0.333333333333333 a
   * third. Default false, as in sympy.
   */
  readonly lenient?: boolean;
}

/** The largest rounding error, relative to the larger value. */
const tolerance = { numbers: 4e-15, letters: 1e-10 };

/** Points in all quadrants, so that sqrt(x^2) is not x; none of them is special. */
const points: readonly Complex[] = [
  { re: 0.7548, im: 0.5698 },
  { re: -1.3247, im: 0.4655 },
  { re: -0.8191, im: -1.2207 },
  { re: 1.1673, im: -0.6823 },
  { re: -1.618, im: 0.0 },
  { re: 1.4655, im: 0.0 },
];

export function areEqualExpressions(
  left: string,
  right: string,
  { lenient = false }: EqualityOptions = {},
): boolean {
  const first = parseExpression(left);
  const second = first === undefined ? undefined : parseExpression(right);
  if (first === undefined || second === undefined) return false;
  const names = new Set<string>();
  const hasFloats = [lookInto(first, names), lookInto(second, names)].includes(true);
  const atPoints = compareAtPoints(first, second, [...names]);
  if (atPoints === "far") return false;
  const isNearby = atPoints === "near";
  if (isNearby && lenient) return true;
  if (hasFloats) return areEqualWhenRounded(first, second, names.size > 0);
  // Different expressions with small numbers differ by more than that.
  if (isNearby && normOf(first) + normOf(second) < clearNorm) return true;
  const exactly = compareTerms(first, second);
  return exactly === "same" || (isNearby && exactly !== "unequal");
}

function areEqualWhenRounded(left: Expression, right: Expression, hasLetters: boolean): boolean {
  const exactly = compareTerms(left, right);
  if (exactly === "same") return true;
  // With letters sympy may round all numbers before it expands, and accepts equality then.
  if (hasLetters) return compareTerms(left, right, { roundsFirst: true }) === "same";
  return exactly === "unknown" && isNear(evaluate(left, noValues), evaluate(right, noValues), 0);
}

/** "unclear": both are so near zero that the rest may be rounding, or too large. */
type Nearness = "near" | "unclear" | "far";

function compareAtPoints(left: Expression, right: Expression, names: readonly string[]): Nearness {
  if (names.length === 0) {
    return nearness(evaluate(left, noValues), evaluate(right, noValues), tolerance.numbers);
  }
  let all: Nearness = "near";
  for (const index of points.keys()) {
    const values = new Map(
      names.map((name, offset) => [name, itemAt(points, (index + 2 * offset) % points.length)]),
    );
    const here = nearness(evaluate(left, values), evaluate(right, values), tolerance.letters);
    if (here === "far") return here;
    if (here === "unclear") all = here;
  }
  return all;
}

function nearness(left: Complex, right: Complex, share: number): Nearness {
  if (isNear(left, right, share)) return "near";
  if (left === infinite || right === infinite) return "far";
  const sizes = [sizeOf(left), sizeOf(right)];
  const isTooLarge = sizes.some((size) => !Number.isFinite(size));
  return isTooLarge || sizes.every((size) => size < tiny) ? "unclear" : "far";
}

/** The fourth root of a rounding error: what is zero may be that much. */
const tiny = 1e-3;

/** Two different polynomials with smaller numbers than this differ by more than the tolerance. */
const clearNorm = 1e4;

/** Bounds the size of its numbers after expansion. */
function normOf(expression: Expression): number {
  switch (expression.kind) {
    case "number":
      return expression.value;
    case "symbol":
    case "constant":
      return 1;
    case "negative":
      return normOf(expression.of);
    case "sum":
      return expression.rest.reduce((sum, { of }) => sum + normOf(of), normOf(expression.first));
    case "product":
      return expression.rest.reduce(
        (product, { of }) => product * Math.max(1, normOf(of)),
        Math.max(1, normOf(expression.first)),
      );
    case "power": {
      const { base, exponent } = expression;
      const by = exponent.kind === "negative" ? exponent.of : exponent;
      return by.kind === "number" ? Math.max(1, normOf(base)) ** by.value : Infinity;
    }
    case "call":
      return expression.name === "sqrt" ? normOf(expression.of) : Infinity;
    default:
      return Infinity;
  }
}

function sizeOf({ re, im }: Complex): number {
  return Math.hypot(re, im);
}

/**
 * Evaluates arithmetic as Python's `eval` does, without letters, implied products, or powers
 * written with "^". Returns undefined for other texts, and for expressions without a value.
 */
export function evaluateArithmetic(text: string): number | undefined {
  if (!/^[-+*/().\d\se]*$/.test(text)) return undefined;
  const expression = parseArithmetic(text);
  if (expression === undefined) return undefined;
  const { re, im } = evaluate(expression, noValues);
  return im === 0 && Number.isFinite(re) ? re : undefined;
}

const noValues: Values = new Map();

/**
 * Returns whether a number has a point.
 *
 * @param names gets the letters of the expression
 */
function lookInto(expression: Expression, names: Set<string>): boolean {
  let hasFloats = false;
  const left: Expression[] = [expression];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (next.kind === "symbol") names.add(next.name);
    if (next.kind === "number" && next.isFloat) hasFloats = true;
    left.push(...partsOf(next));
  }
  return hasFloats;
}

function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "sum":
    case "product":
      return [expression.first, ...expression.rest.map(({ of }) => of)];
    case "negative":
    case "call":
      return [expression.of];
    case "power":
      return [expression.base, expression.exponent];
    case "comparison":
      return [expression.left, expression.right];
    default:
      return [];
  }
}
