/** What is told of a step at its end, by verl's names: data, lengths, times, throughput, and what waiting for rewards came to. */

import { concatRows } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { dataMetrics } from "../metrics/data-metrics.ts";
import { throughputMetrics, timingMetrics } from "../metrics/timing-metrics.ts";
import { rewardMetrics } from "../tracking/reward-metrics.ts";
import { tensorIn } from "./samples.ts";
import type { LearnedRows, StepRecord } from "./step-record.ts";

export interface SummaryContext {
  /** Of verl's throughput, which is per GPU. */
  readonly gpus: number;
  /** How many samples the reward loop scores at a time. */
  readonly slots: number;
}

export function summaryOf(
  record: StepRecord,
  { gpus, slots }: SummaryContext,
): Record<string, number> {
  const timings = record.clock.timings();
  const { samples, step } = record;
  const promptTokens = sumOf(samples, ({ sample }) => sample.rollout.promptIds.length);
  const responseTokens = sumOf(samples, ({ sample }) => sample.rollout.responseIds.length);
  const tokensOf = samples.map(
    ({ sample: { rollout } }) => rollout.promptIds.length + rollout.responseIds.length,
  );
  return {
    "training/global_step": step,
    "training/epoch": samples[0]?.batch.epoch ?? 0,
    ...stalenessOf(record),
    ...record.metrics.reduced(),
    ...dataMetrics(wholeOf(record.parts)),
    ...timingMetrics(timings, { promptTokens, responseTokens }),
    ...throughputMetrics(tokensOf, timings, gpus),
    ...rewardMetrics(
      samples.map(({ outcome }) => outcome),
      { spanMs: spanOf(record), exposedWaitMs: record.exposedWaitMs, slots },
    ),
  };
}

/** From the first rollout that was finished to the last score. */
function spanOf({ told }: StepRecord): number {
  const first = told.reduce((least, { generatedMs }) => Math.min(least, generatedMs), Infinity);
  const last = told.reduce((most, { scoredMs }) => Math.max(most, scoredMs), 0);
  return Math.max(0, last - first);
}

function stalenessOf({ samples, step }: StepRecord): Record<string, number> {
  const ages = samples.map(({ sample }) => step - 1 - sample.generatedAt);
  return {
    "training/off_policy/trajectory_staleness": sumOf(ages, (age) => age) / ages.length,
    "training/off_policy/trajectory_staleness_worst": Math.max(...ages),
  };
}

type Batch = Parameters<typeof dataMetrics>[0];

/** All parts as one batch; their widths differ where they were made of different samples. */
function wholeOf(parts: readonly LearnedRows[]): Batch {
  const promptWidth = Math.max(...parts.map(({ data }) => widthOf(tensorIn(data, "prompts"))));
  const width = Math.max(...parts.map(({ data }) => widthOf(tensorIn(data, "responses"))));
  const joined = (column: string): Tensor =>
    concatRows(parts.map(({ data }) => padded(tensorIn(data, column), width, 0)));
  const attentionMask = concatRows(
    parts.map(({ data }) => {
      const own = widthOf(tensorIn(data, "prompts"));
      return padded(tensorIn(data, "attention_mask"), promptWidth + width, promptWidth - own);
    }),
  );
  const values = parts.every(({ data }) => data.batch?.["values"] !== undefined);
  return {
    tokenLevelScores: joined("token_level_scores"),
    tokenLevelRewards: joined("token_level_rewards"),
    advantages: joined("advantages"),
    returns: joined("returns"),
    responseMask: joined("response_mask"),
    ...(values ? { values: joined("values") } : {}),
    attentionMask,
    responseWidth: width,
    valid: parts.flatMap(({ valid }) => valid),
  };
}

function widthOf({ shape }: Tensor): number {
  return shape[1] ?? 0;
}

/** Rows of another width, what was there begins at a column. */
function padded(tensor: Tensor, width: number, start: number): Tensor {
  const [rows = 0, own = 0] = tensor.shape;
  if (own === width && start === 0) return tensor;
  const data =
    tensor.dtype === "float32" ? new Float32Array(rows * width) : new Int32Array(rows * width);
  for (let row = 0; row < rows; row++) {
    data.set(tensor.data.subarray(row * own, (row + 1) * own), row * width + start);
  }
  return { dtype: tensor.dtype, shape: [rows, width], data };
}

function sumOf<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}
