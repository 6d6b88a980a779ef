/**
 * The tests of a programming task, as verl's data sets have them in the ground truth: JSON (or an
 * object) of `inputs` and `outputs`, one of each per test, with `fn_name` if a function is called,
 * or with `assert_case`, lines of code that must run behind the program.
 */

import { InvalidSampleError } from "../../errors.ts";
import { describeValue } from "../../value-description.ts";
import { isRecord } from "../../values/records.ts";
import { parsePythonJson, writePythonJson } from "./python-json.ts";

/** verl runs no more tests for a continuous score. */
export const mostTests = 10;

export interface CodeTest {
  /** Standard input; for a call, the function's arguments as JSON, one per line. */
  readonly stdin: string;
  /** Standard output, or JSON of the function's result; undefined: a successful run suffices. */
  readonly expected: string | undefined;
  /** Lines that must run behind the program. */
  readonly assertion: string | undefined;
}

export interface CodeTests {
  readonly tests: readonly CodeTest[];
  readonly functionName: string | undefined;
}

/** The result of one test. */
export interface CodeTestResult {
  /** Number of the test, from 0. */
  readonly test: number;
  /** `skipped`: in an earlier test the program did not compile, or took too long. */
  readonly status:
    | "success"
    | "wrong_answer"
    | "runtime_error"
    | "timeout"
    | "output_limit"
    | "compile_error"
    | "skipped";
  /** Its standard output; null if it is unknown, or the test did not run. */
  readonly stdout: string | null;
  /** Its standard error; null if it is unknown, or the test did not run. */
  readonly stderr: string | null;
  /** Its exit code; null if it has none, or the test did not run. */
  readonly exitCode: number | null;
  /** The elapsed time of its run; null if it is unknown, or the test did not run. */
  readonly durationMs: number | null;
}

/** In verl, a tuple (score, metadata). */
export interface CodeScore {
  /** The share of passed tests. */
  readonly score: number;
  /** The result of each test, in their order. */
  readonly metadata: readonly CodeTestResult[];
}

/**
 * Throws InvalidSampleError: malformed tests say nothing about a response.
 *
 * @param most tests behind so many are left out, and not looked at
 */
export function readCodeTests(groundTruth: unknown, most: number = Infinity): CodeTests {
  const given = typeof groundTruth === "string" ? parsed(groundTruth) : groundTruth;
  if (!isRecord(given)) {
    refuse("an object of tests, or JSON of one", given);
  }
  const { inputs, outputs, fn_name: functionName, assert_case: cases } = given;
  if (functionName !== undefined && functionName !== null && !isIdentifier(functionName)) {
    refuse("tests whose fn_name is an identifier", functionName);
  }
  const name = isIdentifier(functionName) ? functionName : undefined;
  const tests = Array.isArray(cases)
    ? cases.slice(0, most).map((line, index) => assertion(line, inputs, outputs, index))
    : pairs(inputs, outputs, name, most);
  if (tests.length === 0) refuse("tests, at least one", "none");
  return { tests, functionName: Array.isArray(cases) ? undefined : name };
}

function pairs(
  inputs: unknown,
  outputs: unknown,
  name: string | undefined,
  most: number,
): CodeTest[] {
  if (!Array.isArray(inputs)) refuse("tests with a list of inputs", inputs);
  if (!Array.isArray(outputs) || outputs.length !== inputs.length) {
    refuse(`tests with as many outputs as inputs, ${inputs.length}`, outputs);
  }
  return inputs.slice(0, most).map((input: unknown, index) => {
    const output: unknown = outputs[index];
    const [stdin, expected] =
      name === undefined
        ? [lines("inputs", input), lines("outputs", output)]
        : [argumentsOf(name, input, index), resultOf(name, output, index)];
    return { stdin, expected, assertion: undefined };
  });
}

/** Returns the arguments of a call, which may be a list of values, as JSON, one per line. */
function argumentsOf(name: string, input: unknown, index: number): string {
  const text = Array.isArray(input) ? input.map(writePythonJson).join("\n") : input;
  const field = `inputs[${index}]`;
  if (typeof text !== "string") return refuse(`tests whose ${field} is a text, or a list`, input);
  const wrong = text.split("\n").find((line) => line.trim() !== "" && !isPythonJson(line));
  if (wrong === undefined) return text;
  return refuse(`tests whose ${field} has arguments of ${name} as JSON, one per line`, wrong);
}

/** Returns the result of a call, which may be a value, as JSON. */
function resultOf(name: string, output: unknown, index: number): string {
  const text = typeof output === "string" ? output : writePythonJson(output);
  if (isPythonJson(text)) return text;
  return refuse(`tests whose outputs[${index}] is a result of ${name} as JSON`, output);
}

function isPythonJson(text: string): boolean {
  return parsePythonJson(text) !== undefined;
}

function assertion(line: unknown, inputs: unknown, outputs: unknown, index: number): CodeTest {
  if (typeof line !== "string") refuse("tests whose assert_case holds texts", line);
  const given = (list: unknown): unknown =>
    (Array.isArray(list) ? list[index] : undefined) ?? undefined;
  const [stdin, expected] = [given(inputs), given(outputs)];
  return {
    stdin: stdin === undefined ? "" : lines("inputs", stdin),
    expected: expected === undefined ? undefined : lines("outputs", expected),
    assertion: line,
  };
}

/** Returns a text; lines may be a list. */
function lines(what: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) {
    return value.join("\n");
  }
  return refuse(`tests whose ${what} are texts`, value);
}

function isIdentifier(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z_]\w*$/.test(value);
}

function parsed(text: string): unknown {
  return (parsePythonJson(text) ?? refuse("JSON of tests", text)).value;
}

function refuse(expected: string, received: unknown): never {
  throw new InvalidSampleError("groundTruth", expected, describeValue(received));
}
