// pnpm start:score --solutions examples/data/arithmetic-solutions.jsonl --reward examples/rewards/troubled-reward.ts --timeout 500
//
// A reward function as real ones are: for some samples it throws, hangs for ever or returns
// garbage. The run ends all the same; exactly those samples are invalid, each with its reason.

import type { ScoreInput } from "@rayling/reward-manager-registry";
import { finalAnswer } from "./gsm8k-reward.ts";

export async function computeScore({ solutionStr, groundTruth }: ScoreInput): Promise<unknown> {
  const answer = finalAnswer(solutionStr);
  if (answer === undefined) throw new Error("the response has no answer line");
  if (answer === 13) for (;;) answer.toFixed();
  if (answer === 42) return "forty-two";
  return { score: answer === finalAnswer(String(groundTruth)) ? 1 : 0, answer };
}
