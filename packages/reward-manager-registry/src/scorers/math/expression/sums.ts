/**
 * Sums of products of letters with coefficients, and ratios of two such sums. This module has the
 * data; terms.ts multiplies. Whatever walks a whole sum spends `Work` on it.
 */

import { digitsOf, isZero, rounded, whole } from "./coefficient.ts";
import type { Coefficient } from "./coefficient.ts";
import type { Work } from "./work.ts";

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
export function sumOf(sums: readonly Sum[], work: Work): Sum {
  const [first, ...others] = sums;
  if (first !== undefined && others.length === 0) return first;
  const all = new Map<string, Term>();
  for (const [key, term] of sums.flatMap((sum) => [...sum])) {
    work.spend(1);
    const before = all.get(key);
    const coefficient =
      before === undefined ? term.coefficient : work.added(before.coefficient, term.coefficient);
    if (isZero(coefficient)) all.delete(key);
    else all.set(key, { coefficient, factors: term.factors });
  }
  return all;
}

export function times(sum: Sum, by: Coefficient, work: Work): Sum {
  return new Map(
    [...sum].map(([key, term]) => [
      key,
      { ...term, coefficient: work.multiplied(term.coefficient, by) },
    ]),
  );
}

/** Rounds its fractions; whole numbers stay exact. */
export function roundedSum(sum: Sum, work: Work): Sum {
  return new Map(
    [...sum].map(([key, term]) => {
      const { coefficient } = term;
      work.spend(1 + digitsOf(coefficient));
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

export function print({ above, below }: Ratio, work: Work): string {
  if (isOne(below)) return printSum(above, work);
  return `(${printSum(above, work)}/${printSum(below, work)})`;
}

export function printSum(sum: Sum, work: Work): string {
  const terms = [...sum].map(([key, { coefficient, factors }]) => {
    work.spend(1 + factors.size + digitsOf(coefficient));
    const number =
      typeof coefficient === "number"
        ? `${coefficient}.`
        : `${coefficient.above}/${coefficient.below}`;
    return `${number}*${key}`;
  });
  return `(${terms.toSorted().join("+")})`;
}
