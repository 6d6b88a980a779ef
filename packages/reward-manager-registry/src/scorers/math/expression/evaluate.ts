/**
 * The value of an expression at one point, with a complex number for each letter.
 */

import {
  doubleFactorial,
  factorial,
  infinite,
  logarithm,
  minus,
  notANumber,
  over,
  plus,
  power,
  sine,
  times,
} from "./complex.ts";
import type { Complex } from "./complex.ts";
import type { Expression, Step } from "./parser.ts";

export type Values = ReadonlyMap<string, Complex>;

/**
 * Returns not-a-number for expressions without a value here: infinities, functions of other kinds.
 */
export function evaluate(expression: Expression, values: Values): Complex {
  switch (expression.kind) {
    case "number":
      return expression.isImaginary
        ? { re: 0, im: expression.value }
        : { re: expression.value, im: 0 };
    case "symbol":
      return values.get(expression.name) ?? notANumber;
    case "constant":
      if (expression.name === "pi") return { re: Math.PI, im: 0 };
      return expression.name === "zoo" ? infinite : notANumber;
    case "sum":
      return inTurn(expression, values, plus, minus);
    case "product":
      return inTurn(expression, values, times, over);
    case "negative":
      return times({ re: -1, im: 0 }, evaluate(expression.of, values));
    case "power":
      return power(evaluate(expression.base, values), evaluate(expression.exponent, values));
    case "call":
      return called(expression.name, evaluate(expression.of, values));
    default: {
      const left = evaluate(expression.left, values);
      const right = evaluate(expression.right, values);
      return { re: isNear(left, right, 1e-10) === expression.isEqual ? 1 : 0, im: 0 };
    }
  }
}

type Operation = (left: Complex, right: Complex) => Complex;

/** Evaluates from left to right, in a loop, because sums may be long. */
function inTurn(
  { first, rest }: { readonly first: Expression; readonly rest: readonly Step[] },
  values: Values,
  operation: Operation,
  inverse: Operation,
): Complex {
  return rest.reduce(
    (left, { isInverse, isFloored = false, of }) => {
      const value = (isInverse ? inverse : operation)(left, evaluate(of, values));
      return isFloored ? floor(value, values) : value;
    },
    evaluate(first, values),
  );
}

/** With letters it has no value here: different ones are alike at points that are near zero. */
function floor({ re, im }: Complex, values: Values): Complex {
  if (values.size > 0 || im !== 0 || !Number.isFinite(re)) return notANumber;
  // Undoes rounding, as of the square of a root.
  const nearest = Math.round(re);
  return { re: Math.abs(re - nearest) < 1e-12 ? nearest : Math.floor(re), im };
}

function called(name: string, value: Complex): Complex {
  switch (name) {
    case "sqrt":
      return power(value, { re: 0.5, im: 0 });
    case "ln":
      return logarithm(value);
    case "factorial":
      return factorial(value);
    case "factorial2":
      return doubleFactorial(value);
    case "re":
      return { re: value.re, im: 0 };
    case "im":
      return { re: value.im, im: 0 };
    case "frac":
      return { re: value.re - Math.floor(value.re), im: value.im - Math.floor(value.im) };
    case "csc":
      return over({ re: 1, im: 0 }, sine(value));
    default:
      return notANumber;
  }
}

/** Whether two values differ by at most a share of the larger one; not-a-number is near nothing. */
export function isNear(left: Complex, right: Complex, share: number): boolean {
  const distance = Math.hypot(left.re - right.re, left.im - right.im);
  const size = Math.max(Math.hypot(left.re, left.im), Math.hypot(right.re, right.im));
  return distance <= share * Math.max(size, Number.MIN_VALUE) && Number.isFinite(size);
}
