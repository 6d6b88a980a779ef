// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/ai-sdk.ts --retries 5
//
// A judge that is a model of the Vercel AI SDK; any of its providers fits.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { askByAiSdk, structuredJudge } from "@rayling/reward-loop/judge";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";
import { generateText } from "ai";
import { z } from "zod";

const provider = createOpenAICompatible({
  name: "judge",
  baseURL: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
});

const judge = structuredJudge({
  ask: askByAiSdk(generateText, { model: provider.chatModel("judge") }),
  prompt: "Is the solution right?\n{{question}}",
  schema: z.object({ score: z.literal([0, 1]) }),
  scoreOf: ({ score }) => score,
});

export async function computeScore(input: ScoreInput): Promise<ScoreRecord> {
  const { solutionStr: solution, groundTruth, signal } = input;
  return judge({ question: { solution, groundTruth } }, { signal });
}
