// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/autoevals.ts --retries 5
//
// A scorer of autoevals; Factuality, Levenshtein and all others of its scorers fit in the same way.
// One whose judge made no use of the choices that it was given is asked again by the loop.

import { JudgeAnswerError } from "@rayling/reward-loop/judge";
import { LLMClassifierFromTemplate } from "autoevals";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";

const Right = LLMClassifierFromTemplate<{ question: string }>({
  name: "Right",
  promptTemplate: "Is the solution right?\n{{{question}}}",
  choiceScores: { right: 1, wrong: 0 },
  model: "judge",
});

export async function computeScore({ solutionStr, groundTruth }: ScoreInput): Promise<ScoreRecord> {
  const { score, metadata } = await classified({
    output: solutionStr,
    question: JSON.stringify({ solution: solutionStr, groundTruth }),
    openAiBaseUrl: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
    openAiApiKey: process.env["JUDGE_API_KEY"] ?? "none",
  });
  if (score === null) throw new JudgeAnswerError("makes none of the choices");
  return { score, choice: metadata?.["choice"] };
}

async function classified(
  input: Parameters<typeof Right>[0],
): Promise<Awaited<ReturnType<typeof Right>>> {
  try {
    return await Right(input);
  } catch (error) {
    if (!/tool call/.test(String(error))) throw error;
    throw new JudgeAnswerError("makes no choice");
  }
}
