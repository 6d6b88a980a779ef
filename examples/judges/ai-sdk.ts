// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/ai-sdk.ts --retries 5
//
// A judge that is a model of the Vercel AI SDK; any of its providers fits.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";

const provider = createOpenAICompatible({
  name: "judge",
  baseURL: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
});

export async function computeScore(input: ScoreInput): Promise<ScoreRecord> {
  const { solutionStr: solution, groundTruth, signal } = input;
  const { text, usage } = await generateText({
    model: provider.chatModel("judge"),
    system: 'Is the solution right? Answer {"score": 1} or {"score": 0}.',
    prompt: JSON.stringify({ solution, groundTruth }),
    // The loop tries again, within the limits of all workers.
    maxRetries: 0,
    ...(signal === undefined ? {} : { abortSignal: signal }),
  });
  const { inputTokens, outputTokens, totalTokens } = usage;
  const used = { inputTokens, outputTokens, totalTokens };
  return { score: scoreIn(text, used), usage: used };
}

/** The tokens of an answer that cannot be read are paid for, too. */
function scoreIn(text: string, usage: unknown): number {
  try {
    return (JSON.parse(text) as { score: number }).score;
  } catch (error) {
    throw Object.assign(error as SyntaxError, { usage });
  }
}
