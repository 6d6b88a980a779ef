/** The tests of jinja2: `value is name(arguments)`. */

import { binary, numberOf } from "../python/arithmetic.ts";
import { bound } from "../python/arguments.ts";
import { isLower, isUpper } from "../python/casing.ts";
import { contains, equals, isSame, order } from "../python/compare.ts";
import { fail, unsupported } from "../error.ts";
import { knows } from "../parse/known-names.ts";
import { str } from "../python/text.ts";
import {
  Callable,
  Dict,
  DictView,
  Iter,
  Markup,
  Opaque,
  sizeOf,
  Undefined,
} from "../python/values.ts";
import type { Arguments, Value } from "../python/values.ts";

export function applyTest(name: string, value: Value, given: Arguments): boolean {
  const alone = Object.hasOwn(unary, name) ? unary[name] : undefined;
  if (alone !== undefined) {
    bound(name, given, []);
    return alone(value);
  }
  const test = Object.hasOwn(comparing, name) ? comparing[name] : undefined;
  if (test === undefined)
    return knows("test", name) ? unsupported(`the test ${name}`) : fail(`No test named '${name}'`);
  const [other = null] = bound(name, given, ["other"], 1);
  return test(value, other);
}

const unary: Readonly<Record<string, (value: Value) => boolean>> = {
  defined: (value) => !(value instanceof Undefined),
  undefined: (value) => value instanceof Undefined,
  none: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  true: (value) => value === true,
  false: (value) => value === false,
  integer: (value) => typeof value === "bigint",
  float: (value) => typeof value === "number",
  // A bool is one, too.
  number: (value) => numberOf(value) !== undefined,
  string: (value) => typeof value === "string" || value instanceof Markup,
  mapping: (value) => value instanceof Dict,
  sequence: (value) => sizeOf(value) !== undefined && !(value instanceof DictView),
  iterable: (value) => {
    if (value instanceof Opaque) return unsupported("whether an image is iterable");
    return value instanceof Iter || sizeOf(value) !== undefined;
  },
  // An undefined value can be called, and fails then.
  callable: (value) => value instanceof Callable || value instanceof Undefined,
  escaped: (value) => value instanceof Markup,
  odd: (value) => equals(binary("%", value, 2n), 1n),
  even: (value) => equals(binary("%", value, 2n), 0n),
  lower: (value) => isLower(str(value)),
  upper: (value) => isUpper(str(value)),
  filter: (value) => typeof value === "string" && knows("filter", value),
  test: (value) =>
    typeof value === "string" && (knows("test", value) || /^(?:[=!<>]=|[<>])$/.test(value)),
};

const equal = (value: Value, other: Value): boolean => equals(value, other);
const unequal = (value: Value, other: Value): boolean => !equals(value, other);
const less = (value: Value, other: Value): boolean => order(value, other, "<") < 0;
const greater = (value: Value, other: Value): boolean => order(value, other, ">") > 0;
const atMost = (value: Value, other: Value): boolean => order(value, other, "<=") <= 0;
const atLeast = (value: Value, other: Value): boolean => order(value, other, ">=") >= 0;

const comparing: Readonly<Record<string, (value: Value, other: Value) => boolean>> = {
  eq: equal,
  equalto: equal,
  "==": equal,
  ne: unequal,
  "!=": unequal,
  lt: less,
  lessthan: less,
  "<": less,
  gt: greater,
  greaterthan: greater,
  ">": greater,
  le: atMost,
  "<=": atMost,
  ge: atLeast,
  ">=": atLeast,
  in: (value, other) => contains(other, value),
  sameas: isSame,
  divisibleby: (value, other) => equals(binary("%", value, other), 0n),
};
