// pnpm start:score --solutions PATH --reward examples/rewards/gsm8k-reward.ts
//
// The reward of the GSM8K model solutions (github.com/openai/grade-school-math,
// example_model_solutions.jsonl): 1 if the number on the last line "A: …" is the ground truth's,
// else 0. Numbers are compared as values, so "65960" is "65,960"; a line that is not one plain
// number ("A: 1/5", "A: -1.8 billion") is no answer.

import type { ScoreInput } from "@rayling/reward-manager-registry";

const ANSWER_LINE = /^A:(.*)$/gm;
const PLAIN_NUMBER = /^-?\$?-?(?:\d[\d,]*\.?\d*|\.\d+)$/;

export function computeScore({ solutionStr, groundTruth }: ScoreInput): number {
  const truth = finalAnswer(String(groundTruth));
  // A broken ground truth is nobody's wrong answer: say so, do not score it.
  if (truth === undefined)
    throw new Error(`No line "A: number" in the ground truth ${JSON.stringify(groundTruth)}`);
  return finalAnswer(solutionStr) === truth ? 1 : 0;
}

/** The number on the last line "A: …", or undefined where there is none. */
export function finalAnswer(text: string): number | undefined {
  const line = [...text.matchAll(ANSWER_LINE)].at(-1)?.[1]?.trim();
  if (line === undefined || !PLAIN_NUMBER.test(line)) return undefined;
  return Number(line.replaceAll(/[$,]/g, ""));
}
