// A reward function of its own module, so that executors load it alone: 1 for the answer to the letter, else 0.

import type { ScoreInput } from "@rayling/reward-manager-registry";

export function computeScore({ solutionStr, groundTruth }: ScoreInput): number {
  return solutionStr === groundTruth ? 1 : 0;
}
