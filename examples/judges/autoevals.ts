// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/autoevals.ts --retries 5
//
// A scorer of autoevals; Factuality, Levenshtein and all others of its scorers fit in the same way.

import { LLMClassifierFromTemplate } from "autoevals";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";

const Right = LLMClassifierFromTemplate<{ question: string }>({
  name: "Right",
  promptTemplate: "Is the solution right?\n{{{question}}}",
  choiceScores: { right: 1, wrong: 0 },
  model: "judge",
});

export async function computeScore({ solutionStr, groundTruth }: ScoreInput): Promise<ScoreRecord> {
  const { score, metadata } = await Right({
    output: solutionStr,
    question: JSON.stringify({ solution: solutionStr, groundTruth }),
    openAiBaseUrl: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
    openAiApiKey: process.env["JUDGE_API_KEY"] ?? "none",
  });
  if (score === null) throw new Error("autoevals gave no score");
  return { score, choice: metadata?.["choice"] };
}
