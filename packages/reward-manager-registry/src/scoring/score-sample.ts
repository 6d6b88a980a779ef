/**
 * The one pipeline from a sample to its reward: decode, copy, call, normalise.
 * Every reward manager goes through here and adds only what is its own, by options.
 * Knows no limits, no retries, no threads; what the score function throws passes through unchanged.
 */

import { InvalidScoreError } from "../errors.ts";
import { copyData } from "./data-copy.ts";
import { checkSample, decodeResponse } from "./sample.ts";
import type { RewardSample, SampleContext, Tokenizer } from "./sample.ts";
import type { ComputeScore, ScoreInput } from "./compute-score.ts";
import { byToken, byTurn, tokenScoresIn, turnScoresIn } from "./placed-score.ts";
import { toRewardResult } from "./reward-result.ts";
import type { RewardResult } from "./reward-result.ts";

export interface ScoreSampleOptions {
  /** Needed where responses come as token ids. */
  readonly tokenizer?: Tokenizer | undefined;
  /** What the manager adds to the copy of extraInfo; wins over keys of the sample. Copied as well. */
  readonly extraInfo?: Readonly<Record<string, unknown>> | undefined;
  /** host:port. As in verl the score function gets this and the next two only if there is an address. */
  readonly rewardRouterAddress?: string | undefined;
  readonly rewardRouterToken?: string | undefined;
  readonly rewardModelTokenizer?: Tokenizer | undefined;
}

/**
 * Scores one sample (verl `run_single`). Rejects with InvalidSampleError, MissingTokenizerError, InvalidScoreError, CannotTellError,
 * or with whatever `computeScore` or the tokenizer threw.
 */
export async function scoreSample(
  sample: RewardSample,
  computeScore: ComputeScore,
  options: ScoreSampleOptions = {},
): Promise<RewardResult> {
  checkSample(sample);
  const { response } = sample;
  // A text waits for nobody.
  const solutionStr =
    typeof response === "string" ? response : await decodeResponse(sample, options.tokenizer);
  const output = await computeScore({
    dataSource: sample.dataSource,
    solutionStr,
    groundTruth: copyData(sample.groundTruth),
    extraInfo: copyData({ ...sample.extraInfo, ...options.extraInfo }),
    ...(sample.rawPrompt === undefined ? {} : { rawPrompt: [...copyData(sample.rawPrompt)] }),
    ...contextOf(sample),
    ...rewardModelArguments(options),
  });
  return placed(toRewardResult(output, sample.dataSource), sample);
}

/** With tokens in place of turns, where it is known where these end. Throws InvalidScoreError for places that the response has not. */
function placed(result: RewardResult, sample: RewardSample): RewardResult {
  const { dataSource, turnEnds } = sample;
  const { [byTurn]: turns, [byToken]: tokens } = result.rewardExtraInfo;
  if (tokens !== undefined) {
    const length = lengthOf(sample);
    const behind = tokenScoresIn(tokens)?.find(([position]) => position >= (length ?? Infinity));
    if (behind === undefined) return result;
    const received = `a score at position ${behind[0]} of a response of ${length} tokens`;
    throw new InvalidScoreError(dataSource, received, result.rewardExtraInfo);
  }
  const values = turns === undefined ? undefined : turnScoresIn({ turns });
  if (values === undefined || turnEnds === undefined) return result;
  if (values.length !== turnEnds.length) {
    const received = `scores of ${values.length} turns for a response of ${turnEnds.length}`;
    throw new InvalidScoreError(dataSource, received, result.rewardExtraInfo);
  }
  const byEnd = values.map((value, at) => [turnEnds[at], value]);
  return { ...result, rewardExtraInfo: { ...result.rewardExtraInfo, [byToken]: byEnd } };
}

/** Undefined where nobody says how many tokens it has. */
function lengthOf({ response, responseLength }: RewardSample): number | undefined {
  return typeof response === "string" ? responseLength : response.length;
}

/** What is known of it. */
function contextOf({ context }: RewardSample): Pick<ScoreInput, keyof SampleContext> {
  if (context === undefined) return {};
  const { uid, group, step, lane } = context;
  return {
    ...(uid === undefined ? {} : { uid }),
    ...(group === undefined ? {} : { group }),
    ...(step === undefined ? {} : { step }),
    ...(lane === undefined ? {} : { lane }),
  };
}

function rewardModelArguments(options: ScoreSampleOptions): {
  rewardRouterAddress?: string;
  rewardRouterToken?: string;
  rewardModelTokenizer?: Tokenizer;
} {
  const { rewardRouterAddress, rewardRouterToken, rewardModelTokenizer } = options;
  if (rewardRouterAddress === undefined) return {};
  return {
    rewardRouterAddress,
    ...(rewardRouterToken === undefined ? {} : { rewardRouterToken }),
    ...(rewardModelTokenizer === undefined ? {} : { rewardModelTokenizer }),
  };
}
