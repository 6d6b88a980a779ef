/** Filters of numbers. */

import { binary, numberOf } from "../../python/arithmetic.ts";
import { bound, integer } from "../../python/arguments.ts";
import { fail, unsupported } from "../../error.ts";
import { fixed, rounded } from "../../python/format/rounding.ts";
import { isTrue, Markup, typeName, Undefined } from "../../python/values.ts";
import type { Value } from "../../python/values.ts";
import { stripped } from "../../python/text-methods.ts";
import type { Filter, Filters } from "./filter.ts";

/** Returns undefined for a value that is no number. */
function floatOf(value: Value): number | undefined {
  const number = numberOf(value);
  if (number !== undefined) return Number(number);
  if (value instanceof Undefined) return value.fail();
  const text = value instanceof Markup ? value.text : value;
  if (typeof text !== "string") return undefined;
  const digits = stripped(text, undefined);
  if (/[^\0-\x7f]/.test(digits)) return unsupported("a number in other digits than 0 to 9");
  if (/^[-+]?(?:inf|infinity)$/i.test(digits)) return digits.startsWith("-") ? -Infinity : Infinity;
  if (/^[-+]?nan$/i.test(digits)) return Number.NaN;
  const whole = /^[-+]?(?:\d+(?:_\d+)*\.?|(?=\.))(?:(?<=\.)\d+(?:_\d+)*)?(?:e[-+]?\d+(?:_\d+)*)?$/i;
  return whole.test(digits) && /^[-+]?\.?\d/.test(digits)
    ? Number(digits.replaceAll("_", ""))
    : undefined;
}

const digitsOf: Readonly<Record<number, { readonly prefix: RegExp; readonly literal: string }>> = {
  2: { prefix: /^0b_?/i, literal: "0b" },
  8: { prefix: /^0o_?/i, literal: "0o" },
  10: { prefix: /^(?!)/, literal: "" },
  16: { prefix: /^0x_?/i, literal: "0x" },
};

function intOf(text: string, base: number): bigint | undefined {
  const notation = digitsOf[base];
  if (notation === undefined) return unsupported(`a number of base ${base}`);
  const digits = stripped(text, undefined);
  if (/[^\0-\x7f]/.test(digits)) return unsupported("a number in other digits than 0 to 9");
  const [, sign = "", rest = ""] = /^([-+]?)([\s\S]*)$/.exec(digits) ?? [];
  const bare = rest.replace(notation.prefix, "");
  if (!/^[\da-z]+(?:_[\da-z]+)*$/i.test(bare)) return undefined;
  try {
    const size = BigInt(notation.literal + bare.replaceAll("_", ""));
    return sign === "-" ? -size : size;
  } catch (error) {
    // A digit that this base has not.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const int: Filter = (value, given, name) => {
  const [standard = 0n, base = 10n] = bound(name, given, ["default", "base"]);
  const text = value instanceof Markup ? value.text : value;
  if (typeof text === "string") {
    const whole = intOf(text, integer(base, name));
    if (whole !== undefined) return whole;
  } else if (typeof text === "bigint" || typeof text === "boolean") {
    return BigInt(text);
  }
  const number = floatOf(text);
  if (typeof text === "number" && Math.abs(text) === Infinity) {
    return fail("cannot convert float infinity to integer");
  }
  return number !== undefined && Number.isFinite(number) ? BigInt(Math.trunc(number)) : standard;
};

const round: Filter = (value, given, name) => {
  const [precision = 0n, method = "common"] = bound(name, given, ["precision", "method"]);
  if (method !== "common" && method !== "ceil" && method !== "floor") {
    return fail("method must be common, ceil or floor");
  }
  const number = numberOf(value);
  if (value instanceof Undefined) return value.fail();
  if (number === undefined) return fail(`cannot round ${typeName(value)}`);
  if (method === "common") {
    if (precision === null) return unsupported("round to None");
    const places = integer(precision, name);
    if (typeof number === "number") return rounded(number, places);
    return places >= 0 ? number : unsupported("rounding an int to tens");
  }
  const scale = binary("**", 10n, precision);
  const scaled = binary("*", number, scale);
  if (typeof scaled === "bigint") return binary("/", scaled, scale);
  const whole = method === "ceil" ? Math.ceil(Number(scaled)) : Math.floor(Number(scaled));
  if (!Number.isFinite(whole)) return fail("cannot convert float to integer");
  return binary("/", BigInt(whole), scale);
};

const filesizeformat: Filter = (value, given, name) => {
  const [binaryUnits = false] = bound(name, given, ["binary"]);
  const bytes = floatOf(value) ?? fail(`could not convert ${typeName(value)} to float`);
  const isBinary = isTrue(binaryUnits);
  const base = isBinary ? 1024 : 1000;
  if (bytes === 1) return "1 Byte";
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const prefixes = isBinary ? "KMGTPEZY" : "kMGTPEZY";
  let place = 0;
  while (place < prefixes.length - 1 && bytes >= base ** (place + 2)) place += 1;
  return `${fixed((base * bytes) / base ** (place + 2), 1)} ${prefixes[place]}${isBinary ? "iB" : "B"}`;
};

export const numberFilters: Filters = {
  abs: (value, given, name) => {
    bound(name, given, []);
    if (value instanceof Undefined) return value.fail();
    const number = numberOf(value) ?? fail(`bad operand type for abs(): ${typeName(value)}`);
    return typeof number === "number" ? Math.abs(number) : number < 0n ? -number : number;
  },
  int,
  float: (value, given, name) => {
    const [standard = 0] = bound(name, given, ["default"]);
    return floatOf(value) ?? standard;
  },
  round,
  filesizeformat,
};
