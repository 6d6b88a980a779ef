/**
 * Compares a program's output, or a function's result, with the expected answer.
 */

import { isDigits, strip, toFloat } from "../python-text.ts";
import { isList, isRecord } from "../../values/records.ts";
import { parsePythonJson } from "./python-json.ts";

/**
 * Compares standard output as verl's prime_code does: as text without the space around it, and
 * around its lines or not, whatever ends them; or line by line, without empty ones; or as close
 * numbers, one to a line, unless all of them are whole.
 */
export function sameOutput(output: string, expected: string): boolean {
  const [text, wanted] = [strip(output), strip(expected)];
  if (text === wanted) return true;
  const own = linesOf(output);
  if ([own, own.map(strip)].some((lines) => strip(lines.join("\n")) === wanted)) return true;
  const filled = own.filter((line) => line !== "");
  const its = expected
    .split("\n")
    .filter((line) => line !== "")
    .map(strip);
  return filled.length === its.length && (sameLines(filled, its) || closeNumbers(filled, its));
}

/**
 * Compares a function's result as verl's prime_code does: equal as Python's values are (1 is 1.0 is
 * True), or equal to the first of a list of answers. Returns false for texts that are no JSON of
 * Python's.
 *
 * @param value JSON
 * @param expected JSON
 */
export function sameValue(value: string, expected: string): boolean {
  const [own, its] = [parsePythonJson(value), parsePythonJson(expected)];
  if (own === undefined || its === undefined) return false;
  if (equal(own.value, its.value)) return true;
  return Array.isArray(its.value) && its.value.length > 0 && equal(own.value, its.value[0]);
}

/** The line ends of Python's splitlines. */
const lineEnd = new RegExp(String.raw`\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]`);

function linesOf(text: string): string[] {
  const lines = text.split(lineEnd);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

function sameLines(own: readonly string[], its: readonly string[]): boolean {
  return own.every((line, index) => line === its[index]);
}

/** Compares like numpy.allclose, with its tolerances. */
function closeNumbers(own: readonly string[], its: readonly string[]): boolean {
  if (own.every((line, index) => isDigits(line) && isDigits(its[index] ?? ""))) return false;
  return own.every((line, index) => {
    const [a, b] = [toFloat(line), toFloat(its[index] ?? "")];
    if (a === undefined || b === undefined) return false;
    return a === b || (Number.isFinite(b) && Math.abs(a - b) <= 1e-8 + 1e-5 * Math.abs(b));
  });
}

function equal(a: unknown, b: unknown): boolean {
  const [own, its] = [asNumber(a), asNumber(b)];
  if (own !== undefined && its !== undefined) return equalNumbers(own, its);
  if (isList(a) && isList(b)) {
    return a.length === b.length && a.every((one, index) => equal(one, b[index]));
  }
  if (!isRecord(a) || !isRecord(b)) return a === b;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
}

function asNumber(value: unknown): number | bigint | undefined {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "number" || typeof value === "bigint" ? value : undefined;
}

function equalNumbers(a: number | bigint, b: number | bigint): boolean {
  if (typeof a === typeof b) return a === b;
  return (
    [a, b].every((one) => typeof one === "bigint" || Number.isInteger(one)) &&
    BigInt(a) === BigInt(b)
  );
}
