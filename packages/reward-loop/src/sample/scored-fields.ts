/**
 * The fields of a sample that scoring reads. A row may have further fields for its owner (an id, a
 * callback): they stay with the owner, do not travel, and mean nothing to the loop, which has marks
 * of its own on what travels (group-sample.ts).
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { isRecord } from "@rayling/reward-manager-registry/values";

const fields: Readonly<Record<keyof RewardSample, true>> = {
  dataSource: true,
  isSourceAssumed: true,
  response: true,
  responseLength: true,
  turnEnds: true,
  rawPrompt: true,
  groundTruth: true,
  extraInfo: true,
  isGroupAdded: true,
  toolExtraFields: true,
  numTurns: true,
  context: true,
  rolloutRewardScores: true,
};
const names: ReadonlySet<string> = new Set(Object.keys(fields));

/**
 * Returns the sample itself if it has no other fields, as most: each sample passes here, and a copy
 * takes longer than the look at its keys.
 */
export function scoredFields(sample: RewardSample): RewardSample {
  if (!isRecord(sample)) return sample;
  for (const name of Object.keys(sample)) if (!names.has(name)) return copyOf(sample);
  return sample;
}

function copyOf(sample: RewardSample): RewardSample {
  const copy: RewardSample = Object.create(Object.prototype);
  for (const name of Object.keys(sample)) if (names.has(name)) copyField(sample, name, copy);
  return copy;
}

/** A field that cannot be read throws again where it is sent, which makes its sample invalid. */
function copyField(sample: RewardSample, name: string, copy: RewardSample): void {
  try {
    Reflect.set(copy, name, Reflect.get(sample, name));
  } catch (error) {
    const get = (): never => {
      throw error;
    };
    Object.defineProperty(copy, name, { enumerable: true, get });
  }
}
