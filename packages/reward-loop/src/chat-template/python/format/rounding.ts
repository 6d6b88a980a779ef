/** Decimal digits of floats as Python rounds them: by the exact value, ties to even. */

import { unsupported } from "../../error.ts";

/** The digits of `value` with `places` behind the point. */
export function fixed(value: number, places: number): string {
  if (Math.abs(value) >= 1e21 || places > 100) unsupported("a float of so many digits");
  const text = value.toFixed(places);
  if (!isTie(value, places)) return text;
  // toFixed takes the larger of two that are equally near; away from zero, as it takes the sign
  // apart.
  const isOdd = Number(text.at(-1)) % 2 === 1;
  if (!isOdd) return text;
  const size = BigInt(text.replace(/[-.]/g, "")) - 1n;
  const digits = size.toString().padStart(places + 1, "0");
  const point = digits.length - places;
  const sign = value < 0 ? "-" : "";
  return sign + digits.slice(0, point) + (places > 0 ? `.${digits.slice(point)}` : "");
}

/** `round(value, places)`. */
export function rounded(value: number, places: number): number {
  if (!Number.isFinite(value)) return value;
  if (places < 0) return unsupported("rounding a float to tens");
  // Such a float has no digits to lose.
  if (Math.abs(value) >= 2 ** 53 || places > 22) return value;
  return Number(fixed(value, places));
}

/**
 * Whether `value` lies exactly in the middle of two: then 2 * 10^places * value is an odd
 * integer.
 */
function isTie(value: number, places: number): boolean {
  // A float with an exact half at that place has at most places + 1 binary digits behind the point.
  const scaled = Math.abs(value) * 2 ** (places + 1);
  if (!Number.isInteger(scaled)) return false;
  const doubled = BigInt(scaled) * 10n ** BigInt(places) * 2n;
  const unit = 2n ** BigInt(places + 1);
  return doubled % unit === 0n && (doubled / unit) % 2n === 1n;
}
