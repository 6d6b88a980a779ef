/** The places that a manager class of the user's gives the scores of a batch. */

import type { ResponseShape } from "../batch/batch-samples.ts";
import { RewardAssemblyError } from "../errors.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { RewardSource } from "../pipeline/reward-source.ts";

/**
 * Returns the places of the scores, row by row; undefined where they stand at the last tokens.
 * Rejects with RewardAssemblyError, and as the source.
 */
export async function assembledScores(
  source: RewardSource,
  { rows, width, lengths, idsOf }: ResponseShape,
  outcomes: readonly SampleOutcome[],
): Promise<Float32Array | undefined> {
  if (!source.traits.assembles) return undefined;
  const responses = idsOf && Array.from({ length: rows }, (_, row) => idsOf(row));
  const placed = await source.assembleRmScores({
    width,
    lengths: [...lengths],
    scores: outcomes.map((one) => (one.valid ? one.rewardScore : null)),
    rewardExtraInfos: outcomes.map((one) => (one.valid ? one.rewardExtraInfo : null)),
    ...(responses === undefined ? {} : { responses }),
  });
  if (placed?.valid === false) throw new RewardAssemblyError(placed.error);
  const scores = placed?.rewardExtraInfo["rmScores"];
  return scores instanceof Float32Array ? scores : undefined;
}
