/**
 * verl's default_compute_score: the score function of a user who gave none, chosen by data source.
 * This version has gsm8k; every other row of the table fails with the name of the scorer it needs, never with a zero.
 */

import { InvalidSampleError, RewardNotSupportedError } from "../errors.ts";
import type { ScoreInput, ScoreOutput } from "../scoring/compute-score.ts";
import { describeValue } from "../value-description.ts";
import { scoreGsm8k } from "./gsm8k.ts";
import { routeDataSource } from "./routes.ts";

/** Throws UnknownDataSourceError, RewardNotSupportedError, or InvalidSampleError for a ground truth that is no text. */
export function defaultComputeScore(input: ScoreInput): ScoreOutput {
  const { dataSource, solutionStr, groundTruth, sandboxFusionUrl } = input;
  const route = routeDataSource(dataSource, {
    sandboxFusionUrl: typeof sandboxFusionUrl === "string" ? sandboxFusionUrl : undefined,
  });
  // One branch per scorer that exists; a switch follows with the second one.
  if (route.scorer !== "gsm8k") throw new RewardNotSupportedError(dataSource, route.scorer);
  // verl compares text with whatever this is, so a number as ground truth would score 0 for ever.
  if (typeof groundTruth !== "string")
    throw new InvalidSampleError(
      "groundTruth",
      `a string for "${dataSource}"`,
      describeValue(groundTruth),
    );
  return scoreGsm8k(solutionStr, groundTruth);
}
