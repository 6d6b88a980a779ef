/**
 * The lane of a sample, as its score function sees it. Most samples are in the training lane, and
 * travel without a word about it: that saves an object for each of them in every thread.
 */

import type { RewardSample, SampleContext } from "@rayling/reward-manager-registry";
import type { Writable } from "../outcome.ts";
import { scoredFields } from "./scored-fields.ts";

const training = "training";
const inTraining: SampleContext = Object.freeze({ lane: training });

/** The field of a sample that came without a context. */
export const trainingField: Pick<RewardSample, "context"> = { context: inTraining };

/**
 * Stores the lane in the sample's context, unless that names one, because a second scoring waits in
 * another lane. Every sample of a loop enters it here, and leaves its owner's fields behind.
 */
export function inLane(given: RewardSample, lane: string): RewardSample {
  const sample = scoredFields(given);
  if (!isPlain(sample)) return sample;
  if (lane === training && sample.context === undefined) return sample;
  return { ...sample, context: { lane, ...sample.context } };
}

/**
 * The other side of `inLane`: a sample that came without a context is in the training lane.
 *
 * @param sample as it has arrived: it is completed in place
 */
export function withLane(sample: Writable<RewardSample>): RewardSample {
  if (isPlain(sample) && sample.context === undefined) sample.context = inTraining;
  return sample;
}

/** The scorer reports a sample that is not even an object. */
function isPlain(sample: RewardSample): boolean {
  const isObject = typeof sample === "object" && sample !== null;
  return isObject && Object.getPrototypeOf(sample) === Object.prototype;
}
