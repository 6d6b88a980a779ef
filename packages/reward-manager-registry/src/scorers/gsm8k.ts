/**
 * verl's gsm8k scorer (verl/utils/reward_score/gsm8k.py, 0.10.0.dev): the number behind the last
 * "#### ", compared as text. It equals Python to the character, with its traps: strict keeps a
 * trailing ".", flexible keeps commas, "#### $42" is no match, "1.50" is not "1.5".
 * examples/rewards/gsm8k-reward.ts is a score that compares values.
 */

import { InvalidScorerOptionError } from "../errors.ts";
import { checkOptionNames } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import { describeValue } from "../value-description.ts";
import { lastCodePoints } from "./python-text.ts";

/** How strictly the answer is searched for. */
export type Gsm8kMethod = "strict" | "flexible";

/** Settings of the scorer of GSM8K. */
export interface Gsm8kOptions {
  /** strict: the last "#### number"; flexible: the last number. Default strict. */
  readonly method?: Gsm8kMethod;
  /** The score of a wrong answer. Default 0. */
  readonly formatScore?: number;
  /** The score of the right answer. Default 1. */
  readonly score?: number;
}

// verl _SOLUTION_CLIP_CHARS: the answer is at the end, and regular expressions over long texts are
// slow.
const CLIP_CODE_POINTS = 300;
const STRICT = /#### (-?[0-9.,]+)/g;
const FLEXIBLE = /-?[0-9.,]+/g;

const optionNames: OptionNames<Gsm8kOptions> = { method: true, formatScore: true, score: true };

/**
 * Returns 0 without an answer, `score` for the right one, `formatScore` for another. Throws
 * InvalidScorerOptionError.
 */
export function scoreGsm8k(
  solutionStr: string,
  groundTruth: string,
  options: Gsm8kOptions = {},
): number {
  checkOptionNames(options, optionNames);
  const { method = "strict", formatScore = 0, score = 1 } = options;
  const answer = extractGsm8kSolution(solutionStr, method);
  if (answer === null) return 0;
  return answer === groundTruth ? score : formatScore;
}

/** Returns the answer as text, or null. Throws InvalidScorerOptionError for an unknown method. */
export function extractGsm8kSolution(
  solutionStr: string,
  method: Gsm8kMethod = "strict",
): string | null {
  const tail = lastCodePoints(solutionStr, CLIP_CODE_POINTS);
  switch (method) {
    case "strict": {
      const answer = [...tail.matchAll(STRICT)].at(-1)?.[1];
      return answer === undefined ? null : answer.replaceAll(",", "");
    }
    case "flexible": {
      const answers = tail.match(FLEXIBLE) ?? [];
      // As in verl's loop: where every match is ".", the first one remains.
      return answers.findLast((answer) => answer !== ".") ?? answers[0] ?? null;
    }
    default:
      throw new InvalidScorerOptionError("method", '"strict" or "flexible"', describeValue(method));
  }
}
