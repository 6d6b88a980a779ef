/**
 * What one sample is, as plain data, and how its response becomes text.
 * Knows no batches and no padding: whoever cuts a batch into samples keeps the valid token ids only.
 */

import { InvalidSampleError, MissingTokenizerError } from "../errors.ts";
import { describeValue } from "../value-description.ts";

/** One finished rollout. Field by field verl's row of a DataProto; null counts as a value, undefined as absent. */
export interface RewardSample {
  /** verl `data_source`: which data set the prompt is from; chooses the default scorer. */
  readonly dataSource: string;
  /** The data does not say it, and whoever read it gave it a name (of its file): it is no part of which sample it is. */
  readonly isSourceAssumed?: boolean | undefined;
  /** The response text, or its valid token ids without padding. */
  readonly response: string | ArrayLike<number>;
  /** verl `valid_response_length`: how many tokens the response has, with the one that ends it; for a manager that counts them, where `response` is a text. */
  readonly responseLength?: number | undefined;
  /** Where each turn of the policy ends: the position of its last token in the response, from 0; for scores by turn. */
  readonly turnEnds?: readonly number[] | undefined;
  /** verl `raw_prompt`: the conversation that was answered. Reward models read it. */
  readonly rawPrompt?: readonly { readonly role: string; readonly content: unknown }[] | undefined;
  /** verl `reward_model.ground_truth`. The score function gets a copy. */
  readonly groundTruth: unknown;
  /** verl `extra_info`. The score function gets a copy. */
  readonly extraInfo?: Readonly<Record<string, unknown>> | undefined;
  /** verl `tool_extra_fields`: what tools and the agent loop noted about this rollout. */
  readonly toolExtraFields?: Readonly<Record<string, unknown>> | undefined;
  /** verl `__num_turns__`. */
  readonly numTurns?: number | undefined;
  readonly context?: SampleContext | undefined;
  /** verl `reward_scores`: scores that the rollout itself (an interaction, a tool) gave. */
  readonly rolloutRewardScores?: Readonly<Record<string, unknown>> | undefined;
}

/** Where and when a sample is scored: no part of which sample it is. What nobody knows is not there. */
export interface SampleContext {
  /** Its own name: no other sample of its run has it. */
  readonly uid?: string | undefined;
  /** verl `uid`: that of all answers to its prompt. */
  readonly group?: string | undefined;
  /** verl `global_steps`: the step in which it was generated, from 1; in a validation so many steps are done. */
  readonly step?: number | undefined;
  /** "training", "validation", or another one that it was given to. */
  readonly lane?: string | undefined;
}

export interface Tokenizer {
  /** Text of the ids; with `skipSpecialTokens` without end-of-sequence and the like. */
  decode(
    ids: ArrayLike<number>,
    options: { readonly skipSpecialTokens: boolean },
  ): string | PromiseLike<string>;
}

/** Throws InvalidSampleError where a field that every score needs is missing, or one is not what it should be. */
export function checkSample(sample: RewardSample): void {
  const { dataSource, response, responseLength, groundTruth } = sample;
  if (typeof dataSource !== "string")
    throw new InvalidSampleError("dataSource", "a string", describeValue(dataSource));
  if (groundTruth === undefined)
    throw new InvalidSampleError("groundTruth", "given (null counts)", "undefined");
  if (
    typeof response !== "string" &&
    typeof (response as ArrayLike<number> | null | undefined)?.length !== "number"
  ) {
    throw new InvalidSampleError(
      "response",
      "a string or a list of token ids",
      describeValue(response),
    );
  }
  const isLength =
    responseLength === undefined || (Number.isInteger(responseLength) && responseLength >= 0);
  if (!isLength) {
    const received = describeValue(responseLength);
    throw new InvalidSampleError("responseLength", "a whole number of tokens, 0 or more", received);
  }
}

/** The response as text, special tokens skipped. Throws MissingTokenizerError for token ids without a tokenizer. */
export async function decodeResponse(
  sample: RewardSample,
  tokenizer: Tokenizer | undefined,
): Promise<string> {
  if (typeof sample.response === "string") return sample.response;
  if (tokenizer === undefined) throw new MissingTokenizerError(sample.dataSource);
  return await tokenizer.decode(sample.response, { skipSpecialTokens: true });
}
