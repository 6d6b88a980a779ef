/**
 * Expands expressions: a sum of products of letters and roots, over another such sum. Two
 * expressions are exactly equal if their difference has no terms, with sympy's numbers
 * (coefficient.ts): 0.1 + 0.2 is not 0.3, 0.5x is x/2.
 *
 * Opaque parts count as letters: powers with letters in them, logarithms, roots of sums, what is
 * rounded down.
 */

import { coefficientOf, floored, negated, rounded, whole } from "./coefficient.ts";
import type { Coefficient, Fraction } from "./coefficient.ts";
import { factorial } from "./complex.ts";
import type { Expression } from "./parser.ts";
import {
  constant,
  isOne,
  letter,
  numberIn,
  over1,
  print,
  printSum,
  roundedSum,
  sumOf,
  termSum,
  times,
} from "./sums.ts";
import type { Ratio, Sum, Term } from "./sums.ts";
import { Work } from "./work.ts";

/** Two terms are multiplied in the time of so many units of work, and one for each factor. */
const productUnits = 8;
const maxExponent = 64;
const maxFactorial = 200;

const functions: ReadonlySet<string> = new Set(
  "ln re im csc frac li factorial factorial2".split(" "),
);

export type Comparison =
  | "same"
  /** Different in this form: roots, or rounded numbers, may yet be equal. */
  | "different"
  /** Certainly different for some values of the letters. */
  | "unequal"
  /** Too long to expand, or without a value. */
  | "unknown";

export interface TermsOptions {
  /** Whether fractions beside letters are rounded before they are multiplied. Default false. */
  readonly roundsFirst?: boolean;
}

export function compareTerms(
  left: Expression,
  right: Expression,
  { roundsFirst = false }: TermsOptions = {},
): Comparison {
  try {
    const terms = new Terms(roundsFirst);
    const one = terms.ratio(left);
    const other = terms.ratio(right);
    if (terms.difference(one, other).size === 0) return "same";
    return terms.hasOnlyLetters() ? "unequal" : "different";
  } catch (error) {
    if (error instanceof RangeError) return "unknown";
    throw error;
  }
}

class Terms {
  /** The square of each factor. */
  readonly #squares = new Map<string, Sum>([["I", constant(whole(-1n))]]);
  readonly #roundsFirst: boolean;
  readonly #work = new Work();
  /** Short names of letters by their texts: a part within parts would else be in each text. */
  readonly #names = new Map([["I", "I"]]);
  #hasOthers = false;

  constructor(roundsFirst: boolean) {
    this.#roundsFirst = roundsFirst;
  }

  hasOnlyLetters(): boolean {
    return !this.#hasOthers;
  }

