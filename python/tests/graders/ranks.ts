/** Looks at all answers to a prompt: a score is the place of an answer by its length. */

import type { ScoreInput } from "@rayling/reward-manager-registry";

export function computeScores(group: readonly ScoreInput[]): number[] {
  const lengths = group.map(({ solutionStr }) => solutionStr.length);
  const sorted = lengths.toSorted((a, b) => a - b);
  return lengths.map((length) => sorted.indexOf(length));
}
