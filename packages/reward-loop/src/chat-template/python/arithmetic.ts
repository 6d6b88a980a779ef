/** Python's operators on its values: ints of any size, floats, texts, lists and tuples. */

import { fail, unsupported } from "../error.ts";
import { printf } from "./format/printf.ts";
import type { BinaryOperator } from "../parse/syntax.ts";
import { markupOf } from "./text.ts";
import { DictView, Markup, Tuple, Undefined, isList, typeName } from "./values.ts";
import type { Value } from "./values.ts";

/** Far above any prompt: 2^24 characters or items, ints of 2^16 bits. */
const MOST_ITEMS = 2 ** 24;
const MOST_BITS = 2 ** 16;

export function binary(operator: BinaryOperator, left: Value, right: Value): Value {
  if (left instanceof Undefined) return left.fail();
  if (operator === "%" && typeof left === "string") return printf(left, right);
  if (right instanceof Undefined) return right.fail();
  const [a, b] = [numberOf(left), numberOf(right)];
  if (a !== undefined && b !== undefined) {
    if (typeof a === "bigint" && typeof b === "bigint") return ofInts(operator, a, b);
    return ofFloats(operator, Number(a), Number(b));
  }
  const value =
    operator === "+" ? joined(left, right) : operator === "*" ? repeated(left, right) : undefined;
  if (value !== undefined) return value;
  for (const one of [left, right]) {
    if (one instanceof Markup) unsupported(`${operator} with a text that is marked safe`);
    if (one instanceof DictView) unsupported(`${operator} with ${typeName(one)}`);
  }
  return fail(
    `unsupported operand type(s) for ${operator}: ${typeName(left)} and ${typeName(right)}`,
  );
}

export function negative(value: Value, sign: "-" | "+"): Value {
  if (value instanceof Undefined) return value.fail();
  const number = numberOf(value);
  if (number === undefined) return fail(`bad operand type for unary ${sign}: ${typeName(value)}`);
  return sign === "+" ? number : -number;
}

/** A bool is an int. */
export function numberOf(value: Value): bigint | number | undefined {
  if (typeof value === "boolean") return value ? 1n : 0n;
  return typeof value === "bigint" || typeof value === "number" ? value : undefined;
}

function joined(left: Value, right: Value): Value | undefined {
  if (typeof left === "string" && typeof right === "string") return left + right;
  if (isText(left) && isText(right)) return new Markup(markupOf(left).text + markupOf(right).text);
  if (isList(left) && isList(right)) return [...left, ...right];
  if (left instanceof Tuple && right instanceof Tuple) {
    return new Tuple([...left.items, ...right.items]);
  }
  return undefined;
}

function isText(value: Value): boolean {
  return typeof value === "string" || value instanceof Markup;
}

function repeated(left: Value, right: Value): Value | undefined {
  const [times, what] =
    numberOf(left) === undefined ? [numberOf(right), left] : [numberOf(left), right];
  if (typeof times !== "bigint") return undefined;
  const count = times < 0n ? 0 : Number(times);
  const fitting = (size: number): number =>
    size * count <= MOST_ITEMS
      ? count
      : unsupported(`a value of ${size * count} characters or items`);
  if (typeof what === "string") return what.repeat(fitting(what.length));
  if (what instanceof Tuple) return new Tuple(copies(what.items, fitting(what.items.length)));
  return Array.isArray(what) ? copies(what, fitting(what.length)) : undefined;
}

function copies(items: readonly Value[], count: number): Value[] {
  return Array.from({ length: count }, () => items).flat();
}

function ofInts(operator: BinaryOperator, a: bigint, b: bigint): Value {
  if (b === 0n && /[/%]/.test(operator)) fail("integer division or modulo by zero");
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return fittingInt(bits(a) + bits(b), () => a * b);
    case "/":
      return ratio(a, b);
    case "//":
      return (a - modulo(a, b)) / b;
    case "%":
      return modulo(a, b);
    default:
      if (b < 0n) return ofFloats("**", Number(a), Number(b));
      return fittingInt(bits(a) * Number(b), () => a ** b);
  }
}

/** The remainder has the sign of `b`. */
function modulo(a: bigint, b: bigint): bigint {
  const rest = a % b;
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

function ratio(a: bigint, b: bigint): number {
  const [left, right] = [Number(a), Number(b)];
  if (Number.isSafeInteger(left) && Number.isSafeInteger(right)) return left / right;
  return unsupported("/ of ints above 2^53");
}

function bits(value: bigint): number {
  return value.toString(2).length;
}

function fittingInt(size: number, work: () => bigint): bigint {
  return size <= MOST_BITS ? work() : unsupported("an int of that size");
}

function ofFloats(operator: BinaryOperator, a: number, b: number): number {
  if (b === 0 && /[/%]/.test(operator)) fail("float division or modulo by zero");
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "//":
      return floorOf(a, b);
    case "%":
      return floatModulo(a, b);
    default:
      if (a === 0 && b < 0) fail("0.0 cannot be raised to a negative power");
      if (a < 0 && !Number.isInteger(b) && Number.isFinite(b)) unsupported("a complex number");
      return finitePower(a, b);
  }
}

function finitePower(a: number, b: number): number {
  const power = a ** b;
  const isOverflow = !Number.isFinite(power) && Number.isFinite(a) && Number.isFinite(b);
  return isOverflow ? fail("(34, 'Numerical result out of range')") : power;
}

function floatModulo(a: number, b: number): number {
  const rest = a % b;
  if (rest === 0) return b < 0 ? -0 : 0;
  return rest < 0 === b < 0 ? rest : rest + b;
}

/** The floor of the exact quotient, not of the rounded one: 1.0 // 0.1 is 9. */
function floorOf(a: number, b: number): number {
  const quotient = (a - floatModulo(a, b)) / b;
  if (quotient === 0) return a < 0 === b < 0 ? 0 : -0;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}
