/**
 * Turns the rows of a batch into samples, by verl's column names (its keys are data and keep their
 * spelling).
 *
 * Tensors: responses [rows, length] of token ids, right-padded; attention_mask [rows, prompt +
 * length]; prompts only for their width; response_mask [rows, length], optional, for the ends of
 * turns.
 * Values: data_source, reward_model ({ ground_truth }), and optionally extra_info,
 * tool_extra_fields, __num_turns__, reward_scores, raw_prompt (a list of { role, content }), uid
 * (of its group); meta info: global_steps. A column `response` of texts takes the place of token
 * ids, and then no tokenizer is needed; the lengths of such responses in tokens are those of the
 * masks, or else of a column response_length.
 * A missing column is an error of the batch. A bad value in one row is the outcome of that row,
 * unless it cannot travel to a worker at all: that rejects the batch and names the place.
 */

import type { DataProto, Tensor } from "@rayling/data-proto";
import type { RewardSample, SampleContext } from "@rayling/reward-manager-registry";
import { fieldOf, itemAt, present } from "@rayling/reward-manager-registry/values";
import { InvalidBatchError } from "../errors.ts";

/** Columns that the loop itself reads or makes: extra info of these names stands elsewhere. */
export const batchColumns: ReadonlySet<string> = new Set([
  "responses",
  "attention_mask",
  "prompts",
  "response",
  "response_length",
  "uid",
  "data_source",
  "reward_model",
  "extra_info",
  "tool_extra_fields",
  "__num_turns__",
  "reward_scores",
  "raw_prompt",
  "rmScores",
  "rewardValid",
  "rewardError",
]);

/** The shape of a batch's scores: `width` columns, row i's score at `lengths[i] - 1`. */
export interface ResponseShape {
  readonly rows: number;
  readonly width: number;
  /** Valid tokens of each response (verl: the sum of attention_mask behind the prompt). */
  readonly lengths: Int32Array;
  /** Token ids of a response, without padding; none where responses are texts. */
  readonly idsOf?: ((row: number) => readonly number[]) | undefined;
}

/** Returns the shape of some of the rows. */
export function shapeOfRows(shape: ResponseShape, rows: readonly number[]): ResponseShape {
  const { width, lengths, idsOf } = shape;
  return {
    rows: rows.length,
    width,
    lengths: Int32Array.from(rows, (row) => lengths[row] ?? 0),
    idsOf: idsOf && ((at) => idsOf(itemAt(rows, at))),
  };
}

/** A batch of texts has responses of one column. Throws InvalidBatchError. */
export function responseShape(data: DataProto): ResponseShape {
  const rows = data.length;
  const responses = data.batch?.["responses"];
  if (responses === undefined) return { rows, width: 1, lengths: new Int32Array(rows).fill(1) };
  const width = columnsOf("responses", responses);
  const mask = data.batch?.["attention_mask"];
  if (mask === undefined) throw new InvalidBatchError("attention_mask", "is missing");
  const maskWidth = columnsOf("attention_mask", mask);
  const prompts = data.batch?.["prompts"];
  const promptWidth = prompts === undefined ? maskWidth - width : columnsOf("prompts", prompts);
  if (promptWidth < 0 || maskWidth !== promptWidth + width) {
    throw new InvalidBatchError(
      "attention_mask",
      `has ${maskWidth} columns, prompts and responses have ${promptWidth} + ${width}`,
    );
  }
  const lengths = Int32Array.from({ length: rows }, (_, row) => lengthIn(mask, row, width));
  const idsOf = (row: number): number[] => {
    const start = row * width;
    return Array.from(responses.data.subarray(start, start + (lengths[row] ?? 0)));
  };
  return { rows, width, lengths, idsOf };
}

/** Returns the valid tokens at the end of a row. Throws InvalidBatchError. */
function lengthIn({ data, shape }: Tensor, row: number, width: number): number {
  const end = (row + 1) * (shape[1] ?? 0);
  let length = 0;
  for (let at = end - width; at < end; at++) {
    const value = data[at];
    if (value !== 0 && value !== 1) {
      throw new InvalidBatchError("attention_mask", `row ${row} holds ${value}, not 0 or 1`);
    }
    length += value;
  }
  return length;
}

