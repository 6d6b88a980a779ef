/**
 * One sample as plain data, and the text of its response. Knows no batches and no padding: the code
 * that cuts a batch into samples keeps only valid token ids.
 */

import { InvalidSampleError, MissingTokenizerError } from "../errors.ts";
import { describeValue } from "../value-description.ts";
import { isRecord } from "../values/records.ts";

/**
 * One finished rollout. Field by field verl's row of a DataProto; null counts as a value, undefined
 * as absent.
 */
export interface RewardSample {
  /** verl `data_source`: the data set of the prompt; it selects the default scorer. */
  readonly dataSource: string;
  /**
   * Whether the reader of the data assumed the source (the name of its file), because the data
   * lacks one: such a source is no part of the sample's identity.
   */
  readonly isSourceAssumed?: boolean | undefined;
  /** The response text, or its valid token ids without padding. */
  readonly response: string | ArrayLike<number>;
  /**
   * verl `valid_response_length`: the number of tokens of the response, including the final one;
   * for a manager that counts them when `response` is a text.
   */
  readonly responseLength?: number | undefined;
  /**
   * The position of the last token of each turn of the policy in the response, from 0; for scores
   * by turn.
   */
  readonly turnEnds?: readonly number[] | undefined;
  /** verl `raw_prompt`: the conversation that was answered. Reward models read it. */
  readonly rawPrompt?: readonly { readonly role: string; readonly content: unknown }[] | undefined;
  /** verl `reward_model.ground_truth`. The score function gets a copy. */
  readonly groundTruth: unknown;
  /** verl `extra_info`. The score function gets a copy. */
  readonly extraInfo?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Whether `extraInfo.group_uid` is not the data's: a request added the name of its group, which
   * is no part of the sample's identity.
   */
  readonly isGroupAdded?: boolean | undefined;
  /** verl `tool_extra_fields`: facts that tools and the agent loop recorded about this rollout. */
  readonly toolExtraFields?: Readonly<Record<string, unknown>> | undefined;
  /** verl `__num_turns__`. */
  readonly numTurns?: number | undefined;
  /** The context in which it is scored; score functions get its fields as arguments. */
  readonly context?: SampleContext | undefined;
  /** verl `reward_scores`: scores by the rollout itself (an interaction, a tool). */
  readonly rolloutRewardScores?: Readonly<Record<string, unknown>> | undefined;
}

/** The context in which a sample is scored: no part of its identity. Unknown fields are absent. */
export interface SampleContext {
  /** The sample's own name, unique in its run. */
  readonly uid?: string | undefined;
  /** verl `uid`: the name that all answers to a prompt share. */
  readonly group?: string | undefined;
  /**
   * verl `global_steps`: the step of its generation, from 1; in a validation the number of finished
   * steps.
   */
  readonly step?: number | undefined;
  /** "training", "validation", or another given name. */
  readonly lane?: string | undefined;
  /** The trace that its scoring belongs to, as a propagator of OpenTelemetry writes it. */
  readonly trace?: Readonly<Record<string, string>> | undefined;
}

/** Makes the text of token ids. */
export interface Tokenizer {
  /**
   * Returns the text of the ids; with `skipSpecialTokens` without end-of-sequence and similar
   * tokens.
   */
  decode(
    ids: ArrayLike<number>,
    options: { readonly skipSpecialTokens: boolean },
  ): string | PromiseLike<string>;
}

/**
 * Throws InvalidSampleError for a missing field that every score needs, or a field of the wrong
 * kind.
 */
export function checkSample(sample: RewardSample): void {
  if (!isRecord(sample)) {
    throw new InvalidSampleError("type", "that of an object", describeValue(sample));
  }
  const { dataSource, response, responseLength, groundTruth } = sample;
  if (typeof dataSource !== "string")
    throw new InvalidSampleError("dataSource", "a string", describeValue(dataSource));
  if (groundTruth === undefined)
    throw new InvalidSampleError("groundTruth", "given (null counts)", "undefined");
  if (typeof response !== "string" && typeof Reflect.get(Object(response), "length") !== "number") {
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

/**
 * Returns the response as text, without special tokens. Throws MissingTokenizerError for token ids
 * without a tokenizer.
 */
export async function decodeResponse(
  sample: RewardSample,
  tokenizer: Tokenizer | undefined,
): Promise<string> {
  if (typeof sample.response === "string") return sample.response;
  if (tokenizer === undefined) throw new MissingTokenizerError(sample.dataSource);
  return await tokenizer.decode(sample.response, { skipSpecialTokens: true });
}