  /** @throws RangeError for an expression that is too long, or has no value */
  ratio(expression: Expression): Ratio {
    switch (expression.kind) {
      case "number":
        return this.#number(expression.digits, expression.isFloat, expression.isImaginary);
      case "symbol":
        return over1(letter(this.#nameOf(expression.name)));
      case "constant":
        if (expression.name !== "pi") throw new RangeError("no number");
        return over1(letter(this.#nameOf("pi")));
      case "negative": {
        const { above, below } = this.ratio(expression.of);
        return { above: this.#times(above, whole(-1n)), below };
      }
      case "sum":
        return this.#sum(expression);
      case "product":
        return expression.rest.reduce((all, { isInverse, isFloored = false, of }) => {
          const next = this.ratio(of);
          if (!isInverse) return this.#multiplied(all, next);
          const quotient = this.#divided(all, next);
          return isFloored ? this.#floored(quotient) : quotient;
        }, this.ratio(expression.first));
      case "power":
        return this.#power(expression.base, expression.exponent);
      case "call":
        return this.#call(expression.name, this.ratio(expression.of));
      default:
        throw new RangeError("no number");
    }
  }

  /** The numerator of the difference over one denominator. */
  difference(left: Ratio, right: Ratio): Sum {
    return this.#added([
      this.#product(left.above, right.below),
      this.#times(this.#product(right.above, left.below), whole(-1n)),
    ]);
  }

  #added(sums: readonly Sum[]): Sum {
    return sumOf(sums, this.#work);
  }

  #times(sum: Sum, by: Coefficient): Sum {
    return times(sum, by, this.#work);
  }

  #product(left: Sum, right: Sum): Sum {
    const terms: Sum[] = [];
    for (const one of left.values()) {
      for (const other of right.values()) terms.push(this.#termProduct(one, other));
    }
    return this.#added(terms);
  }

  #number(digits: string, isFloat: boolean, isImaginary: boolean): Ratio {
    const coefficient = coefficientOf(digits, isFloat);
    if (typeof coefficient === "number") this.#hasOthers = true;
    const number = constant(coefficient);
    if (!isImaginary) return over1(number);
    this.#hasOthers = true;
    return over1(this.#product(number, letter("I")));
  }

  #sum({ first, rest }: Extract<Expression, { kind: "sum" }>): Ratio {
    const start = this.ratio(first);
    let above = [start.above];
    let below = start.below;
    for (const { isInverse, of } of rest) {
      const next = this.ratio(of);
      const nextAbove = isInverse ? this.#times(next.above, whole(-1n)) : next.above;
      if (isOne(below) && isOne(next.below)) {
        above.push(nextAbove);
        continue;
      }
      above = [this.#product(this.#added(above), next.below), this.#product(nextAbove, below)];
      below = this.#product(below, next.below);
    }
    return { above: this.#added(above), below };
  }

  #multiplied(left: Ratio, right: Ratio): Ratio {
    const one = this.#prepared(left);
    const other = this.#prepared(right);
    return {
      above: this.#product(one.above, other.above),
      below: this.#product(one.below, other.below),
    };
  }

  #prepared(ratio: Ratio): Ratio {
    if (!this.#roundsFirst || numberIn(ratio) !== undefined) return ratio;
    return {
      above: roundedSum(ratio.above, this.#work),
      below: roundedSum(ratio.below, this.#work),
    };
  }

  #divided(left: Ratio, right: Ratio): Ratio {
    if (right.above.size === 0) throw new RangeError("a denominator of zero");
    const [only, ...others] = right.above.values();
    if (only === undefined || others.length > 0) {
      return this.#multiplied(left, { above: right.below, below: right.above });
    }
    const number = numberIn(left);
    const isNumber = number !== undefined && numberIn(right) !== undefined;
    // As in sympy, numbers divide, and anything else is multiplied by the inverse.
    const above = isNumber
      ? constant(this.#work.divided(number, only.coefficient))
      : this.#times(left.above, this.#work.divided(whole(1n), only.coefficient));
    const below = termSum({ coefficient: whole(1n), factors: only.factors });
    return this.#multiplied({ above, below: left.below }, { above: right.below, below });
  }

  #power(base: Expression, exponent: Expression): Ratio {
    const of = this.ratio(base);
    const power = this.ratio(exponent);
    const by = numberIn(power);
    if (by === undefined) {
      const number = numberIn(of);
      // The one kind of fraction that sympy finds equal to a rounded number there.
      const isPart = number !== undefined && typeof number !== "number" && number.above === 1n;
      const isRounded = isPart && number.below !== 1n;
      const written = isRounded ? `(${rounded(number)}.*)` : print(of, this.#work);
      return over1(this.#other(`${written}^${print(power, this.#work)}`));
    }
    if (typeof by === "number") return this.#roundedPower(of, by);
    if (by.below === 1n) return this.#wholePower(of, Number(by.above));
    if (by.below !== 2n)
      return over1(this.#other(`${print(of, this.#work)}^${by.above}/${by.below}`));
    return this.#wholePower(this.#root(of), Number(by.above));
  }

  #floored(of: Ratio): Ratio {
    const number = numberIn(of);
    if (number !== undefined) return over1(constant(floored(number)));
    return over1(this.#other(`floor${print(of, this.#work)}`));
  }

  #wholePower(base: Ratio, exponent: number): Ratio {
    if (!(Math.abs(exponent) <= maxExponent)) throw new RangeError("too large an exponent");
    if (exponent === 0) return over1(constant(whole(1n)));
    let power = base;
    for (let count = 1; count < Math.abs(exponent); count++) power = this.#multiplied(power, base);
    return exponent < 0 ? this.#divided(over1(constant(whole(1n))), power) : power;
  }

  /** 2^0.5 is a number, but x^0.5 is no root of x. */
  #roundedPower(base: Ratio, exponent: number): Ratio {
    const number = numberIn(base);
    if (number === undefined) return over1(this.#other(`${print(base, this.#work)}^${exponent}.`));
    const value = rounded(number) ** exponent;
    if (!Number.isFinite(value)) throw new RangeError("no number");
    return over1(constant(value));
  }

  #root(of: Ratio): Ratio {
    const number = numberIn(of);
    if (number !== undefined) return this.#rootOfNumber(number);
    const [only, ...others] = of.above.values();
    if (only === undefined || others.length > 0 || !isOne(of.below)) return this.#rootOf(of);
    // Only a positive number is taken out: the root of x² is not x.
    const { coefficient, factors } = only;
    const isNegative = rounded(coefficient) < 0;
    const outside = this.#rootOfNumber(isNegative ? negated(coefficient) : coefficient);
    const inside = termSum({ coefficient: whole(isNegative ? -1n : 1n), factors });
    return this.#multiplied(outside, this.#rootOf(over1(inside)));
  }

  #rootOf(of: Ratio): Ratio {
    if (!isOne(of.below)) return over1(this.#other(`sqrt${print(of, this.#work)}`));
    return over1(this.#rootNamed(`sqrt${printSum(of.above, this.#work)}`, of.above));
  }

  #rootOfNumber(number: Coefficient): Ratio {
    const size = rounded(number) < 0 ? negated(number) : number;
    const root = typeof size === "number" ? constant(Math.sqrt(size)) : this.#surd(size);
    if (size === number) return over1(root);
    this.#hasOthers = true;
    return over1(this.#product(root, letter("I")));
  }

  /** Simplifies a root: √12 is 2√3. */
  #surd({ above, below }: Fraction): Sum {
    let outside = 1n;
    let inside = above * below;
    // Larger squares stay inside; the comparison by value then decides.
    for (let factor = 2n; factor <= 1000n && factor * factor <= inside; factor++) {
      this.#work.spend(1);
      while (inside % (factor * factor) === 0n) {
        inside /= factor * factor;
        outside *= factor;
      }
    }
    const coefficient = this.#work.divided(whole(outside), whole(below));
    if (inside === 0n || inside === 1n) return constant(inside === 0n ? whole(0n) : coefficient);
    const root = this.#rootNamed(`sqrt${inside}`, constant(whole(inside)));
    return this.#times(root, coefficient);
  }

  #call(name: string, of: Ratio): Ratio {
    if (name === "sqrt") return this.#root(of);
    const number = numberIn(of);
    if (name === "factorial" && number !== undefined) {
      this.#work.spend(maxFactorial);
      const product = factorialOf(number);
      if (product !== undefined) return over1(constant(product));
    }
    if (!functions.has(name) || (name === "ln" && of.above.size === 0)) {
      throw new RangeError("no number");
    }
    return over1(this.#other(`${name}${print(of, this.#work)}`));
  }

  #rootNamed(text: string, square: Sum): Sum {
    const root = this.#other(text);
    this.#squares.set(this.#nameOf(text), square);
    return root;
  }

  #other(text: string): Sum {
    this.#hasOthers = true;
    return letter(this.#nameOf(text));
  }

  #nameOf(text: string): string {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    const name = `#${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }

  #termProduct(left: Term, right: Term): Sum {
    this.#work.spend(productUnits + left.factors.size + right.factors.size);
    const coefficient = this.#work.multiplied(left.coefficient, right.coefficient);
    const factors = new Map(left.factors);
    let squares: Sum | undefined;
    for (const [name, count] of right.factors) {
      let total = (factors.get(name) ?? 0) + count;
      const square = this.#squares.get(name);
      if (square !== undefined) {
        for (; total >= 2; total -= 2) {
          squares = squares === undefined ? square : this.#product(squares, square);
        }
      }
      if (total === 0) factors.delete(name);
      else factors.set(name, total);
    }
    const product = termSum({ coefficient, factors });
    return squares === undefined ? product : this.#product(product, squares);
  }
}

/** Returns the factorial of whole numbers up to a limit, and of numbers with a point. */
function factorialOf(of: Coefficient): Coefficient | undefined {
  const isRounded = typeof of === "number";
  if (isRounded && !Number.isInteger(of)) return factorial({ re: of, im: 0 }).re;
  if (!isRounded && of.below !== 1n) return undefined;
  const limit = isRounded ? BigInt(of) : of.above;
  if (limit < 0n) throw new RangeError("no number");
  if (limit > maxFactorial) return undefined;
  let product = 1n;
  for (let factor = 2n; factor <= limit; factor++) product *= factor;
  return isRounded ? rounded(whole(product)) : whole(product);
}