/** Throws InvalidBatchError. */
export function samplesOf(data: DataProto): RewardSample[] {
  const { nonTensorBatch } = data;
  const dataSources = columnOf(nonTensorBatch, "data_source");
  const rewardModels = columnOf(nonTensorBatch, "reward_model");
  const response = responseReader(data);
  const tokens = tokenCounter(data);
  const context = contextReader(data);
  const turnEnds = turnReader(data);
  // The values of a row are checked where it is scored, as for every sample.
  return dataSources.map(
    (dataSource, row) =>
      ({
        dataSource,
        response: response(row),
        responseLength: tokens(row),
        groundTruth: fieldOf(rewardModels[row], "ground_truth"),
        rawPrompt: valueAt(nonTensorBatch, "raw_prompt", row),
        extraInfo: valueAt(nonTensorBatch, "extra_info", row),
        toolExtraFields: valueAt(nonTensorBatch, "tool_extra_fields", row),
        numTurns: valueAt(nonTensorBatch, "__num_turns__", row),
        rolloutRewardScores: valueAt(nonTensorBatch, "reward_scores", row),
        context: context(row),
        turnEnds: turnEnds(row),
      }) as RewardSample,
  );
}

function responseReader(data: DataProto): (row: number) => RewardSample["response"] {
  const texts = data.nonTensorBatch["response"];
  if (texts !== undefined) return (row) => texts[row] as string;
  const responses = data.batch?.["responses"];
  if (responses === undefined) {
    throw new InvalidBatchError("responses", "is missing, and so is a column response of texts");
  }
  return present(responseShape(data).idsOf, "the token ids of responses");
}

/**
 * Returns the number of tokens of a response that is a text (verl `valid_response_length`);
 * undefined where nothing says it, and for token ids, which say it themselves. Throws
 * InvalidBatchError.
 */
function tokenCounter(data: DataProto): (row: number) => unknown {
  const { batch, nonTensorBatch } = data;
  if (nonTensorBatch["response"] === undefined) return () => undefined;
  const { responses, attention_mask: mask, response_mask: own } = batch ?? {};
  if (responses !== undefined && mask !== undefined) {
    const { lengths } = responseShape(data);
    return (row) => itemAt(lengths, row);
  }
  if (own === undefined) return (row) => valueAt(nonTensorBatch, "response_length", row);
  const width = columnsOf("response_mask", own);
  const maskWidth = mask === undefined ? 0 : columnsOf("attention_mask", mask);
  // The end of the attention mask, else all up to the last token of the policy's own.
  if (mask !== undefined && maskWidth >= width) {
    return (row) => lengthIn(mask, row, width);
  }
  return (row) => own.data.subarray(row * width, (row + 1) * width).lastIndexOf(1) + 1;
}

/**
 * Returns the token runs that the policy wrote, which other messages separate; undefined where the
 * batch does not mark them.
 */
function turnReader({ batch }: DataProto): (row: number) => readonly number[] | undefined {
  const mask = batch?.["response_mask"];
  const [, width] = mask?.shape ?? [];
  if (mask === undefined || width === undefined) return () => undefined;
  return (row) => {
    const own = mask.data.subarray(row * width, (row + 1) * width);
    return [...own.keys()].filter((at) => own[at] === 1 && own[at + 1] !== 1);
  };
}

/** Rows are named by their group and their place in it, from 0. */
function contextReader({
  nonTensorBatch,
  metaInfo,
}: DataProto): (row: number) => SampleContext | undefined {
  const step = metaInfo["global_steps"];
  const ofBatch = typeof step === "number" ? { step } : undefined;
  const uids = nonTensorBatch["uid"];
  if (uids === undefined) return () => ofBatch;
  const places = new Map<string, number>();
  const contexts = uids.map((one): SampleContext => {
    const group = String(one);
    const place = places.get(group) ?? 0;
    places.set(group, place + 1);
    return { uid: `${group}/${place}`, group, ...ofBatch };
  });
  return (row) => contexts[row];
}

function columnOf(columns: DataProto["nonTensorBatch"], key: string): readonly unknown[] {
  const values = columns[key];
  if (values === undefined) throw new InvalidBatchError(key, "is missing");
  return values;
}

/** null in a column means that the row has none. */
function valueAt(columns: DataProto["nonTensorBatch"], key: string, row: number): unknown {
  return columns[key]?.[row] ?? undefined;
}

function columnsOf(column: string, { shape }: Tensor): number {
  const [, width] = shape;
  if (shape.length === 2 && width !== undefined) return width;
  throw new InvalidBatchError(column, `has the shape [${shape.join(", ")}], not [rows, columns]`);
}
