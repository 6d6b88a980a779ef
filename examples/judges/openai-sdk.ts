// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/openai-sdk.ts --retries 5
//
// A judge asked by the openai SDK. Its own retries are off: the loop knows all workers' tries, and
// its limits.

import { askByOpenAI, structuredJudge } from "@rayling/reward-loop/judge";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";
import OpenAI from "openai";
import { z } from "zod";

const client = new OpenAI({
  baseURL: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
  apiKey: process.env["JUDGE_API_KEY"] ?? "none",
  maxRetries: 0,
});

const judge = structuredJudge({
  ask: askByOpenAI(client, { model: "judge" }),
  prompt: "Is the solution right?\n{{question}}",
  schema: z.object({ score: z.literal([0, 1]) }),
  scoreOf: ({ score }) => score,
});

export async function computeScore(input: ScoreInput): Promise<ScoreRecord> {
  const { solutionStr: solution, groundTruth, signal } = input;
  return judge({ question: { solution, groundTruth } }, { signal });
}
