/**
 * The reward of the arithmetic task: 1 for the exact answer, else 0. A file without imports, for a
 * reward loop to load where it scores.
 */

export function computeScore({
  solutionStr,
  groundTruth,
}: {
  readonly solutionStr: string;
  readonly groundTruth: unknown;
}): number {
  return solutionStr === groundTruth ? 1 : 0;
}
