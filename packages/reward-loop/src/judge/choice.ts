/** A judge that chooses one of several words, each with a score. */

import { z } from "zod";
import { choiceOptions } from "../options/defaults/asking.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { structuredJudge } from "./judge.ts";
import type { Judge, JudgeOptions } from "./judge.ts";
import { JudgePromptError } from "./judge-error.ts";

export interface ChoiceOptions extends JudgeOptions {
  /** Scores by choice; null: it cannot tell. */
  readonly choices: Readonly<Record<string, number | null>>;
}

/** The word for a judge that cannot tell, beside its choices. */
export const cannotTell = "cannot tell";

/**
 * Makes a judge whose score also has the `choice` and the `reason`. Throws
 * RewardLoopOptionError, and JudgePromptError for fewer than two choices and for a score that is
 * none.
 */
export function choiceJudge(given: ChoiceOptions): Judge {
  checkOptions(choiceOptions satisfies TableOf<ChoiceOptions>, given, "choiceJudge");
  const { choices, system = "", ...options } = given;
  const words = Object.keys(choices);
  if (words.length < 2) throw new JudgePromptError("A judge needs at least two choices.");
  const scores = new Map([[cannotTell, null], ...Object.entries(choices)]);
  for (const [word, score] of Object.entries(choices)) {
    if (score === null || Number.isFinite(score)) continue;
    throw new JudgePromptError(
      `The choice ${JSON.stringify(word)} needs a finite number as its score, or null; it has ${score}.`,
    );
  }
  const listed = words.map((word) => JSON.stringify(word)).join(", ");
  const instructions = `Choose one of ${listed}, or "${cannotTell}" if you have too little to go by. Give the reason first.`;
  return structuredJudge({
    ...options,
    system: joined(system, instructions),
    schema: z.object({ reason: z.string(), choice: oneOf([...scores.keys()]) }),
    scoreOf: ({ choice, reason }) => ({ score: scores.get(choice) ?? null, choice, reason }),
  });
}

/**
 * Accepts a word in another case, or with spaces, punctuation or emphasis around it, unless that
 * may mean several of the words.
 */
function oneOf(words: readonly string[]): z.ZodType<string> {
  const meant = (said: unknown): unknown => {
    if (typeof said !== "string" || words.includes(said)) return said;
    const [word = said, ...others] = words.filter((one) => bare(one) === bare(said));
    return others.length === 0 ? word : said;
  };
  return z.preprocess(meant, z.enum(words));
}

const edges = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu;

/** A word of signs only, as "+", stays as it is. */
function bare(word: string): string {
  return (word.replaceAll(edges, "") || word.trim()).toLowerCase();
}

/** Appends instructions, which contain no places for values. */
export function joined(system: string, instructions: string): string {
  return system === "" ? instructions : `${system}\n\n${instructions}`;
}
