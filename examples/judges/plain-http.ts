// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/plain-http.ts --retries 5
//
// A judge asked by fetch alone. An error with `status` and `headers` tells the loop what to do
// about it: 429 and 5xx are tried again when the server says, 4xx is the sample's own fault. An
// answer that is no use is asked again, and paid for.

import { chatAnswerOf } from "@rayling/reward-loop/client";
import { structuredJudge } from "@rayling/reward-loop/judge";
import type { Ask } from "@rayling/reward-loop/judge";
import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";
import { z } from "zod";

const url = `${process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1"}/chat/completions`;

const ask: Ask = async ({ messages, signal }) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "judge", messages }),
    signal: signal ?? null,
  });
  if (!response.ok) {
    const { status, headers } = response;
    throw Object.assign(new Error(`the judge answered ${status}`), { status, headers });
  }
  return chatAnswerOf(await response.json(), url);
};

const judge = structuredJudge({
  ask,
  prompt: "Is the solution right?\n{{question}}",
  schema: z.object({ score: z.literal([0, 1]) }),
  scoreOf: ({ score }) => score,
});

export async function computeScore(input: ScoreInput): Promise<ScoreRecord> {
  const { solutionStr: solution, groundTruth, signal } = input;
  return judge({ question: { solution, groundTruth } }, { signal });
}
