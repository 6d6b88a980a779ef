/**
 * Rows of tokens of different lengths as one matrix, and back (verl/utils/torch_functional.py,
 * verl/utils/attention_utils.py).
 */

import { asTensor, type Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../errors.ts";
import { matrixOf } from "./matrix.ts";

/**
 * Returns the last columns of an attention mask of prompts and responses, which are those of the
 * responses (verl `compute_response_mask`). Throws TrainerInputError.
 */
export function responseMaskOf(attentionMask: Tensor, responseWidth: number): Tensor<"int32"> {
  const mask = matrixOf("attentionMask", attentionMask);
  const from = mask.columns - responseWidth;
  if (!Number.isInteger(responseWidth) || responseWidth < 0 || from < 0) {
    throw new TrainerInputError(
      "responseWidth",
      `responseWidth must be from 0 to ${mask.columns}, the width of attentionMask; it is ${responseWidth}`,
    );
  }
  const kept = mask.data.filter((_, at) => at % mask.columns >= from);
  return asTensor(Int32Array.from(kept), [mask.rows, responseWidth]);
}

/**
 * 1 up to the first token that ends a response, and for that one; 0 behind it (verl
 * `get_response_mask`).
 */
export function responseMaskByEos(
  responses: Tensor,
  eosTokens: number | readonly number[],
): Tensor<"int32"> {
  const tokens = matrixOf("responses", responses);
  const ends = new Set(typeof eosTokens === "number" ? [eosTokens] : eosTokens);
  const mask = new Int32Array(tokens.data.length);
  for (let row = 0; row < tokens.rows; row++) {
    for (let at = row * tokens.columns; at < (row + 1) * tokens.columns; at++) {
      mask[at] = 1;
      if (ends.has(tokens.data[at] ?? NaN)) break;
    }
  }
  return asTensor(mask, responses.shape);
}

/** How rows of tokens are padded to one length. */
export interface PadOptions {
  /** The token that fills the rows up. */
  readonly padTokenId: number;
  /** Rows that are longer keep their length. Default: that of the longest. */
  readonly maxLength?: number;
  /** Whether rows are padded on the left, as prompts are. Default false. */
  readonly leftPad?: boolean;
}

/**
 * Rows of one length (verl `pad_2d_list_to_length`, `pad_sequence_to_length`): that of the longest,
 * if it is above `maxLength`.
 */
export function padRows(
  rows: readonly ArrayLike<number>[],
  { padTokenId, maxLength = 0, leftPad = false }: PadOptions,
): Tensor<"int32"> {
  const width = rows.reduce((most, row) => Math.max(most, row.length), maxLength);
  const data = new Int32Array(rows.length * width).fill(padTokenId);
  for (const [at, row] of rows.entries()) {
    data.set(row, at * width + (leftPad ? width - row.length : 0));
  }
  return asTensor(data, [rows.length, width]);
}

/** How rows of tokens are padded or cut to one length. */
export interface FitOptions {
  /** The length of all rows, in tokens. */
  readonly maxLength: number;
  /** The token that fills the rows up. */
  readonly padTokenId: number;
  /** Default true. */
  readonly leftPad?: boolean;
  /** Which part of a row that is too long is dropped. Default "error": the row is refused. */
  readonly truncation?: "error" | "left" | "right" | "middle";
}

/** Rows of one length. Both tensors are [rows, maxLength]. */
export interface FittedRows {
  /** Token ids. */
  readonly inputIds: Tensor<"int32">;
  /** 1 for a token, 0 for padding. */
  readonly attentionMask: Tensor<"int32">;
}

/**
 * Rows of exactly `maxLength` tokens, padded or cut (verl `postprocess_data`, `data.truncation`).
 * Throws TrainerInputError for one that is too long and must not be cut.
 */
export function fitRows(
  rows: readonly ArrayLike<number>[],
  { maxLength, padTokenId, leftPad = true, truncation = "error" }: FitOptions,
): FittedRows {
  const fitted = rows.map((row, at) => cut(row, maxLength, truncation, at));
  const padded = (lists: readonly ArrayLike<number>[], padding: number): Tensor<"int32"> =>
    padRows(lists, { padTokenId: padding, maxLength, leftPad });
  const ones = fitted.map((row) => new Int32Array(row.length).fill(1));
  return { inputIds: padded(fitted, padTokenId), attentionMask: padded(ones, 0) };
}

function cut(
  row: ArrayLike<number>,
  maxLength: number,
  truncation: string,
  at: number,
): readonly number[] {
  const tokens = Array.from(row);
  const isKnown = ["error", "left", "right", "middle"].includes(truncation);
  if (!isKnown) {
    throw new TrainerInputError(
      "truncation",
      `there is no truncation "${truncation}"; there are error, left, right, middle`,
    );
  }
  if (tokens.length <= maxLength) return tokens;
  switch (truncation) {
    case "left":
      return tokens.slice(tokens.length - maxLength);
    case "right":
      return tokens.slice(0, maxLength);
    case "middle": {
      const head = Math.floor(maxLength / 2);
      return [...tokens.slice(0, head), ...tokens.slice(tokens.length - (maxLength - head))];
    }
    default:
      throw new TrainerInputError(
        "maxLength",
        `row ${at} has ${tokens.length} tokens, more than ${maxLength}, and truncation is "error"`,
      );
  }
}

/** Each row without what is masked (verl `remove_pad_token`). */
export function unpaddedRows(inputIds: Tensor, attentionMask: Tensor): number[][] {
  const tokens = matrixOf("inputIds", inputIds);
  const mask = matrixOf("attentionMask", attentionMask, tokens);
  return Array.from({ length: tokens.rows }, (_, row) => {
    const from = row * tokens.columns;
    return Array.from(tokens.data.subarray(from, from + tokens.columns)).filter(
      (_token, column) => mask.data[from + column] !== 0,
    );
  });
}

/** Tokens that are not padding, one row behind the other. */
export interface Packing {
  /** Places in the data of the matrix. */
  readonly indices: Int32Array;
  /** Start of each row among the packed tokens, and the end of the last row. */
  readonly cuSeqlens: Int32Array;
  /** The length of the longest row, in tokens. */
  readonly maxSeqlen: number;
}

/** All tokens that count behind each other (verl `get_unpad_data`). */
export function packingOf(attentionMask: Tensor): Packing {
  const mask = matrixOf("attentionMask", attentionMask);
  const indices: number[] = [];
  const cuSeqlens = new Int32Array(mask.rows + 1);
  let maxSeqlen = 0;
  for (let row = 0; row < mask.rows; row++) {
    for (let at = row * mask.columns; at < (row + 1) * mask.columns; at++) {
      if (mask.data[at] !== 0) indices.push(at);
    }
    cuSeqlens[row + 1] = indices.length;
    maxSeqlen = Math.max(maxSeqlen, indices.length - (cuSeqlens[row] ?? NaN));
  }
  return { indices: Int32Array.from(indices), cuSeqlens, maxSeqlen };
}
