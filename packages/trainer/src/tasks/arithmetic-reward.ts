/** The reward of the arithmetic task: the answer to the letter, or nothing. Of its own, for a reward loop to load where it scores. */

export function computeScore({
  solutionStr,
  groundTruth,
}: {
  readonly solutionStr: string;
  readonly groundTruth: unknown;
}): number {
  return solutionStr === groundTruth ? 1 : 0;
}

/** From source and installed. */
export const arithmeticReward: string = import.meta.url;
