/**
 * verl's scorer of DAPO and AIME (verl/utils/reward_score/math_dapo.py, 0.10.0.dev): it compares
 * the text behind the last "Answer:", or else the last box, with the ground truth.
 *
 * It equals Python to the character, with its traps: "a " is dropped before spaces are, so "a b"
 * loses a letter of "a ba b". Python's expressions backtrack on hostile texts; these are linear in
 * their length.
 */

import { InvalidScorerOptionError } from "../errors.ts";
import type { ScoreRecord } from "../scoring/compute-score.ts";
import { checkOptionNames } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import { describeValue } from "../value-description.ts";
import { lastBoxed } from "./math/boxed.ts";
import { isDigits, lastCodePoints, strip, whiteSpace } from "./python-text.ts";

/** Settings of the scorer of DAPO and AIME. */
export interface MathDapoOptions {
  /** Whether only the box counts, compared as it is. Default false. */
  readonly strictBoxVerify?: boolean;
  /**
   * verl's four indices of pause tokens: the search for the box begins 100 characters before the
   * last one. Only with `strictBoxVerify`.
   */
  readonly pauseTokensIndex?: readonly number[];
}

/** Result of the scorer of DAPO and AIME. */
export interface MathDapoScore extends ScoreRecord {
  /** 1 or -1. */
  readonly score: number;
  /** Whether the answer is right. */
  readonly acc: boolean;
  /** The answer that was found; for none "[INVALID]", or null when only the box counts. */
  readonly pred: string | null;
}

// verl: the longest answer in MATH-500 has 159 characters.
const CLIP_CODE_POINTS = 300;
const BOX_CODE_POINTS = 100;
const NO_ANSWER = "[INVALID]";
/**
 * The first group is the answer: the text behind "Answer:", in any case, to the end of the line.
 */
const ANSWER = new RegExp(`Answer[${whiteSpace}]*:[${whiteSpace}]*([^\\n]+)`, "giu");

const optionNames: OptionNames<MathDapoOptions> = { strictBoxVerify: true, pauseTokensIndex: true };

/** Throws InvalidScorerOptionError for an option that there is not, or other than four tokens. */
export function scoreMathDapo(
  solutionStr: string,
  groundTruth: string,
  options: MathDapoOptions = {},
): MathDapoScore {
  checkOptionNames(options, optionNames);
  const solution = lastCodePoints(solutionStr, CLIP_CODE_POINTS);
  const answered =
    options.strictBoxVerify === true ? undefined : isCorrectMinerva(solution, groundTruth);
  if (answered !== undefined && answered.pred !== NO_ANSWER) {
    return scored(answered.correct, answered.pred);
  }
  const boxed = lastBoxed(placeOfBox(solution, options.pauseTokensIndex));
  if (boxed === null && answered !== undefined) return scored(answered.correct, answered.pred);
  return scored(boxed === groundTruth, boxed);
}

function scored(acc: boolean, pred: string | null): MathDapoScore {
  return { score: acc ? 1 : -1, acc, pred };
}

function placeOfBox(solution: string, pauseTokensIndex: readonly number[] | undefined): string {
  if (pauseTokensIndex === undefined) return lastCodePoints(solution, BOX_CODE_POINTS);
  const [, , , last] = pauseTokensIndex;
  if (pauseTokensIndex.length !== 4 || last === undefined) {
    throw new InvalidScorerOptionError(
      "pauseTokensIndex",
      "a list of 4 indices",
      describeValue(pauseTokensIndex),
    );
  }
  return Array.from(solution)
    .slice(last - BOX_CODE_POINTS)
    .join("");
}

/**
 * Whether the last answer of the solution equals the ground truth, both normalised; `pred` is
 * "[INVALID]" if there is no answer.
 */
export function isCorrectMinerva(
  solutionStr: string,
  groundTruth: string,
): { readonly correct: boolean; readonly pred: string } {
  const pred = normalizeFinalAnswer([...solutionStr.matchAll(ANSWER)].at(-1)?.[1] ?? NO_ANSWER);
  return { correct: pred === normalizeFinalAnswer(groundTruth), pred };
}

