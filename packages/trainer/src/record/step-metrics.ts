/**
 * Metrics of a finished step by verl's names: staleness, data, lengths, times, throughput, and the
 * waiting for rewards.
 */

import type { DataProto, Tensor } from "@rayling/data-proto";
import { optional } from "@rayling/reward-manager-registry/values";
import { responseMaskOf } from "../algorithms/tokens.ts";
import { seqlenMetrics } from "../balance/batches.ts";
import { dataMetrics, meanMaxMin } from "../metrics/data-metrics.ts";
import type { DataMetricsBatch } from "../metrics/data-metrics.ts";
import { rolloutProbsMetrics } from "../metrics/rollout-probs.ts";
import { throughputMetrics, timingMetrics } from "../metrics/timing-metrics.ts";
import { varianceProxyMetrics } from "../metrics/variance-proxy.ts";
import { extraInfoMetrics, rewardMetrics } from "../tracking/reward-metrics.ts";
import { joinColumns } from "../samples/join-columns.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";
import { tensorIn } from "../samples/columns.ts";
import type { LearnedRows, StepRecord } from "./step-record.ts";
import { sumOf } from "../values/sums.ts";

export interface StepMetricsContext {
  /** Divisor of verl's throughput, which is per GPU. */
  readonly gpus: number;
  /** How many samples the reward loop scores at a time. */
  readonly slots: number;
  readonly maxResponseLength: number;
  /** Undefined where prompts may have any length. */
  readonly maxPromptLength: number | undefined;
  /** Whether old log-probs are the policy's own, and not those of the rollout. */
  readonly hasOwnLogProbs: boolean;
}

export function stepMetrics(
  record: StepRecord,
  { gpus, slots, maxResponseLength, maxPromptLength, hasOwnLogProbs }: StepMetricsContext,
): Record<string, number> {
  const { samples, step } = record;
  const whole = wholeOf(record.parts);
  const reduced = record.metrics.reduced();
  return {
    "training/global_step": step,
    "training/epoch": samples[0]?.batch.epoch ?? 0,
    ...stalenessOf(record),
    ...reduced,
    ...dataMetrics({ ...dataOf(whole), maxResponseLength, maxPromptLength }),
    ...noiseOf(whole, reduced["actor/grad_norm"]),
    ...(hasOwnLogProbs ? mismatchOf(whole) : {}),
    // All of it is worked on by one process.
    ...seqlenMetrics(tokensOf(samples), [[...samples.keys()]]),
    ...timesOf(record, gpus),
    ...rewardMetrics(record.outcomes, {
      scoredInSpan: record.scoredHere,
      ...optional("spanMs", record.rewardSpanMs),
      exposedWaitMs: record.exposedWaitMs,
      slots,
    }),
    ...extraInfoMetrics(record.outcomes),
  };
}

/** Returns the times of the step so far, and the throughput of its tokens. */
export function timesOf({ clock, samples }: StepRecord, gpus: number): Record<string, number> {
  const timings = clock.timings();
  const promptTokens = sumOf(samples.map(({ sample }) => sample.rollout.promptIds.length));
  const responseTokens = sumOf(samples.map(({ sample }) => sample.rollout.responseIds.length));
  return {
    ...timingMetrics(timings, { promptTokens, responseTokens }),
    ...throughputMetrics(tokensOf(samples), timings, gpus),
  };
}

/** Returns the number of tokens of each row. */
function tokensOf(samples: readonly ScoredSample[]): number[] {
  return samples.map(
    ({ sample: { rollout } }) => rollout.promptIds.length + rollout.responseIds.length,
  );
}

/**
 * A rollout is of the weights of one moment: its newest tokens are as old as its oldest, and it
 * spans one version.
 */
function stalenessOf({ samples, step }: StepRecord): Record<string, number> {
  const ages = Float64Array.from(samples, ({ sample }) => step - 1 - sample.generatedAt);
  return {
    ...meanMaxMin(`${offPolicy}/trajectory_spans`, new Float64Array(samples.length).fill(1)),
    ...meanMaxMin(`${offPolicy}/trajectory_staleness`, ages),
    ...meanMaxMin(`${offPolicy}/trajectory_staleness_worst`, ages),
  };
}

const offPolicy = "training/off_policy";

interface WholeStep {
  readonly data: DataProto;
  readonly valid: readonly boolean[];
}

/** All parts as one batch. */
function wholeOf(parts: readonly LearnedRows[]): WholeStep {
  const data = joinColumns(
    parts.map((part) => part.data),
    0,
  );
  return { data, valid: parts.flatMap((part) => part.valid) };
}

/**
 * Returns verl's `variance_proxy/*` of valid rows, where the policy reports sums of squared
 * probabilities.
 *
 * @param gradNorm norm of the policy's updates, if there was one
 */
function noiseOf({ data, valid }: WholeStep, gradNorm: number | undefined): Record<string, number> {
  const rows = data.selectIdxs([...valid.keys()].filter((row) => valid[row]));
  if (rows.length === 0) return {};
  return varianceProxyMetrics(
    {
      advantages: tensorIn(rows, "advantages"),
      responseMask: tensorIn(rows, "response_mask"),
      ...optional("oldLogProbs", rows.batch?.["old_log_probs"]),
      ...optional("sumPiSquared", rows.batch?.["sum_pi_squared"]),
      ...optional("rolloutIsWeights", rows.batch?.["rollout_is_weights"]),
    },
    gradNorm,
  );
}

/**
 * Returns metrics of all responses, including those that are not valid or were rejected; none where
 * the rollout has no log-probabilities.
 */
function mismatchOf({ data }: WholeStep): Record<string, number> {
  const rolloutLogProbs = data.batch?.["rollout_log_probs"];
  if (rolloutLogProbs === undefined) return {};
  const [, width = 0] = rolloutLogProbs.shape;
  const responseMask = responseMaskOf(tensorIn(data, "attention_mask"), width);
  const oldLogProbs = tensorIn(data, "old_log_probs");
  return rolloutProbsMetrics({ rolloutLogProbs, oldLogProbs, responseMask });
}

function dataOf({ data: whole, valid }: WholeStep): DataMetricsBatch {
  const column = (name: string): Tensor => tensorIn(whole, name);
  const values = whole.batch?.["values"];
  return {
    tokenLevelScores: column("token_level_scores"),
    tokenLevelRewards: column("token_level_rewards"),
    advantages: column("advantages"),
    returns: column("returns"),
    responseMask: column("response_mask"),
    ...optional("values", values),
    attentionMask: column("attention_mask"),
    responseWidth: column("responses").shape[1] ?? 0,
    valid,
  };
}
