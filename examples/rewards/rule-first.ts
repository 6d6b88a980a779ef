// pnpm start:score --solutions examples/data/arithmetic-solutions.jsonl --reward examples/rewards/rule-first.ts --judge examples/judges/plain-http.ts
//
// The first stage of a cascade: 1 where a rule is certain that the answer is right, null where it
// cannot tell, which asks the next stage.

import type { ScoreInput } from "@rayling/reward-manager-registry";
import { finalAnswer } from "./gsm8k-reward.ts";

export function computeScore({ solutionStr, groundTruth }: ScoreInput): number | null {
  const answer = finalAnswer(solutionStr);
  return answer !== undefined && answer === finalAnswer(String(groundTruth)) ? 1 : null;
}
