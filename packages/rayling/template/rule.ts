/** The reward function: the last number of a response is its answer. */

import type { ScoreInput } from "@rayling/reward-manager-registry";

/** Returns 1 or 0, and null for a response without a number: a rule cannot tell. */
export function computeScore({ solutionStr, groundTruth }: ScoreInput): number | null {
  const number = solutionStr.match(/-?\d+(?:\.\d+)?/g)?.at(-1);
  if (number === undefined) return null;
  return Number(number) === Number(groundTruth) ? 1 : 0;
}
