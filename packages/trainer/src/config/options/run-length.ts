/**
 * How long a run is. verl's loop over epochs ends with the last of them, or with the last step,
 * whichever comes first; epochs that nobody asked for end no run that was given its steps.
 */

export interface RunLength {
  readonly totalEpochs: number | null;
  readonly totalTrainingSteps: number | null;
}

/** verl's. */
const standardEpochs = 30;

/** Returns after how many epochs the run ends at the latest; null where its steps alone end it. */
export function epochsOf({ totalEpochs, totalTrainingSteps }: RunLength): number | null {
  return totalEpochs ?? (totalTrainingSteps === null ? standardEpochs : null);
}

export function stepsOf(length: RunLength, stepsPerEpoch: number): number {
  const epochs = epochsOf(length);
  const ofEpochs = epochs === null ? Infinity : epochs * stepsPerEpoch;
  return Math.min(length.totalTrainingSteps ?? Infinity, ofEpochs);
}
