// pnpm start:score --solutions examples/data/arithmetic-solutions.jsonl --reward examples/rewards/arithmetic-reward.ts
//
// The reward of the word problems that make-arithmetic.ts writes: the answer rule of GSM8K, as a
// record with an extra. `answered` keeps a wrong number apart from no number at all; extras become
// metrics of the run.

import type { ScoreInput, ScoreRecord } from "@rayling/reward-manager-registry";
import { computeScore as gsm8kScore, finalAnswer } from "./gsm8k-reward.ts";

export function computeScore(input: ScoreInput): ScoreRecord {
  return { score: gsm8kScore(input), answered: finalAnswer(input.solutionStr) !== undefined };
}
