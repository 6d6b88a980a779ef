/** What is told of a step at its end, by verl's names: data, lengths, times, throughput, and what waiting for rewards came to. */

import type { Tensor } from "@rayling/data-proto";
import { dataMetrics } from "../metrics/data-metrics.ts";
import { throughputMetrics, timingMetrics } from "../metrics/timing-metrics.ts";
import { rewardMetrics } from "../tracking/reward-metrics.ts";
import { joinColumns } from "./join-columns.ts";
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
  const { samples, step } = record;
  return {
    "training/global_step": step,
    "training/epoch": samples[0]?.batch.epoch ?? 0,
    ...stalenessOf(record),
    ...record.metrics.reduced(),
    ...dataMetrics(wholeOf(record.parts)),
    ...timesOf(record, gpus),
    ...rewardMetrics(
      samples.map(({ outcome }) => outcome),
      { spanMs: spanOf(record), exposedWaitMs: record.exposedWaitMs, slots },
    ),
  };
}

/** Where its time went so far, and what that makes of its tokens. */
export function timesOf({ clock, samples }: StepRecord, gpus: number): Record<string, number> {
  const timings = clock.timings();
  const promptTokens = sumOf(samples, ({ sample }) => sample.rollout.promptIds.length);
  const responseTokens = sumOf(samples, ({ sample }) => sample.rollout.responseIds.length);
  const tokensOf = samples.map(
    ({ sample: { rollout } }) => rollout.promptIds.length + rollout.responseIds.length,
  );
  return {
    ...timingMetrics(timings, { promptTokens, responseTokens }),
    ...throughputMetrics(tokensOf, timings, gpus),
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

/** All parts as one batch. */
function wholeOf(parts: readonly LearnedRows[]): Parameters<typeof dataMetrics>[0] {
  const whole = joinColumns(
    parts.map(({ data }) => data),
    0,
  );
  const column = (name: string): Tensor => tensorIn(whole, name);
  const values = whole.batch?.["values"];
  return {
    tokenLevelScores: column("token_level_scores"),
    tokenLevelRewards: column("token_level_rewards"),
    advantages: column("advantages"),
    returns: column("returns"),
    responseMask: column("response_mask"),
    ...(values === undefined ? {} : { values }),
    attentionMask: column("attention_mask"),
    responseWidth: column("responses").shape[1] ?? 0,
    valid: parts.flatMap(({ valid }) => valid),
  };
}

function sumOf<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}
