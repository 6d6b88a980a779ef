/**
 * verl's default_compute_score: the score function of a user who gave none, chosen by data source.
 * A row of the table whose scorer this version does not have fails with its name, never with a zero.
 */

import { InvalidSampleError, RewardNotSupportedError } from "../errors.ts";
import type { ScoreInput, ScoreOutput } from "../scoring/compute-score.ts";
import { describeValue } from "../value-description.ts";
import { scoreGeo3k } from "./geo3k.ts";
import { scoreGsm8k } from "./gsm8k.ts";
import { scoreMathDapo } from "./math-dapo.ts";
import { scoreMathReward } from "./math-reward.ts";
import { scorePrimeMath } from "./prime-math.ts";
import { routeDataSource } from "./routes.ts";
import { scoreSearchR1 } from "./search-r1.ts";

/** Throws UnknownDataSourceError, RewardNotSupportedError, or InvalidSampleError for a ground truth that is not what the scorer compares with. */
export function defaultComputeScore(input: ScoreInput): ScoreOutput {
  const { dataSource, solutionStr, sandboxFusionUrl } = input;
  const { scorer } = routeDataSource(dataSource, {
    sandboxFusionUrl: typeof sandboxFusionUrl === "string" ? sandboxFusionUrl : undefined,
  });
  switch (scorer) {
    case "gsm8k":
      return scoreGsm8k(solutionStr, textOf(input));
    case "math_reward":
      return scoreMathReward(solutionStr, textOf(input));
    case "math_dapo":
      return scoreMathDapo(solutionStr, textOf(input));
    case "prime_math":
      return scorePrimeMath(solutionStr, textOf(input)).correct ? 1 : 0;
    case "geo3k":
      return scoreGeo3k(solutionStr, textOf(input));
    case "search_r1_like_qa_em":
      return scoreSearchR1(solutionStr, targetOf(input));
    default:
      throw new RewardNotSupportedError(dataSource, scorer);
  }
}

/** verl compares text with whatever this is, so a number as ground truth would score 0 for ever. */
function textOf({ dataSource, groundTruth }: ScoreInput): string {
  if (typeof groundTruth === "string") return groundTruth;
  throw new InvalidSampleError(
    "groundTruth",
    `a string for "${dataSource}"`,
    describeValue(groundTruth),
  );
}

function targetOf({ dataSource, groundTruth }: ScoreInput): string | readonly string[] {
  const target = (groundTruth as { readonly target?: unknown } | null)?.target;
  if (typeof target === "string") return target;
  if (Array.isArray(target) && target.every((one) => typeof one === "string")) return target;
  throw new InvalidSampleError(
    "groundTruth",
    `an object with a target, a string or several, for "${dataSource}"`,
    describeValue(groundTruth),
  );
}
