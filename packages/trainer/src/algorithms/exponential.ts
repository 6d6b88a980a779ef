/**
 * The exponential function of many numbers. V8 calls `Math.exp` for each of them, one after the
 * other; in the loop here one exponential begins before the last one is there.
 *
 * x = (64 k + j) ln 2 / 64 + r, where |r| is at most ln 2 / 128, and exp x = 2^k 2^(j / 64) exp r
 * (P. T. P. Tang, Table-driven implementation of the exponential function, 1989). exp r is the
 * Taylor polynomial of degree 5, whose error is below 4e-17. The result is within 1 ulp of
 * `Math.exp`.
 */

import { clamp } from "./matrix.ts";

const parts = 64;

/** 2^(j / 64). */
const roots = Float64Array.from({ length: parts }, (_, part) => 2 ** (part / parts));

/** 2^k for k from -1022, at `k + offset`. */
const offset = 1022;
const powersOfTwo = Float64Array.from({ length: 2 * offset + 2 }, (_, at) => 2 ** (at - offset));

/** ln 2 / 64: its first 29 bits, whose products with `steps` are exact, and the rest. */
const step = 0x162e42fe / 2 ** 35;
const rest = Math.LN2 / parts - step + 2.3190468138462996e-17 / parts;
const perStep = parts / Math.LN2;

/** Added and taken away again, it rounds a number to a whole one. */
const rounder = 1.5 * 2 ** 52;

/**
 * Fills in e to the first `length` of the powers, each within 1 ulp of `Math.exp`. Both may be one
 * array. A power beyond `most`, or below minus `most`, is taken for that; NaN stays NaN.
 *
 * The formula stands in the loop itself: V8 puts a function into its callers only up to a budget.
 */
export function exponentialsInto(
  results: Float64Array,
  powers: Float64Array,
  length: number,
  most = Infinity,
): void {
  // Beyond 708 the result may be no normal number, or none at all.
  const bound = Math.min(most, 708);
  for (let index = 0; index < length; index++) {
    const power = powers[index] ?? NaN;
    if (!(Math.abs(power) < bound)) {
      results[index] = Math.exp(clamp(power, -most, most));
      continue;
    }
    const steps = power * perStep + rounder - rounder;
    const r = power - steps * step - steps * rest;
    const whole = steps | 0;
    const growth = r + r * r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120))));
    const root = roots[whole & (parts - 1)] ?? NaN;
    results[index] = (root + root * growth) * (powersOfTwo[(whole >> 6) + offset] ?? NaN);
  }
}
