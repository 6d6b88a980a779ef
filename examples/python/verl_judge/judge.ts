// Asks an LLM judge for each rollout. run.py runs it in verl's reward loop workers.

import { chatComplete } from "@rayling/reward-loop/client";
import type { ScoreInput } from "@rayling/reward-manager-registry";

const baseUrl = process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1";

export async function computeScore({ solutionStr, groundTruth, signal }: ScoreInput) {
  const question = JSON.stringify({ solution: solutionStr, groundTruth });
  const { text, usage } = await chatComplete({
    baseUrl,
    model: "judge",
    messages: [{ role: "user", content: `Is the solution right?\n${question}` }],
    signal,
  });
  const said = /"score":\s*([01])/.exec(text)?.[1];
  // null: the judge has not said it. That is no zero.
  return { score: said === undefined ? null : Number(said), said: text, usage };
}
