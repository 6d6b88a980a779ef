// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/openai-sdk.ts --retries 5
//
// A judge asked by the openai SDK. Its own retries are off: the loop knows all workers' tries, and its limits.

import OpenAI from "openai";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";

const client = new OpenAI({
  baseURL: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
  apiKey: process.env["JUDGE_API_KEY"] ?? "none",
  maxRetries: 0,
});

export async function computeScore(input: ScoreInput): Promise<ScoreRecord> {
  const { solutionStr: solution, groundTruth, signal } = input;
  const answer = await client.chat.completions.create(
    {
      model: "judge",
      messages: [
        { role: "system", content: 'Is the solution right? Answer {"score": 1} or {"score": 0}.' },
        { role: "user", content: JSON.stringify({ solution, groundTruth }) },
      ],
    },
    { signal },
  );
  const { usage } = answer;
  return { score: scoreIn(answer.choices[0]?.message.content ?? "", usage), usage };
}

/** The tokens of an answer that cannot be read are paid for, too. */
function scoreIn(text: string, usage: unknown): number {
  try {
    return (JSON.parse(text) as { score: number }).score;
  } catch (error) {
    throw Object.assign(error as SyntaxError, { usage });
  }
}
