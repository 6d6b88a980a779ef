/**
 * A score function that costs next to nothing: what is left is the way to it. fastapi_server.py has
 * the same.
 */
import type { ScoreInput } from "@rayling/reward-manager-registry";

export function computeScore({ solutionStr, groundTruth }: ScoreInput): {
  readonly score: number;
  readonly answer: string;
} {
  const answer = solutionStr.slice(solutionStr.lastIndexOf("####") + 4).trim();
  return { score: answer === groundTruth ? 1 : 0, answer };
}
