/**
 * The outcome of a sample as training takes it. Batches are float32, as verl's: a score that is
 * finite as JavaScript has it, and infinite there, would make all of its update NaN.
 */

import type { SampleOutcome } from "@rayling/reward-loop";
import { placesOf } from "@rayling/reward-manager-registry";
import type { TrainingSample } from "./training-sample.ts";

/** Returns the outcome, or an invalid one in place of a score that float32 cannot hold. */
export function trainedOutcome(sample: TrainingSample, outcome: SampleOutcome): SampleOutcome {
  if (!outcome.valid) return outcome;
  const { valid: _valid, rewardScore, rewardExtraInfo: _extraInfo, ...measured } = outcome;
  const { length } = sample.rollout.responseIds;
  const places = placesOf(outcome, { length, width: Math.max(length, 1) });
  const parts = [rewardScore, ...places.map(([, part]) => part)];
  const tooLarge = parts.find((part) => !Number.isFinite(Math.fround(part)));
  if (tooLarge === undefined) return outcome;
  const { id, prompt } = sample;
  const which = `sample ${id} (row ${prompt.index} of the data, data source ${prompt.dataSource})`;
  const message = `the score ${tooLarge} of ${which} is beyond float32, in which training computes: scores are between -3.4e38 and 3.4e38`;
  const error = { code: "INVALID_SCORE", name: "InvalidScoreError", message } as const;
  return { valid: false, error, ...measured };
}
