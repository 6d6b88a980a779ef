/** Python's `text % values`. */

import { integer } from "../arguments.ts";
import { fail, unsupported } from "../../error.ts";
import { formatNumber, padded } from "./format-spec.ts";
import { repr, str } from "../text.ts";
import { Dict, Range, Tuple, typeName, Undefined } from "../values.ts";
import type { Value } from "../values.ts";

const directive = /%(?:\(([^)]*)\))?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?[hlL]?([\s\S]|$)/g;

export function printf(text: string, values: Value): string {
  const list = values instanceof Tuple ? values.items : [values];
  let at = 0;
  let isNamed = false;
  const next = (): Value => {
    const value = list[at++];
    return value === undefined ? fail("not enough arguments for format string") : value;
  };
  const size = (given: string | undefined): number | undefined => {
    if (given === "*") return integer(next(), "* wants int");
    return given === undefined ? undefined : Number(given);
  };
  const result = text.replace(
    directive,
    (_whole: string, ...groups: readonly (string | undefined)[]) => {
      const [key, flags = "", width, precision, kind = ""] = groups;
      const [wide, digits] = [size(width), size(precision)];
      if (kind === "%") return "%";
      if (key !== undefined) isNamed = true;
      const value = key === undefined ? next() : named(values, key);
      return converted(value, kind, { flags, width: wide ?? 0, digits });
    },
  );
  const isTaken = at >= list.length || isNamed || (list.length === 1 && isMapping(values));
  return isTaken ? result : fail("not all arguments converted during string formatting");
}

/** Mappings may stay unused: Python asks for a mapping by __getitem__, which lists have, too. */
function isMapping(value: Value): boolean {
  return (
    value instanceof Dict ||
    value instanceof Range ||
    value instanceof Undefined ||
    Array.isArray(value)
  );
}

function named(values: Value, key: string): Value {
  if (!(values instanceof Dict)) return fail("format requires a mapping");
  const value = values.get(key);
  return value === undefined ? fail(`KeyError: '${key}'`) : value;
}

interface Shape {
  readonly flags: string;
  readonly width: number;
  readonly digits: number | undefined;
}

function converted(value: Value, kind: string, { flags, width, digits }: Shape): string {
  const isLeft = flags.includes("-");
  if ("sr".includes(kind) && kind !== "") {
    const text = kind === "s" ? str(value) : repr(value);
    const cut = digits === undefined ? text : Array.from(text).slice(0, digits).join("");
    return padded(cut, width, isLeft ? "<" : ">", " ");
  }
  if (kind === "c" || kind === "a") return unsupported(`%${kind} in a format`);
  if (!"diufFeEgGxXo".includes(kind) || kind === "")
    return fail(`unsupported format character '${kind}'`);
  if (value instanceof Undefined) return value.fail();
  if (typeof value !== "bigint" && typeof value !== "number" && typeof value !== "boolean") {
    return fail(`%${kind} format: a real number is required, not ${typeName(value)}`);
  }
  const isInt = "diu".includes(kind);
  if ("xXo".includes(kind) && typeof value === "number")
    return fail(`%${kind} format: an integer is required`);
  if (isInt && typeof value === "number" && !Number.isFinite(value))
    return fail("cannot convert float to integer");
  const whole = isInt && typeof value === "number" ? BigInt(Math.trunc(value)) : value;
  const sign = flags.includes("+") ? "+" : flags.includes(" ") ? " " : "-";
  const isAlternate = flags.includes("#");
  if (isAlternate || (isInt && digits !== undefined))
    return unsupported(`the format %${flags}${kind}`);
  const number = formatNumber(whole, { sign, kind: isInt ? "d" : kind, digits });
  if (isLeft) return padded(number, width, "<", " ");
  return flags.includes("0") ? padded(number, width, "=", "0") : padded(number, width, ">", " ");
}
