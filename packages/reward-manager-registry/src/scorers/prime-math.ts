/**
 * verl's scorer of PRIME's math questions (verl/utils/reward_score/prime_math, 0.10.0.dev): it
 * searches for the answer in several ways, and compares it as text, as expressions and as numbers.
 *
 * Expressions are compared by value instead of by sympy (math/expression/equality.ts);
 * docs/reward-functions.md lists the differences. In verl itself, answers that only sympy's LaTeX
 * parser could read are never equal.
 */

import { checkOptionNames } from "../option-names.ts";
import { hasDigit, strip, toFloat } from "./python-text.ts";
import { lastBalanced } from "./math/boxed.ts";
import { evaluateArithmetic } from "./math/expression/equality.ts";
import { gradeAnswer, primeGrader } from "./math/grade-answer.ts";
import type { GraderOptions } from "./math/grade-answer.ts";
import { itemAt } from "../values/present.ts";

/** Result of the scorer of PRIME's math questions. */
export interface PrimeMathScore {
  /** Whether the answer is right. */
  readonly correct: boolean;
  /** As in verl, also true for an answer whose text is right. */
  readonly formatCorrect: boolean;
  /** The answer that was compared. */
  readonly extracted: string;
}

/** Settings of the scorer of PRIME's math questions. */
export type PrimeMathOptions = GraderOptions;

/**
 * Compares the answer in the text with the ground truth: as text, as expressions and as numbers.
 * Throws InvalidScorerOptionError for an option that there is not.
 */
export function scorePrimeMath(
  modelOutput: string,
  groundTruth: string,
  options: PrimeMathOptions = {},
): PrimeMathScore {
  checkOptionNames(options, { lenient: true });
  const extracted = extractAnswer(modelOutput);
  if (gradeAnswer(extracted, groundTruth, primeGrader, options)) {
    return { correct: true, formatCorrect: true, extracted };
  }
  const formatCorrect = modelOutput.includes("Step 2:") && modelOutput.includes(String.raw`\box`);
  const usesPi = (extracted + groundTruth).includes(PI);
  const correct = (usesPi ? [Math.PI, 3.14] : [Math.PI]).some((pi) =>
    isMathEqual(extracted, groundTruth, pi),
  );
  return { correct, formatCorrect, extracted };
}

const PI = String.raw`\pi`;

const beforeAnswer = ["answer:", "answer is", "answers are"];
const afterAnswer = ["is answer", "is the answer", "are answers", "are the answers"];
const lastWords = [
  "be ",
  "is ",
  "are ",
  "=",
  ": ",
  "get ",
  "be\n",
  "is\n",
  "are\n",
  ":\n",
  "get\n",
];

function extractAnswer(output: string): string {
  let answer = output;
  for (const marker of beforeAnswer) answer = behind(answer, marker);
  for (const marker of afterAnswer) {
    const at = answer.toLowerCase().lastIndexOf(marker);
    if (at >= 0) answer = strip(answer.slice(0, at));
  }
  answer = lastBox(answer) ?? answer;
  // As in verl, a place in the text in lower case, which is longer where it has İ.
  const stop = answer.toLowerCase().lastIndexOf(". ");
  if (stop >= 0) answer = strip(answer.slice(0, stop));
  for (const marker of lastWords) answer = behind(answer, marker);
  return answer;
}

function behind(text: string, marker: string): string {
  const at = text.toLowerCase().lastIndexOf(marker);
  return at < 0 ? text : strip(text.slice(at + marker.length));
}

/** Returns the content of the last box; undefined also for an empty one. */
function lastBox(text: string): string | undefined {
  const command = text.includes(String.raw`\boxed`) ? String.raw`\boxed` : String.raw`\fbox`;
  const range = lastBalanced(text, command);
  if (range === undefined) return undefined;
  const box = text.slice(...range);
  return strip(box.slice(box.indexOf("{") + 1, -1)) || undefined;
}

/** A number, or a text that spells none. */
type Value = number | string;

