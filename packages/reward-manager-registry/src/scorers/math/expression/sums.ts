/**
 * Sums of products of letters with coefficients, and ratios of two such sums. This module has the
 * data; terms.ts multiplies.
 */

import { added, isZero, multiplied, rounded, whole } from "./coefficient.ts";
import type { Coefficient } from "./coefficient.ts";

/** The exponent of each factor; none is zero. */
export type Factors = ReadonlyMap<string, number>;

export interface Term {
  readonly coefficient: Coefficient;
  readonly factors: Factors;
}

/** Terms by their factors, as text. */
export type Sum = ReadonlyMap<string, Term>;

export interface Ratio {
  readonly above: Sum;
  readonly below: Sum;
}

export function constant(coefficient: Coefficient): Sum {
  return termSum({ coefficient, factors: new Map() });
}

export function letter(name: string): Sum {
  return termSum({ coefficient: whole(1n), factors: new Map([[name, 1]]) });
}

export function termSum(term: Term): Sum {
  return isZero(term.coefficient) ? new Map() : new Map([[keyOf(term.factors), term]]);
}

export function over1(above: Sum): Ratio {
  return { above, below: constant(whole(1n)) };
}

function keyOf(factors: Factors): string {
  if (factors.size === 0) return "";
  return [...factors]
    .map(([name, count]) => `${name}:${count}`)
    .toSorted()
    .join(" ");
}

/** Adds sums from left to right; terms with equal factors become one. */
export function sumOf(sums: readonly Sum[]): Sum {
  const [first, ...others] = sums;
  if (first !== undefined && others.length === 0) return first;
  const all = new Map<string, Term>();
  for (const [key, term] of sums.flatMap((sum) => [...sum])) {
    const before = all.get(key);
    const coefficient =
      before === undefined ? term.coefficient : added(before.coefficient, term.coefficient);
    if (isZero(coefficient)) all.delete(key);
    else all.set(key, { coefficient, factors: term.factors });
  }
  return all;
}

export function times(sum: Sum, by: Coefficient): Sum {
  return new Map(
    [...sum].map(([key, term]) => [
      key,
      { ...term, coefficient: multiplied(term.coefficient, by) },
    ]),
  );
}

/** Rounds its fractions; whole numbers stay exact. */
export function roundedSum(sum: Sum): Sum {
  return new Map(
    [...sum].map(([key, term]) => {
      const { coefficient } = term;
      const isWhole = typeof coefficient !== "number" && coefficient.below === 1n;
      return [key, isWhole ? term : { ...term, coefficient: rounded(coefficient) }];
    }),
  );
}

/** Returns the number that a ratio is, if it is one. */
export function numberIn({ above, below }: Ratio): Coefficient | undefined {
  if (!isOne(below) || above.size > 1) return undefined;
  const [only] = above.values();
  if (only === undefined) return whole(0n);
  return only.factors.size === 0 ? only.coefficient : undefined;
}

export function isOne(sum: Sum): boolean {
  const [only] = sum.values();
  if (sum.size !== 1 || only === undefined || only.factors.size > 0) return false;
  const { coefficient } = only;
  return typeof coefficient !== "number" && coefficient.above === 1n && coefficient.below === 1n;
}

export function print({ above, below }: Ratio): string {
  return isOne(below) ? printSum(above) : `(${printSum(above)}/${printSum(below)})`;
}

export function printSum(sum: Sum): string {
  const terms = [...sum].map(([key, { coefficient }]) => {
    const number =
      typeof coefficient === "number"
        ? `${coefficient}.`
        : `${coefficient.above}/${coefficient.below}`;
    return `${number}*${key}`;
  });
  return `(${terms.toSorted().join("+")})`;
}
