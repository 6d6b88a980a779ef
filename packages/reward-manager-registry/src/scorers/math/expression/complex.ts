/**
 * Complex numbers, as far as expressions need them. An undefined value is not a number. A number
 * divided by zero (sympy's `zoo`) is `infinite`: one object, compared by identity, because
 * overflowing numbers are not that.
 */

import { itemAt } from "../../../values/present.ts";

export interface Complex {
  readonly re: number;
  readonly im: number;
}

export const notANumber: Complex = { re: Number.NaN, im: Number.NaN };

export const infinite: Complex = { re: Infinity, im: Infinity };

export function plus(a: Complex, b: Complex): Complex {
  if (a === infinite || b === infinite) return a === b ? notANumber : infinite;
  return { re: a.re + b.re, im: a.im + b.im };
}

export function minus(a: Complex, b: Complex): Complex {
  if (a === infinite || b === infinite) return a === b ? notANumber : infinite;
  return { re: a.re - b.re, im: a.im - b.im };
}

export function times(a: Complex, b: Complex): Complex {
  if (a === infinite || b === infinite) return isZero(a) || isZero(b) ? notANumber : infinite;
  return { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re };
}

export function over(a: Complex, b: Complex): Complex {
  if (b === infinite) return a === infinite ? notANumber : { re: 0, im: 0 };
  if (a === infinite) return infinite;
  if (isZero(b)) return isZero(a) ? notANumber : infinite;
  if (b.im === 0) return { re: a.re / b.re, im: a.im / b.re };
  const size = b.re * b.re + b.im * b.im;
  const { re, im } = times(a, { re: b.re, im: -b.im });
  return { re: re / size, im: im / size };
}

function isZero({ re, im }: Complex): boolean {
  return re === 0 && im === 0;
}

/** Returns the principal value. */
export function power(base: Complex, exponent: Complex): Complex {
  if (exponent === infinite) return notANumber;
  if (base === infinite) {
    if (exponent.im !== 0) return notANumber;
    if (exponent.re === 0) return { re: 1, im: 0 };
    return exponent.re > 0 ? infinite : { re: 0, im: 0 };
  }
  if (exponent.im === 0 && Number.isInteger(exponent.re) && Math.abs(exponent.re) <= 1024) {
    return wholePower(base, exponent.re);
  }
  if (base.im === 0 && exponent.im === 0 && base.re >= 0) {
    const isRoot = exponent.re === 0.5;
    return { re: isRoot ? Math.sqrt(base.re) : base.re ** exponent.re, im: 0 };
  }
  return isZero(base) ? notANumber : exponential(times(logarithm(base), exponent));
}

function wholePower(base: Complex, exponent: number): Complex {
  let result: Complex = { re: 1, im: 0 };
  let square = base;
  for (let left = Math.abs(exponent); left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = times(result, square);
    square = times(square, square);
  }
  return exponent < 0 ? over({ re: 1, im: 0 }, result) : result;
}

export function exponential({ re, im }: Complex): Complex {
  const scale = Math.exp(re);
  return { re: scale * Math.cos(im), im: scale * Math.sin(im) };
}

/** Returns the principal value. */
export function logarithm(value: Complex): Complex {
  if (value === infinite || isZero(value)) return infinite;
  const { re, im } = value;
  // A negative zero counts as positive.
  return { re: Math.log(Math.hypot(re, im)), im: Math.atan2(im === 0 ? 0 : im, re) };
}

export function sine({ re, im }: Complex): Complex {
  return { re: Math.sin(re) * Math.cosh(im), im: Math.cos(re) * Math.sinh(im) };
}

/** Returns a product for whole numbers, else a value of the gamma function. */
export function factorial(value: Complex): Complex {
  if (value === infinite) return infinite;
  const { im } = value;
  // Undoes rounding, as of the square of a root.
  const re = Math.abs(value.re - Math.round(value.re)) < 1e-12 ? Math.round(value.re) : value.re;
  if (im !== 0 || !Number.isInteger(re)) return gamma(plus(value, { re: 1, im: 0 }));
  if (re < 0) return infinite;
  if (re > 170) return notANumber;
  let product = 1;
  for (let factor = 2; factor <= re; factor++) product *= factor;
  return { re: product, im: 0 };
}

/** Multiplies every other number down to 1 or 2; whole numbers only. */
export function doubleFactorial({ re, im }: Complex): Complex {
  if (im !== 0 || !Number.isInteger(re) || re < 0 || re > 300) return notANumber;
  let product = 1;
  for (let factor = re; factor > 1; factor -= 2) product *= factor;
  return { re: product, im: 0 };
}

/** Lanczos' approximation with g = 7 and nine terms, to about 15 digits. */
const lanczos: readonly number[] = [
  0.999_999_999_999_809_93, 676.520_368_121_885_1, -1259.139_216_722_402_8, 771.323_428_777_653_13,
  -176.615_029_162_140_59, 12.507_343_278_686_905, -0.138_571_095_265_720_12,
  9.984_369_578_019_571_6e-6, 1.505_632_735_149_311_6e-7,
];

function gamma(value: Complex): Complex {
  if (value.re < 0.5) {
    const mirrored = times(
      sine({ re: Math.PI * value.re, im: Math.PI * value.im }),
      gamma(minus({ re: 1, im: 0 }, value)),
    );
    return over({ re: Math.PI, im: 0 }, mirrored);
  }
  const z = minus(value, { re: 1, im: 0 });
  const series = lanczos
    .slice(1)
    .reduce<Complex>(
      (sum, coefficient, index) =>
        plus(sum, over({ re: coefficient, im: 0 }, plus(z, { re: index + 1, im: 0 }))),
      { re: itemAt(lanczos, 0), im: 0 },
    );
  const t = plus(z, { re: 7.5, im: 0 });
  const scaled = times(
    power(t, plus(z, { re: 0.5, im: 0 })),
    exponential({ re: -t.re, im: -t.im }),
  );
  return times({ re: Math.sqrt(2 * Math.PI), im: 0 }, times(scaled, series));
}
