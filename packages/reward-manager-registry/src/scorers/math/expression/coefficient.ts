/**
 * Numbers as sympy has them: whole numbers and fractions are exact, numbers that were written with
 * a point are rounded to 53 bits at each step, and so is the result of an operation with one.
 */

export interface Fraction {
  readonly above: bigint;
  /** Positive, and without a common factor. */
  readonly below: bigint;
  /**
   * Whether it is a number with a point and more digits than a rounded one keeps: sympy keeps them,
   * so that a rounded number is exact beside it.
   */
  readonly isLong?: boolean;
}

/** A number of JavaScript is a rounded one. */
export type Coefficient = Fraction | number;

/** Longer than any answer. To reduce a fraction of this size takes half a millisecond. */
const largest = 2n ** 2000n;
const maxDigits = 600;
/** Whole numbers below it are exact as numbers of JavaScript. */
const doubles = 2n ** 53n;

/** @throws RangeError for numbers that are too long, or a denominator of zero */
export function fraction(above: bigint, below: bigint): Fraction {
  if (below === 0n) throw new RangeError("a denominator of zero");
  const result = below === 1n ? { above, below } : reduced(above, below);
  if (result.above > largest || result.above < -largest || result.below > largest) {
    throw new RangeError("a number of too many digits");
  }
  return result;
}

function reduced(above: bigint, below: bigint): Fraction {
  const common = greatestDivisor(above < 0n ? -above : above, below < 0n ? -below : below);
  const sign = below < 0n ? -1n : 1n;
  return { above: (sign * above) / common, below: (sign * below) / common };
}

export function whole(value: bigint): Fraction {
  return { above: value, below: 1n };
}

/**
 * A number with more digits than a rounded one has: sympy rounds it later, and here it is exact.
 *
 * @throws RangeError
 */
export function coefficientOf(digits: string, isFloat: boolean): Coefficient {
  if (digits.length > maxDigits) throw new RangeError("a number of too many digits");
  if (!isFloat) return fraction(BigInt(digits === "" ? "0" : digits), 1n);
  const [, above = "", behind = "", exponent = "0"] =
    /^(\d*)\.?(\d*)(?:e([-+]?\d+))?$/i.exec(digits) ?? [];
  const value = Number(digits);
  if (`${above}${behind}`.replace(/^0+/, "").length <= 15) {
    if (!Number.isFinite(value)) throw new RangeError("too large");
    return value;
  }
  const places = BigInt(behind.length) - BigInt(exponent);
  if (places > maxDigits || places < -maxDigits) throw new RangeError("too many digits");
  const plain = BigInt(`${above}${behind}`);
  const all = places >= 0n ? fraction(plain, 10n ** places) : fraction(plain * 10n ** -places, 1n);
  return { ...all, isLong: true };
}

export function isZero(value: Coefficient): boolean {
  return typeof value === "number" ? value === 0 : value.above === 0n;
}

export function negated(value: Coefficient): Coefficient {
  return typeof value === "number" ? -value : { ...value, above: -value.above };
}

export function added(a: Coefficient, b: Coefficient): Coefficient {
  if (typeof a === "number") return hasLong(b) ? added(exact(a), b) : a + rounded(b);
  if (typeof b === "number") return added(b, a);
  if (hasLong(a) || hasLong(b)) return { ...sumOf(a, b), isLong: true };
  return sumOf(a, b);
}

function sumOf(a: Fraction, b: Fraction): Fraction {
  if (a.below === b.below) return fraction(a.above + b.above, a.below);
  return fraction(a.above * b.below + b.above * a.below, a.below * b.below);
}

export function multiplied(a: Coefficient, b: Coefficient): Coefficient {
  if (typeof a === "number") return hasLong(b) ? multiplied(exact(a), b) : a * rounded(b);
  if (typeof b === "number") return multiplied(b, a);
  const product = fraction(a.above * b.above, a.below * b.below);
  return hasLong(a) || hasLong(b) ? { ...product, isLong: true } : product;
}

function hasLong(value: Coefficient): boolean {
  return typeof value !== "number" && value.isLong === true;
}

/** @throws RangeError */
function exact(value: number): Fraction {
  if (!Number.isFinite(value)) throw new RangeError("too large");
  let above = value;
  let places = 0;
  for (; !Number.isInteger(above); above *= 2) places += 1;
  return fraction(BigInt(above), 1n << BigInt(places));
}

/**
 * Divides. A fraction by a rounded number is a product with its inverse, as in sympy.
 *
 * @throws RangeError for zero
 */
export function divided(a: Coefficient, b: Coefficient): Coefficient {
  if (isZero(b)) throw new RangeError("a denominator of zero");
  if (typeof a === "number") return a / rounded(b);
  if (typeof b === "number") return rounded(a) * (1 / b);
  return fraction(a.above * b.below, a.below * b.above);
}

/** Rounds down to a whole number, as Python's `//` does. */
export function floored(value: Coefficient): Fraction {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new RangeError("too large");
    return whole(BigInt(Math.floor(value)));
  }
  const quotient = value.above / value.below;
  return whole(value.above < 0n && value.below !== 1n ? quotient - 1n : quotient);
}

/** Rounds to the nearest number, as if from the exact value. */
export function rounded(value: Coefficient): number {
  if (typeof value === "number") return value;
  const { above, below } = value;
  const size = above < 0n ? -above : above;
  if (size < doubles && below < doubles) return Number(above) / Number(below);
  // These are 64 bits and whether any follow: `Number` rounds them like the whole value.
  const shift = BigInt(Math.max(0, 64 - (bitsOf(size) - bitsOf(below))));
  const quotient = (size << shift) / below;
  const hasRest = quotient * below !== size << shift;
  const number = Number(hasRest ? quotient | 1n : quotient) / 2 ** Number(shift);
  return above < 0n ? -number : number;
}

/**
 * Returns about how many hexadecimal digits it has, as a measure of work: nothing for numbers that
 * take no longer than the smallest, an eighth for whole ones, which are not reduced.
 */
export function digitsOf(value: Coefficient): number {
  if (typeof value === "number") return 0;
  const digits = longDigits(value.above) + longDigits(value.below);
  return value.below === 1n ? digits >> 3 : digits;
}

function longDigits(value: bigint): number {
  return value < doubles && value > -doubles ? 0 : value.toString(16).length;
}

function bitsOf(value: bigint): number {
  return (value < 0n ? -value : value).toString(16).length * 4;
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  let [larger, smaller] = [a, b];
  while (smaller >= doubles) [larger, smaller] = [smaller, larger % smaller];
  if (smaller === 0n) return larger === 0n ? 1n : larger;
  // Numbers are much faster for the rest.
  let [divisor, rest] = [Number(smaller), Number(larger % smaller)];
  while (rest !== 0) [divisor, rest] = [rest, divisor % rest];
  return BigInt(divisor);
}
