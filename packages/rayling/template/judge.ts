/** The judge: a model chooses a word, and the word has a score. */

import { askByChat, choiceJudge } from "@rayling/reward-loop/judge";
import type { Ask, Judge } from "@rayling/reward-loop/judge";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";

/** Makes the judge; tests give it answers of their own. */
export function judgeBy(ask: Ask): Judge {
  return choiceJudge({
    ask,
    prompt: "Is this answer right?\n{{answer}}\nThe right answer is {{truth}}.",
    choices: { right: 1, wrong: 0 },
  });
}

const judge = judgeBy(
  askByChat({
    baseUrl: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
    model: process.env["JUDGE_MODEL"] ?? "judge",
    maxTokens: 500,
  }),
);

export async function computeScore(input: ScoreInput): Promise<ScoreRecord> {
  const { solutionStr, groundTruth, signal } = input;
  return judge({ answer: solutionStr, truth: String(groundTruth) }, { signal });
}
