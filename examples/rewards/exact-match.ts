// pnpm start:score --solutions examples/data/arithmetic-solutions.jsonl --reward examples/rewards/exact-match.ts
//
// A reward function in a module of its own, so that executors load it alone: 1 for the answer to
// the letter, else 0.

import type { ScoreInput } from "@rayling/reward-manager-registry";

export function computeScore({ solutionStr, groundTruth }: ScoreInput): number {
  return solutionStr === groundTruth ? 1 : 0;
}