/** Normalises an answer: it drops units, words and variants of spelling. Linear in its length. */
export function normalizeFinalAnswer(finalAnswer: string): string {
  let answer = finalAnswer.slice(finalAnswer.lastIndexOf("=") + 1);
  for (const [written, meant] of SUBSTITUTIONS) answer = answer.replaceAll(written, meant);
  for (const word of REMOVED) answer = answer.replaceAll(word, "");
  answer = byLine(answer, insideDollars);
  for (const command of [String.raw`\text{`, String.raw`\textbf{`, String.raw`\overline{`]) {
    answer = unwrapped(answer, command);
  }
  answer = byLine(answer, insideBox);
  answer = answer
    .replaceAll(/frac([^{])([^\n])/gu, "frac{$1}{$2}")
    .replaceAll(/sqrt([^{])/gu, "sqrt{$1}")
    .replaceAll("$", "");
  const digits = answer.replaceAll(",", "");
  return strip(isDigits(digits) ? digits : answer);
}

/** Substitutions, in order. */
const SUBSTITUTIONS: readonly (readonly [string, string])[] = [
  ["an ", ""],
  ["a ", ""],
  [".$", "$"],
  [String.raw`\$`, ""],
  ["\\ ", ""],
  [" ", ""],
  ["mbox", "text"],
  [String.raw`,\text{and}`, ","],
  [String.raw`\text{and}`, ","],
  [String.raw`\text{m}`, String.raw`\text{}`],
];

/** Removed words, in order. */
const REMOVED: readonly string[] = [
  ..."square ways integers dollars mph inches hours km units \\ldots sue points feet minutes digits cents".split(
    " ",
  ),
  ..."degrees cm gm pounds meters meals edges students childrentickets multiples".split(" "),
  String.raw`\text{s}`,
  String.raw`\text{.}`,
  "\\text{\ns}",
  String.raw`\text{}^2`,
  String.raw`\text{}^3`,
  "\\text{\n}",
  String.raw`\text{}`,
  String.raw`\mathrm{th}`,
  String.raw`^\circ`,
  String.raw`^{\circ}`,
  String.raw`\;`,
  String.raw`,\!`,
  "{,}",
  '"',
  String.raw`\dots`,
];

/** Applies a Python expression in which "." ends at a line break. */
function byLine(text: string, change: (line: string) => string): string {
  return text.split("\n").map(change).join("\n");
}

/** Returns the answer between the first two dollar signs. */
function insideDollars(line: string): string {
  const start = line.indexOf("$");
  const end = start < 0 ? -1 : line.indexOf("$", start + 1);
  return end < 0 ? line : line.slice(start, end + 1);
}

/** Drops the first `\boxed{` and the last brace behind it. */
function insideBox(line: string): string {
  const command = String.raw`\boxed{`;
  const start = line.indexOf(command);
  const end = line.lastIndexOf("}");
  const inside = start + command.length;
  if (start < 0 || end < inside) return line;
  return line.slice(0, start) + line.slice(inside, end) + line.slice(end + 1);
}

/** Drops the command and the next brace on its line, wherever that is. */
function unwrapped(text: string, command: string): string {
  let all = "";
  let done = 0;
  let close = -1;
  let newline = -1;
  for (let at = text.indexOf(command); at >= 0; at = text.indexOf(command, at)) {
    const inside = at + command.length;
    // The searches repeat only behind the last finds: each character is visited once.
    if (close < inside) close = indexOrEnd(text, "}", inside);
    if (newline < inside) newline = indexOrEnd(text, "\n", inside);
    if (close < newline) {
      all += text.slice(done, at) + text.slice(inside, close);
      done = close + 1;
      at = done;
    } else {
      at += 1;
    }
  }
  return all + text.slice(done);
}

function indexOrEnd(text: string, part: string, from: number): number {
  const index = text.indexOf(part, from);
  return index < 0 ? text.length : index;
}
