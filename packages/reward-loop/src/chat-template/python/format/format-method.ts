/** Python's `"{} {name}".format(...)`. */

import { fail, unsupported } from "../../error.ts";
import { formatValue } from "./format-spec.ts";
import { repr, str } from "../text.ts";
import type { Arguments, Value } from "../values.ts";

const part = /\{\{|\}\}|\{([^{}]*)\}|[{}]/g;

/** Attribute and item access of a field. */
export interface LookUp {
  readonly attributeOf: (object: Value, name: string, hasItems: boolean) => Value;
  readonly itemOf: (object: Value, key: Value, hasAttributes: boolean) => Value;
}

export function format(text: string, given: Arguments, lookUp: LookUp): string {
  let next = 0;
  return text.replace(part, (whole, field: string | undefined) => {
    if (whole === "{{") return "{";
    if (whole === "}}") return "}";
    if (field === undefined) {
      if (text.includes("{")) return unsupported("braces inside of a format's braces");
      return fail("Single '}' encountered in format string");
    }
    const [, path = "", conversion, spec = ""] =
      /^([^!:]*)(?:!([^:]*))?(?::([\s\S]*))?$/.exec(field) ?? [];
    const value = valueOf(path, given, lookUp, () => String(next++));
    if (conversion === "s") return formatValue(str(value), spec);
    if (conversion === "r") return formatValue(repr(value), spec);
    return conversion === undefined
      ? formatValue(value, spec)
      : unsupported(`!${conversion} in a format`);
  });
}

function valueOf(
  path: string,
  { positional, keyword }: Arguments,
  { attributeOf, itemOf }: LookUp,
  count: () => string,
): Value {
  const [, name = "", rest = ""] = /^([^.[]*)([\s\S]*)$/.exec(path) ?? [];
  const key = name === "" ? count() : name;
  let value = /^\d+$/.test(key) ? positional[Number(key)] : keyword.get(key);
  if (value === undefined) return fail(`format has no argument ${key}`);
  for (const [whole, attribute, item] of rest.matchAll(/\.([^.[]+)|\[([^\]]+)\]|[\s\S]/g)) {
    if (attribute !== undefined) value = attributeOf(value, attribute, false);
    else if (item !== undefined)
      value = itemOf(value, /^\d+$/.test(item) ? BigInt(item) : item, false);
    else fail(`unexpected ${whole} in a format`);
  }
  return value;
}
