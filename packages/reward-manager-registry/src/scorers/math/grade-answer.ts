/**
 * The grader of prm800k as verl's scorers carry it: an answer is right if it is another spelling of
 * the ground truth, or equal to it as an expression, part by part.
 *
 * prime_math and geo3k have it in two versions. Expressions that sympy simplifies there are
 * compared by value here (expression/equality.ts).
 */

import { strip, toFloat } from "../python-text.ts";
import { areEqualExpressions } from "./expression/equality.ts";
import { latexToText } from "./latex/text.ts";
import { stripMathString } from "./strip-math-string.ts";
import { itemAt } from "../../values/present.ts";

export interface GraderVersion {
  readonly units: readonly string[];
  /** Whether remaining spaces and braces are dropped. */
  readonly dropsBraces: boolean;
  /** Whether a percent sign is ignored where texts are compared, too. */
  readonly dropsPercent: boolean;
}

const units =
  "degree cm centimeter meter mile second minute hour day week month year foot feet inch yard".split(
    " ",
  );

export const primeGrader: GraderVersion = {
  units: [...units, "liter"],
  dropsBraces: false,
  dropsPercent: false,
};
export const mathRulerGrader: GraderVersion = { units, dropsBraces: true, dropsPercent: true };

export interface GraderOptions {
  /**
   * Whether to accept numbers with a point that are equal up to rounding, such as 0.333333333333333
   * and 1/3, and commands that verl's LaTeX reader does not know, such as `\ne` and `\texttt{…}`.
   * Default false.
   */
  readonly lenient?: boolean | undefined;
}

export function gradeAnswer(
  given: string,
  groundTruth: string,
  version: GraderVersion,
  { lenient = false }: GraderOptions = {},
): boolean {
  // An answer that verl accepts is right in any case.
  return (
    isRight(given, groundTruth, version, false) ||
    (lenient && isRight(given, groundTruth, version, true))
  );
}

function isRight(
  given: string,
  groundTruth: string,
  version: GraderVersion,
  lenient: boolean,
): boolean {
  if (spelled(groundTruth, version) === spelled(given, version)) return true;
  const truth = normalized(groundTruth, version, lenient);
  const answer = normalized(given, version, lenient);
  if (truth === answer) return true;
  if (answer === "") return false;
  const wanted = partsOf(truth);
  const parts = partsOf(answer);
  if (wanted.length !== parts.length) return false;
  // An interval must be open or closed as the truth is.
  if (wanted.length > 1 && edges(truth) !== edges(answer)) return false;
  return wanted.every((part, index) => areSameParts(part, itemAt(parts, index), lenient));
}

const unitPatterns: ReadonlyMap<string, RegExp> = new Map(
  primeGrader.units.map((unit) => [unit, new RegExp(`${unit}(?:es)?s? *(?:\\^[0-9]+)?`, "g")]),
);

function edges(text: string): string {
  return `${text.at(0) ?? ""}${text.at(-1) ?? ""}`;
}

/** Normalises texts for comparison, as the MATH data set does. */
function spelled(text: string, version: GraderVersion): string {
  const whole = strip(text);
  const answer = textIn(whole) === undefined ? whole : strip(textIn(whole) ?? "");
  try {
    return stripMathString(answer, version);
  } catch (error) {
    if (error instanceof RangeError) return answer;
    throw error;
  }
}

/** Returns the content of `\text{…}`, if that is the whole text. */
function textIn(text: string): string | undefined {
  return /^\\text\{([^\n]+?)\}\n?$/.exec(text)?.[1];
}

const words: readonly (readonly [string, string])[] = [
  ["\\%", "%"],
  ["\\$", "$"],
  ["$", ""],
  ["%", ""],
  [" or ", " , "],
  [" and ", " , "],
  ["million", "*10^6"],
  ["billion", "*10^9"],
  ["trillion", "*10^12"],
];

