/**
 * verl's scorer of Search-R1's question sets (verl/utils/reward_score/search_r1_like_qa_em.py,
 * 0.10.0.dev): the last `<answer>` against any of the golden answers, ignoring case, punctuation,
 * articles and white space.
 */

import { checkOptionNames } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import { joinWords, strip } from "./python-text.ts";

/** Settings of the scorer of Search-R1. */
export interface SearchR1Options {
  /** The score of a wrong answer. Default 0. */
  readonly formatScore?: number;
  /** The score of the right answer. Default 1. */
  readonly score?: number;
  /**
   * Whether a golden answer that is part of the answer suffices (verl `compute_score_subem`).
   * Default false.
   */
  readonly substring?: boolean;
}

const optionNames: OptionNames<SearchR1Options> = {
  formatScore: true,
  score: true,
  substring: true,
};

/** More tags than this suggest reward hacking. */
const MOST_TAGS = 10;

/**
 * Returns 0 without an answer; the right answer among more than 10 opening or closing tags gets a
 * quarter of `score`, unless a part suffices. Throws InvalidScorerOptionError for an option that
 * there is not.
 */
export function scoreSearchR1(
  solutionStr: string,
  goldenAnswers: string | readonly string[],
  options: SearchR1Options = {},
): number {
  checkOptionNames(options, optionNames);
  const { formatScore = 0, score = 1, substring = false } = options;
  const answer = extractAnswer(solutionStr);
  if (answer === null) return 0;
  const given = normalizeAnswer(answer);
  const golden = typeof goldenAnswers === "string" ? [goldenAnswers] : goldenAnswers;
  const isRight = golden.some((one) => {
    const wanted = normalizeAnswer(one);
    return substring ? given.includes(wanted) : given === wanted;
  });
  if (!isRight) return formatScore;
  const isStuffed =
    countOf(solutionStr, OPEN) > MOST_TAGS || countOf(solutionStr, CLOSE) > MOST_TAGS;
  return isStuffed && !substring ? score / 4 : score;
}

const OPEN = "<answer>";
const CLOSE = "</answer>";

/**
 * Returns the content of the last pair of tags, or null. A pair is an opening tag and the next
 * closing one.
 */
export function extractAnswer(text: string): string | null {
  let answer: string | null = null;
  for (let at = text.indexOf(OPEN); at >= 0;) {
    const end = text.indexOf(CLOSE, at + OPEN.length);
    if (end < 0) break;
    answer = text.slice(at + OPEN.length, end);
    at = text.indexOf(OPEN, end + CLOSE.length);
  }
  return answer === null ? null : strip(answer);
}

export function normalizeAnswer(text: string): string {
  return joinWords(
    text
      .toLowerCase()
      .replaceAll(/[!-/:-@[-`{-~]/g, "")
      .replaceAll(/(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu, " "),
  );
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}
