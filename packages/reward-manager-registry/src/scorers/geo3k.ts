/**
 * verl's scorer of Geometry3K (verl/utils/reward_score/geo3k.py, 0.10.0.dev, over mathruler 0.1.0):
 * nine tenths for the answer in the last box, one for the form. The differences to verl are those
 * of prime-math.ts.
 */

import { lastBoxed } from "./math/boxed.ts";
import { gradeAnswer, mathRulerGrader } from "./math/grade-answer.ts";
import type { GraderOptions } from "./math/grade-answer.ts";
import { checkOptionNames } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import { strip } from "./python-text.ts";

/** Settings of the scorer of Geometry3K. */
export interface Geo3kOptions extends GraderOptions {
  /** Whether the answer is the content of the last box, instead of the whole text. Default true. */
  readonly useBoxed?: boolean;
  /** The share of the form. Default 0.1. */
  readonly formatScore?: number;
}

const optionNames: OptionNames<Geo3kOptions> = { useBoxed: true, formatScore: true, lenient: true };

/**
 * Returns the score, from 0 to 1: `formatScore` for the form, and the rest for the right answer.
 * Throws InvalidScorerOptionError for an option that there is not.
 */
export function scoreGeo3k(
  solutionStr: string,
  groundTruth: string,
  options: Geo3kOptions = {},
): number {
  checkOptionNames(options, optionNames);
  const { useBoxed = true, formatScore = 0.1, lenient } = options;
  // As in mathruler, a text without a box has the answer "None".
  const boxed = lastBoxed(solutionStr);
  const answer = useBoxed ? (boxed === null ? "None" : strip(boxed)) : solutionStr;
  const accuracy = gradeAnswer(answer, groundTruth, mathRulerGrader, { lenient }) ? 1 : 0;
  return (1 - formatScore) * accuracy + formatScore * (hasForm(solutionStr) ? 1 : 0);
}

/** Whether a text has the form `<think>…</think>…\boxed{…}…`. */
function hasForm(text: string): boolean {
  if (!text.startsWith("<think>")) return false;
  const thought = text.indexOf("</think>", "<think>".length);
  const box = thought < 0 ? -1 : text.indexOf(String.raw`\boxed{`, thought);
  return box >= 0 && text.includes("}", box);
}
