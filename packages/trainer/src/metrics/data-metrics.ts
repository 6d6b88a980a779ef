/**
 * Metrics of a batch: scores, advantages, values, lengths, turns (verl `compute_data_metrics`).
 * Names are verl's. A metric without a value is NaN.
 */

import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../errors.ts";
import { matrixOf, rowSums } from "../algorithms/matrix.ts";
import { spreadOf } from "../algorithms/statistics.ts";
import { meanOf } from "../values/sums.ts";

export type Metrics = Readonly<Record<string, number>>;

/** Matrices are [rows, tokens of the response], but for the attention mask. */
export interface DataMetricsBatch extends LengthsBatch {
  /** Scores of tokens, before KL in the reward. */
  readonly tokenLevelScores: Tensor;
  /** Rewards of tokens, after KL in the reward. */
  readonly tokenLevelRewards: Tensor;
  /** Advantage of each token. */
  readonly advantages: Tensor;
  /** Return of each token. */
  readonly returns: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
  /** Values of the critic, if there is one. */
  readonly values?: Tensor;
  /**
   * False for a row whose score is invalid: it does not count where scores, rewards, advantages,
   * returns and values do. Default: all are valid.
   */
  readonly valid?: readonly boolean[];
  /** `__num_turns__` of each row. */
  readonly numTurns?: readonly number[];
  /**
   * Longest prompt and response: a text of this length counts as cut off. Default: the width of the
   * batch, to which verl pads.
   */
  readonly maxPromptLength?: number | undefined;
  /** Longest response, in tokens. Default: the width of the responses. */
  readonly maxResponseLength?: number | undefined;
  /** Number of tool calls of each row. */
  readonly toolCallCounts?: readonly number[];
}

/** Input of `lengthsOf`. */
export interface LengthsBatch {
  /** [rows, tokens of the prompt and of the response]. */
  readonly attentionMask: Tensor;
  /** How many of them are of the response: the width of `responses`. */
  readonly responseWidth: number;
}

/** Lengths of prompts and responses, in tokens. */
export interface Lengths {
  /** Length of each row's prompt. */
  readonly prompt: Float64Array;
  /** Length of each row's response. */
  readonly response: Float64Array;
  /** Width of the prompts with their padding. */
  readonly promptWidth: number;
  /** Width of the responses with their padding. */
  readonly responseWidth: number;
}

/**
 * Tokens of the prompt and of the response of each row (verl `_compute_response_info`). Throws
 * TrainerInputError.
 */
export function lengthsOf({ attentionMask, responseWidth }: LengthsBatch): Lengths {
  const mask = matrixOf("attentionMask", attentionMask);
  const promptWidth = mask.columns - responseWidth;
  if (!Number.isInteger(responseWidth) || responseWidth < 0 || promptWidth < 0) {
    throw new TrainerInputError(
      "responseWidth",
      `responseWidth must be from 0 to ${mask.columns}, the width of attentionMask; it is ${responseWidth}`,
    );
  }
  const prompt = new Float64Array(mask.rows);
  const response = new Float64Array(mask.rows);
  for (let row = 0; row < mask.rows; row++) {
    for (let column = 0; column < mask.columns; column++) {
      const lengths = column < promptWidth ? prompt : response;
      lengths[row] = (lengths[row] ?? NaN) + (mask.data[row * mask.columns + column] ?? NaN);
    }
  }
  return { prompt, response, promptWidth, responseWidth };
}

/** Throws TrainerInputError for shapes that differ. */
export function dataMetrics(batch: DataMetricsBatch): Record<string, number> {
  const lengths = lengthsOf(batch);
  const isScored = (row: number): boolean => batch.valid?.[row] ?? true;
  const isAborted = (row: number): boolean => lengths.response[row] === 0;
  const ofRows = (name: "tokenLevelScores" | "tokenLevelRewards"): Float64Array =>
    rowSums(matrixOf(name, batch[name])).filter((_, row) => isScored(row) && !isAborted(row));
  const mask = matrixOf("responseMask", batch.responseMask);
  const ofTokens = (name: "advantages" | "returns" | "values", tensor: Tensor): Float64Array =>
    matrixOf(name, tensor, mask).data.filter(
      (_, at) => mask.data[at] !== 0 && isScored(Math.floor(at / mask.columns)),
    );
  const returns = ofTokens("returns", batch.returns);
  const { prompt, response, promptWidth, responseWidth } = lengths;
  const { maxPromptLength = promptWidth, maxResponseLength = responseWidth } = batch;
  const whole = response.filter((length) => length !== 0);
  return {
    ...meanMaxMin("critic/score", ofRows("tokenLevelScores")),
    ...meanMaxMin("critic/rewards", ofRows("tokenLevelRewards")),
    ...meanMaxMin("critic/advantages", ofTokens("advantages", batch.advantages)),
    ...meanMaxMin("critic/returns", returns),
    ...(batch.values === undefined ? {} : valueMetrics(returns, ofTokens("values", batch.values))),
    ...lengthMetrics("response_length", response, maxResponseLength),
    ...lengthMetrics("response_length_non_aborted", whole, maxResponseLength),
    "response/aborted_ratio": 1 - whole.length / response.length,
    ...lengthMetrics("prompt_length", prompt, maxPromptLength),
    ...(batch.numTurns === undefined ? {} : ofCounts("num_turns", batch.numTurns)),
    ...(batch.toolCallCounts === undefined
      ? {}
      : ofCounts("tool_call_counts", batch.toolCallCounts)),
  };
}

function valueMetrics(returns: Float64Array, values: Float64Array): Record<string, number> {
  const errors = returns.map((one, at) => one - (values[at] ?? NaN));
  return {
    ...meanMaxMin("critic/values", values),
    "critic/vf_explained_var": 1 - varianceOf(errors) / (varianceOf(returns) + 1e-5),
  };
}

/** Returns the variance of the sample; NaN for one value. */
function varianceOf(values: Float64Array): number {
  return values.length > 1 ? spreadOf(values).std ** 2 : Number.NaN;
}

/** @param most a length of that many is cut off */
function lengthMetrics(name: string, lengths: Float64Array, most: number): Record<string, number> {
  return {
    ...meanMaxMin(name, lengths),
    [`${name}/clip_ratio`]: meanOf(lengths.map((length) => (length === most ? 1 : 0))),
  };
}

function ofCounts(name: string, counts: readonly number[]): Record<string, number> {
  return meanMaxMin(name, Float64Array.from(counts));
}

export function meanMaxMin(name: string, values: Float64Array): Record<string, number> {
  const { mean, max, min } = spreadOf(values);
  const isThere = values.length > 0;
  return {
    [`${name}/mean`]: mean,
    [`${name}/max`]: isThere ? max : Number.NaN,
    [`${name}/min`]: isThere ? min : Number.NaN,
  };
}
