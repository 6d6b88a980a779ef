/**
 * `json.dumps`, as the filter `tojson` of transformers has it: not escaped for HTML, other
 * letters as they are.
 */

import { bound } from "../arguments.ts";
import { fail, unsupported } from "../../error.ts";
import { floatText, str } from "../text.ts";
import { Dict, iterate, isTrue, Markup, Tuple, typeName } from "../values.ts";
import type { Arguments, Value } from "../values.ts";
import { sorted } from "../compare.ts";

interface Style {
  readonly isAscii: boolean;
  /** Undefined: all on one line. */
  readonly indent: string | undefined;
  readonly between: string;
  readonly afterKey: string;
  readonly isSorted: boolean;
}

const parameters = ["ensure_ascii", "indent", "separators", "sort_keys"];

export function toJson(value: Value, given: Arguments): string {
  const [ascii = false, indent = null, separators = null, isSorted = false] = bound(
    "tojson",
    given,
    parameters,
  );
  const own = separators === null ? undefined : iterate(separators).map(separatorOf);
  if (own !== undefined && own.length !== 2) fail("separators must be two");
  const [between = indent === null ? ", " : ",", afterKey = ": "] = own ?? [];
  const style = {
    isAscii: isTrue(ascii),
    indent: indentOf(indent),
    between,
    afterKey,
    isSorted: isTrue(isSorted),
  };
  return written(value, style, "\n");
}

function separatorOf(value: Value): string {
  return typeof value === "string" ? value : fail("a separator must be a text");
}

function indentOf(indent: Value): string | undefined {
  if (indent === null) return undefined;
  if (typeof indent === "string") return indent;
  if (typeof indent === "boolean") return indent ? " " : "";
  if (typeof indent !== "bigint") return fail(`indent must be a number, not ${typeName(indent)}`);
  return " ".repeat(Math.min(1000, Math.max(0, Number(indent))));
}

/** @param newline with the indentation of what is around */
function written(value: Value, style: Style, newline: string): string {
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return numberText(value);
  if (typeof value === "string") return quoted(value, style);
  if (value instanceof Markup) return quoted(value.text, style);
  const inner = style.indent === undefined ? "" : newline + style.indent;
  if (Array.isArray(value) || value instanceof Tuple) {
    const items = iterate(value).map((item) => written(item, style, inner));
    return enclosed("[]", items, style, newline);
  }
  if (value instanceof Dict) {
    const items = orderedPairs(value, style).map(
      ([key, item]) => quoted(keyText(key), style) + style.afterKey + written(item, style, inner),
    );
    return enclosed("{}", items, style, newline);
  }
  return fail(`Object of type ${typeName(value)} is not JSON serializable`);
}

function orderedPairs(dict: Dict, { isSorted }: Style): readonly (readonly [Value, Value])[] {
  if (!isSorted) return dict.pairs();
  return sorted(dict.keys(), dict.keys()).map((key) => [key, dict.get(key) ?? null] as const);
}

function enclosed(
  brackets: string,
  items: readonly string[],
  { indent, between }: Style,
  newline: string,
): string {
  const [open = "", close = ""] = brackets;
  if (items.length === 0) return brackets;
  if (indent === undefined) return open + items.join(between) + close;
  const inner = newline + indent;
  return open + inner + items.join(between + inner) + newline + close;
}

function keyText(key: Value): string {
  if (typeof key === "boolean") return String(key);
  if (key === null) return "null";
  if (typeof key === "number") return numberText(key);
  if (typeof key === "string" || typeof key === "bigint" || key instanceof Markup) return str(key);
  return fail(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? floatText(value) : value > 0 ? "Infinity" : "-Infinity";
}

function quoted(text: string, { isAscii }: Style): string {
  if (!text.isWellFormed() && !isAscii) unsupported("half of a character in JSON");
  const json = JSON.stringify(text);
  if (!isAscii) return json;
  return json.replace(
    /[\x7f-\uffff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
