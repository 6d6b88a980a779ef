// JUDGE_URL=http://127.0.0.1:8000/v1 pnpm rayling score solutions.jsonl --reward examples/judges/plain-http.ts --retries 5
//
// A judge asked by fetch alone. An error with `status` and `headers` tells the loop what to do about it: 429 and 5xx are tried again when the
// server says, 4xx is the sample's own fault. `usage` settles token limits.

import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";

const url = `${process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1"}/chat/completions`;

export async function computeScore(input: ScoreInput): Promise<ScoreRecord> {
  const { solutionStr: solution, groundTruth, signal } = input;
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "judge",
      messages: [
        { role: "system", content: 'Is the solution right? Answer {"score": 1} or {"score": 0}.' },
        { role: "user", content: JSON.stringify({ solution, groundTruth }) },
      ],
    }),
    signal: signal ?? null,
  });
  if (!response.ok) {
    const { status, headers } = response;
    throw Object.assign(new Error(`the judge answered ${status}`), { status, headers });
  }
  const answer = (await response.json()) as {
    choices: [{ message: { content: string } }];
    usage: { total_tokens: number };
  };
  const { usage } = answer;
  return { score: scoreIn(answer.choices[0].message.content, usage), usage };
}

/** The tokens of an answer that cannot be read are paid for, too. */
function scoreIn(text: string, usage: unknown): number {
  try {
    return (JSON.parse(text) as { score: number }).score;
  } catch (error) {
    throw Object.assign(error as SyntaxError, { usage });
  }
}
