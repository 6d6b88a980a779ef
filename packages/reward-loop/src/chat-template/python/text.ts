/** How Python writes its values: `str` and `repr`. */

import { unsupported } from "../error.ts";
import {
  Callable,
  characters,
  Dict,
  DictView,
  Iter,
  Markup,
  Namespace,
  Opaque,
  Range,
  Tuple,
  typeName,
  Undefined,
} from "./values.ts";
import type { Value } from "./values.ts";

/** White space as Python has it, as characters of a class. */
export const SPACE =
  "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

export function str(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Markup) return value.text;
  return value instanceof Undefined ? "" : repr(value);
}

/** markupsafe's `escape`. */
export function markupOf(value: Value): Markup {
  if (value instanceof Markup) return value;
  return new Markup(str(value).replace(/[&<>'"]/g, (one) => escapes[one]!));
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;",
  '"': "&#34;",
};

export function repr(value: Value): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return floatText(value);
  if (typeof value === "string") return quoted(value);
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Tuple) {
    const parts = value.items.map(repr);
    return parts.length === 1 ? `(${parts[0]},)` : `(${parts.join(", ")})`;
  }
  if (value instanceof Dict) return dictText(value.pairs());
  if (value instanceof DictView) return `${value.kind}(${listText(value.items)})`;
  if (value instanceof Range) {
    const { start, stop, step } = value;
    return step === 1n ? `range(${start}, ${stop})` : `range(${start}, ${stop}, ${step})`;
  }
  if (value instanceof Markup) return `Markup(${quoted(value.text)})`;
  if (value instanceof Namespace) return `<Namespace ${dictText([...value.values])}>`;
  if (value instanceof Iter) return unsupported("printing an iterator");
  if (value instanceof Callable) {
    return value.text ?? unsupported(`printing the function ${value.name}`);
  }
  if (value instanceof Opaque) return unsupported(`printing ${typeName(value)}`);
  return listText(value);
}

function listText(items: readonly Value[]): string {
  return `[${items.map(repr).join(", ")}]`;
}

function dictText(pairs: readonly (readonly [Value, Value])[]): string {
  return `{${pairs.map(([key, value]) => `${repr(key)}: ${repr(value)}`).join(", ")}}`;
}

/** The shortest digits that mean this number, as JavaScript has them, in Python's notation. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits = "", power = "0"] = value.toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${digits}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent >= 0) return Number.isInteger(value) ? `${value}.0` : String(value);
  const sign = value < 0 ? "-" : "";
  const figures = digits.replace(/[-.]/g, "");
  return `${sign}0.${"0".repeat(-exponent - 1)}${figures}`;
}

/** Double quotes only for a text that has single ones and no double ones. */
function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  return (
    quote +
    characters(text)
      .map((one) => escaped(one, quote))
      .join("") +
    quote
  );
}

const named: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\\": "\\\\",
};

function escaped(one: string, quote: string): string {
  if (one === quote) return `\\${quote}`;
  const name = named[one];
  if (name !== undefined) return name;
  if (one === " " || !/[\p{C}\p{Z}]/u.test(one)) return one;
  const code = one.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}
