/** 1 for the right number behind "####", with a little for one that is near. */

export interface Sample {
  readonly solutionStr: string;
  readonly groundTruth: string;
}

export function computeScore({ solutionStr, groundTruth }: Sample): number {
  const answer = /####\s*(-?\d+(?:\.\d+)?)\s*$/.exec(solutionStr)?.[1];
  if (answer === undefined) return 0;
  const [given, right] = [Number(answer), Number(groundTruth)];
  // A broken row of the data set is nobody's wrong answer.
  if (Number.isNaN(right)) throw new TypeError(`the ground truth is ${groundTruth}, and no number`);
  if (given === right) return 1;
  return Math.abs(given - right) <= 1 ? 0.1 : 0;
}
