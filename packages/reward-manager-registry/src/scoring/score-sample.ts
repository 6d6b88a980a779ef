/**
 * The one pipeline from a sample to its reward: decode, copy, call, normalise. Every reward manager
 * calls it and adds its own part by options. Knows no limits, no retries, no threads; errors of the
 * score function pass through unchanged.
 */

import { InvalidScoreError } from "../errors.ts";
import { copyData } from "./data-copy.ts";
import { checkSample, decodeResponse } from "./sample.ts";
import type { RewardSample, SampleContext, Tokenizer } from "./sample.ts";
import { wrappedScoreOf } from "./compute-score.ts";
import type {
  ComputeScore,
  RewardModelArguments,
  ScoreCall,
  ScoreInput,
  ScoreOutput,
} from "./compute-score.ts";
import { byToken, byTurn, tokenScoresIn, turnScoresIn } from "./placed-score.ts";
import { toRewardResult } from "./reward-result.ts";
import type { RewardResult } from "./reward-result.ts";

/**
 * As in verl the score function gets the address, its token and that tokenizer only if there is an
 * address.
 */
export interface ScoreSampleOptions extends RewardModelArguments {
  /** Required for responses of token ids. */
  readonly tokenizer?: Tokenizer | undefined;
  /**
   * Fields that the manager adds to the copy of extraInfo; they override keys of the sample. They
   * are copied as well.
   */
  readonly extraInfo?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Scores one sample (verl `run_single`). Rejects with InvalidSampleError, MissingTokenizerError,
 * InvalidScoreError, CannotTellError, or with the error of `computeScore` or the tokenizer.
 */
export function scoreSample(
  sample: RewardSample,
  computeScore: ComputeScore,
  options: ScoreSampleOptions = {},
): Promise<RewardResult> {
  // Not async: what such a function was given stays as long as it waits, here the options of each
  // sample.
  try {
    checkSample(sample);
    const { response } = sample;
    return typeof response === "string"
      ? scored(sample, computeScore, inputOf(sample, response, options))
      : decodeResponse(sample, options.tokenizer).then((text) =>
          scored(sample, computeScore, inputOf(sample, text, options)),
        );
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * `scoreSample` for a call that hears of its end. Never throws.
 *
 * @param extraInfo that of the options, or what each call has of its own
 */
export function beginScore(
  call: ScoreCall,
  computeScore: ComputeScore,
  options: ScoreSampleOptions,
  extraInfo: ScoreSampleOptions["extraInfo"] = options.extraInfo,
): void {
  const { sample } = call;
  const wrapped = wrappedScoreOf(computeScore);
  try {
    checkSample(sample);
    const { response } = sample;
    if (wrapped === undefined || typeof response !== "string") {
      return passTo(call, scoreSample(sample, computeScore, { ...options, extraInfo }));
    }
    wrapped.begin(inputOf(sample, response, options, extraInfo), call);
  } catch (error) {
    passTo(call, Promise.reject(error));
  }
}

/** Tells a call of its end. */
export function passTo(call: ScoreCall, ended: Promise<RewardResult>): void {
  void ended.then(call.settled.bind(call), call.failed.bind(call));
}

/** Awaits the score, and puts it in its place. */
function scored(
  sample: RewardSample,
  computeScore: ComputeScore,
  input: ScoreInput,
): Promise<RewardResult> {
  const wrapped = wrappedScoreOf(computeScore);
  if (wrapped !== undefined) return Promise.resolve(wrapped.passOn(input, resultOf, sample));
  return Promise.resolve(computeScore(input)).then((output) => resultOf(output, sample));
}

/** Returns the score of an output, in its place. Throws InvalidScoreError and CannotTellError. */
export function resultOf(output: ScoreOutput, sample: RewardSample): RewardResult {
  return placed(toRewardResult(output, sample.dataSource), sample);
}

/**
 * Replaces turns by tokens, if the ends of turns are known. Throws InvalidScoreError for places
 * outside of the response.
 */
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

/** Returns undefined when the number of tokens is unknown. */
function lengthOf({ response, responseLength }: RewardSample): number | undefined {
  return typeof response === "string" ? responseLength : response.length;
}

/** Unknown values have no field. Filled field by field: each sample of a run passes here. */
function inputOf(
  sample: RewardSample,
  solutionStr: string,
  options: ScoreSampleOptions,
  added: ScoreSampleOptions["extraInfo"] = options.extraInfo,
): ScoreInput {
  const input: Writable<ScoreInput> = {
    dataSource: sample.dataSource,
    solutionStr,
    groundTruth: copyData(sample.groundTruth),
    extraInfo: extraInfoOf(sample, added),
  };
  if (sample.rawPrompt !== undefined) input.rawPrompt = [...copyData(sample.rawPrompt)];
  const { uid, group, step, lane } = sample.context ?? noContext;
  if (uid !== undefined) input.uid = uid;
  if (group !== undefined) input.group = group;
  if (step !== undefined) input.step = step;
  if (lane !== undefined) input.lane = lane;
  const { rewardRouterAddress, rewardRouterToken, rewardModelTokenizer, rewardModels } = options;
  if (rewardModels !== undefined) input.rewardModels = rewardModels;
  if (rewardRouterAddress === undefined) return input;
  input.rewardRouterAddress = rewardRouterAddress;
  if (rewardRouterToken !== undefined) input.rewardRouterToken = rewardRouterToken;
  if (rewardModelTokenizer !== undefined) input.rewardModelTokenizer = rewardModelTokenizer;
  return input;
}

function extraInfoOf(
  { extraInfo }: RewardSample,
  added: ScoreSampleOptions["extraInfo"],
): Record<string, unknown> {
  // A copy has the fields of its original and room for no others, where that is one literal.
  return copyData(extraInfo === undefined ? { ...added } : { ...extraInfo, ...added });
}

type Writable<Fields> = { -readonly [Name in keyof Fields]: Fields[Name] };

const noContext: SampleContext = {};