/** Compares texts, numbers within 1e-4 (percent and share alike), and tuples part by part. */
function isMathEqual(prediction: string, reference: string, pi: number): boolean {
  let given: Value;
  let wanted: Value;
  try {
    given = valueOf(prediction, pi);
    wanted = valueOf(reference, pi);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
  if (typeof given === "string") given = given.slice(0, 1000);
  if (typeof given === "string" && typeof wanted === "string") {
    if (strip(given).toLowerCase() === strip(wanted).toLowerCase()) return true;
    if (given.replaceAll(" ", "") === wanted.replaceAll(" ", "")) return true;
  }
  const number = numberOf(given);
  const wantedNumber = numberOf(wanted);
  if (number !== undefined && wantedNumber !== undefined) {
    return [wantedNumber / 100, wantedNumber, wantedNumber * 100].some((one) =>
      isClose(one, number),
    );
  }
  if (given === "") return false;
  return areEqualTexts(asInterval(strip(String(given))), strip(String(wanted)));
}

function areEqualTexts(given: string, wanted: string): boolean {
  const isList = given.startsWith("[") && given.endsWith("]") && !wanted.startsWith("(");
  const isTuple = given.startsWith("(") && given.endsWith(")") && !wanted.startsWith("[");
  const bare = (text: string): string =>
    (isList || isTuple ? text.replaceAll(/^[[\]()]+|[[\]()]+$/g, "") : text).replaceAll(
      /[{}()]/g,
      "",
    );
  if (bare(given) === bare(wanted)) return true;
  const isSequence = /^[([]/.test(given) && /[)\]]$/.test(given);
  if (isSequence && given.at(0) === wanted.at(0) && given.at(-1) === wanted.at(-1)) {
    if (areEqualLists(given.slice(1, -1), wanted.slice(1, -1))) return true;
  }
  if (given.includes(",") && wanted.includes(",")) {
    const parts = given.split(",").map(strip).join(",");
    const others = wanted.split(",").map(strip).join(",");
    if (given.split(",").length === wanted.split(",").length) return areEqualLists(parts, others);
  }
  const isPoint = given.startsWith("Point") && wanted.startsWith("(") && wanted.endsWith(")");
  return isPoint && areEqualLists(given.slice(given.indexOf("(") + 1, -1), wanted.slice(1, -1));
}

/** Pi stays as it is, as in verl. */
function areEqualLists(given: string, wanted: string): boolean {
  const parts = given.split(",");
  const others = wanted.split(",");
  return (
    parts.length === others.length &&
    parts.every((part, index) => isMathEqual(part, itemAt(others, index), Math.PI))
  );
}

/** @throws RangeError for a number in an invalid base */
function valueOf(text: string, pi: number): Value {
  if (/^\$\p{Nd}+(?:\.\p{Nd}+)?/u.test(text)) return text.slice(1);
  if (/^\p{Nd}+(?:\.\p{Nd}+)?\\?%\n?$/u.test(text)) return text.replaceAll(/\\?%/g, "");
  if (!text.includes("_")) return withPi(text, pi);
  const digits = toFloat(text.split("_", 1)[0] ?? "");
  if (digits === undefined || !Number.isFinite(digits)) throw new RangeError("no number in a base");
  return Math.trunc(digits);
}

/** Evaluates arithmetic with pi; any other text stays a text. */
function withPi(text: string, pi: number): Value {
  if (!text.includes(PI)) return text;
  // The last part is kept apart: a search in the growing text would copy it each time.
  const [first = "", ...others] = text.split(PI);
  let before = first;
  const all = [first];
  for (const part of others) {
    all.push(`${hasDigit(before.at(-1) ?? "") ? "" : "1"}*${pi}`, part);
    before = part === "" ? String(pi) : part;
  }
  const arithmetic = all.join("");
  return evaluateArithmetic(arithmetic) ?? evaluateSequence(arithmetic) ?? arithmetic;
}

/**
 * Evaluates a tuple, list or set of arithmetic as Python's `eval` does, and writes it as Python
 * does: a set without repetitions and in an order of its own.
 */
function evaluateSequence(text: string): string | undefined {
  const whole = strip(text);
  const [first = "", last = ""] = [whole.at(0), whole.at(-1)];
  const isEnclosed = ["()", "[]", "{}"].includes(first + last);
  const items = (isEnclosed ? whole.slice(1, -1) : whole).split(",");
  const isTuple = !isEnclosed || first === "(";
  if (isTuple && items.length === 1) return undefined;
  // A comma may end it.
  if (items.length > 1 && strip(items.at(-1) ?? "") === "") items.pop();
  const values = items.map((item) => evaluateArithmetic(strip(item)));
  if (!values.every((value) => value !== undefined)) return undefined;
  const listed = first === "{" ? [...new Set(values)].toSorted((a, b) => a - b) : values;
  const [open, close] = isTuple ? ["(", ")"] : [first, last];
  return `${open}${listed.join(", ")}${isTuple && listed.length === 1 ? "," : ""}${close}`;
}

function numberOf(value: Value): number | undefined {
  if (typeof value === "number") return value;
  return toFloat(value.replaceAll(value.includes("{,}") ? "{,}" : ",", ""));
}

/** Compares like Python's `isclose` with a relative tolerance of 1e-4. */
function isClose(left: number, right: number): boolean {
  if (left === right) return true;
  if (!Number.isFinite(left) || !Number.isFinite(right)) return false;
  return Math.abs(left - right) <= 1e-4 * Math.max(Math.abs(left), Math.abs(right));
}

/** Reads intervals as sympy writes them. */
function asInterval(text: string): string {
  const [, kind = "", inside] =
    /^Interval(\.Ropen|\.Lopen|\.open)?\(([^\n]*)\)\n?$/.exec(text) ?? [];
  if (inside === undefined) return text;
  const opens = kind === ".Lopen" || kind === ".open" ? "(" : "[";
  const closes = kind === ".Ropen" || kind === ".open" ? ")" : "]";
  return opens + inside + closes;
}