function normalized(text: string, version: GraderVersion, lenient: boolean): string {
  let answer = textIn(text) ?? text;
  for (const [written, meant] of words) answer = answer.replaceAll(written, meant);
  for (const unit of version.units) {
    // Most answers have no unit, and a search for a word is faster than a regular expression.
    if (answer.includes(unit)) answer = answer.replaceAll(unitPatterns.get(unit) ?? unit, "");
  }
  answer = answer.replaceAll(/\^ *\\circ/g, "");
  if (answer.startsWith("{") && answer.endsWith("}")) answer = answer.slice(1, -1);
  answer = answer.replaceAll(/,\\! */g, "");
  const number = toFloat(answer);
  if (number !== undefined && isWhole(number)) answer = BigInt(Math.round(number)).toString();
  if (answer.includes("\\")) answer = asText(answer, lenient) ?? answer;
  answer = answer.replaceAll(/- */g, "-").replaceAll(/([0-9]) +([0-9])/g, "$1+$2");
  if (version.dropsBraces) answer = answer.replaceAll(/[ {}]/g, "");
  answer = answer.toLowerCase();
  if (!isWholeText(answer)) return answer;
  const whole = toFloat(answer.replaceAll(",", ""));
  return whole === undefined ? answer : BigInt(Math.trunc(whole)).toString();
}

/** Converts LaTeX to the text that sympy reads. */
function asText(latex: string, lenient: boolean): string | undefined {
  const text = latexToText(
    (lenient ? latex.replaceAll("\\cfrac", "\\frac") : latex)
      .replaceAll("\\tfrac", "\\frac")
      .replaceAll("\\dfrac", "\\frac")
      // "1 1/2" is a mixed number.
      .replaceAll("\\frac", " \\frac"),
    { lenient },
  );
  if (text === undefined) return undefined;
  return strip(
    text
      .replaceAll("√", "sqrt")
      .replaceAll("π", "pi")
      .replaceAll("∞", "inf")
      .replaceAll("∪", "U")
      .replaceAll(/[·×]/g, "*"),
  );
}

function isWhole(value: number): boolean {
  return Number.isFinite(value) && Math.abs(value - Math.round(value)) <= 1e-7;
}

function isWholeText(text: string): boolean {
  const value = toFloat(withoutThousands(text));
  return value !== undefined && isWhole(value);
}

/** Drops the commas of "1,000,000", and not those of a tuple. */
function withoutThousands(text: string): string {
  if (!text.includes(",")) return text;
  for (let before = text; ;) {
    const after = before.replaceAll(/(\p{Nd}),(\p{Nd}{3})($|\P{Nd})/gu, "$1$2$3");
    if (after === before) return after;
    before = after;
  }
}

/** Returns the parts of a tuple or an interval; any other text is one part. */
function partsOf(text: string): readonly string[] {
  const plain = withoutThousands(text);
  if (plain === "") return [];
  const inside = plain.slice(1, -1);
  const isTuple = Array.from(plain).length > 2 && /^[()[\]]/.test(plain) && /[()[\]]$/.test(plain);
  return isTuple && !/[()[\]]/.test(inside) ? inside.split(",").map(strip) : [plain];
}

function areSameParts(wanted: string, given: string, lenient: boolean): boolean {
  // Fractions must be reduced, and a whole number must be written as one.
  if (isFraction(wanted) && isFraction(given)) return wanted === given;
  if (isWholeText(wanted) !== isWholeText(given)) return false;
  return isSimple(`(${wanted})-(${given})`) && areEqualExpressions(wanted, given, { lenient });
}

function isFraction(text: string): boolean {
  return /^-?[0-9]+[^\n]?\/0*[1-9][0-9]*[^\n]?\n?$/.test(text);
}

/** Whether it has few enough letters, and no expensive powers. */
function isSimple(expression: string): boolean {
  const letters = new Set(
    expression.replaceAll("sqrt", "").replaceAll("frac", "").match(/\p{L}/gu) ?? [],
  );
  return letters.size <= 2 && !/\^[{(]|\^[0-9]+\^|\^[0-9][0-9]+/.test(expression);
}
