/** Python's format specifications: `format(value, "<8.2f")`, and numbers in them. */

import { fail, unsupported } from "../../error.ts";
import { fixed } from "./rounding.ts";
import { floatText, str } from "../text.ts";
import { characters, typeName, Undefined } from "../values.ts";
import type { Value } from "../values.ts";

export function padded(text: string, width: number, align: string, fill: string): string {
  const missing = width - characters(text).length;
  if (missing <= 0) return text;
  if (missing > 2 ** 24) return unsupported("a text of that width");
  if (align === "<") return text + fill.repeat(missing);
  if (align === ">") return fill.repeat(missing) + text;
  if (align === "^") {
    const before = Math.floor(missing / 2);
    return fill.repeat(before) + text + fill.repeat(missing - before);
  }
  const [sign = ""] = /^[-+ ]?/.exec(text) ?? [];
  return sign + fill.repeat(missing) + text.slice(sign.length);
}

export interface NumberShape {
  /** "-": of negative ones only. */
  readonly sign: string;
  /** d, x, X, o, b, f, F, e, E, g, G, %, or empty for a float as it is printed. */
  readonly kind: string;
  readonly digits: number | undefined;
  /** Between thousands. */
  readonly grouping?: string;
}

export function formatNumber(
  value: bigint | number | boolean,
  { sign, kind, digits, grouping = "" }: NumberShape,
): string {
  const isInt = typeof value !== "number" && "dxXob".includes(kind) && kind !== "";
  const number = typeof value === "boolean" ? Number(value) : value;
  const isNegative = number < 0 || Object.is(number, -0);
  const text = isInt ? ofInt(BigInt(number), kind) : ofFloat(Number(number), kind, digits);
  const size = text.replace(/^-/, "");
  const prefix = isNegative ? "-" : sign === "-" ? "" : sign;
  return (
    prefix + (grouping === "" ? size : size.replace(/^\d+/, (whole) => grouped(whole, grouping)))
  );
}

function grouped(digits: string, grouping: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, grouping);
}

function ofInt(value: bigint, kind: string): string {
  const radix = { d: 10, x: 16, X: 16, o: 8, b: 2 }[kind];
  const text = value.toString(radix);
  return kind === "X" ? text.toUpperCase() : text;
}

function ofFloat(value: number, kind: string, given: number | undefined): string {
  if (!Number.isFinite(value)) {
    const text = floatText(value) + (kind === "%" ? "%" : "");
    return "FEG".includes(kind) && kind !== "" ? text.toUpperCase() : text;
  }
  if (kind === "")
    return given === undefined ? floatText(value) : unsupported("a precision without a type");
  const digits = given ?? 6;
  switch (kind.toLowerCase()) {
    case "f":
      return fixed(value, digits);
    case "%":
      return `${fixed(value * 100, digits)}%`;
    case "e":
      return cased(exponential(value, digits), kind);
    default:
      return cased(general(value, digits === 0 ? 1 : digits), kind);
  }
}

function cased(text: string, kind: string): string {
  return kind === kind.toUpperCase() ? text.toUpperCase() : text;
}

function exponential(value: number, digits: number): string {
  if (digits > 100) unsupported("a float of so many digits");
  const [mantissa = "", power = "0"] = value.toExponential(digits).split("e");
  if (Number(mantissa) !== 0 && isHalfway(value, digits))
    unsupported("a float halfway between two");
  const size = String(Math.abs(Number(power))).padStart(2, "0");
  return `${mantissa}e${Number(power) < 0 ? "-" : "+"}${size}`;
}

/** Both toExponential and Python round to the nearest; they differ where two are equally near. */
function isHalfway(value: number, digits: number): boolean {
  if (digits >= 99) return false;
  const more = value.toExponential(Math.min(100, digits + 30)).split("e")[0] ?? "";
  return (
    /^-?\d\.?\d*50*$/.test(more.slice(0)) &&
    more
      .replace(/[-.]/g, "")
      .slice(digits + 1)
      .replace(/0+$/, "") === "5"
  );
}

function general(value: number, digits: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa = "", power = "0"] = exponential(value, digits - 1).split("e");
  const exponent = Number(power);
  const bare = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (exponent < -4 || exponent >= digits) return `${bare(mantissa)}e${power}`;
  return bare(fixed(value, digits - 1 - exponent));
}

const specification =
  /^(?:([\s\S])?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/u;

/** `format(value, spec)`. */
export function formatValue(value: Value, spec: string): string {
  if (value instanceof Undefined) return value.fail();
  if (spec === "") return str(value);
  const parts = specification.exec(spec);
  if (parts === null) return fail(`Invalid format specifier '${spec}'`);
  const [, fill, align, sign, isAlternate, zero, width = "0", grouping = "", digits, kind = ""] =
    parts;
  if (isAlternate !== undefined) unsupported("# in a format");
  const wide = Number(width);
  if (typeof value === "string") {
    if ((kind !== "s" && kind !== "") || sign !== undefined || grouping !== "" || align === "=") {
      return fail(`Invalid format specifier '${spec}' for a text`);
    }
    const cut = digits === undefined ? value : characters(value).slice(0, Number(digits)).join("");
    return padded(cut, wide, align ?? "<", fill ?? (zero === undefined ? " " : "0"));
  }
  if (typeof value !== "bigint" && typeof value !== "number") {
    if (typeof value === "boolean") return unsupported("a bool in a format with a specification");
    return fail(`unsupported format string passed to ${typeName(value)}.__format__`);
  }
  const isFloat = typeof value === "number" || /[fFeEgG%]/.test(kind);
  if (kind === "n" || kind === "c" || (zero !== undefined && grouping !== "")) {
    return unsupported(`the format ${spec}`);
  }
  if (!(isFloat ? /^[fFeEgG%]?$/ : /^[dxXob]?$/).test(kind)) {
    return fail(`Unknown format code '${kind}' for object of type ${typeName(value)}`);
  }
  if (!isFloat && digits !== undefined)
    return fail("Precision not allowed in integer format specifier");
  const shape = {
    sign: sign ?? "-",
    kind: kind === "" && !isFloat ? "d" : kind,
    digits: digits === undefined ? undefined : Number(digits),
    grouping,
  };
  const text = formatNumber(value, shape);
  const standard = zero === undefined ? ([">", " "] as const) : (["=", "0"] as const);
  return padded(text, wide, align ?? standard[0], fill ?? standard[1]);
}
