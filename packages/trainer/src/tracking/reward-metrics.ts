/**
 * Metrics of a step's rewards, and of the time that they cost the trainer. The names are ours: verl
 * has none for them.
 */

import type { SampleOutcome } from "@rayling/reward-loop";
import { meanMaxMin } from "../metrics/data-metrics.ts";
import type { SampleRecord, StepMetrics, TrackingLogger } from "./tracking-logger.ts";
import { sumOf } from "../values/sums.ts";

/** Times of a step's rewards. Metrics of a time that is missing are missing, too. */
export interface RewardTimes {
  /**
   * From the first request of the step's rewards to their last outcome, where at least one was on
   * its way.
   */
  readonly spanMs?: number;
  /**
   * Outcomes that came within the span; a score known from an earlier run takes no slot. Default:
   * all.
   */
  readonly scoredInSpan?: readonly SampleOutcome[];
  /** How long the trainer did nothing but wait for them. */
  readonly exposedWaitMs?: number;
  /** How many may be scored at a time. */
  readonly slots?: number;
}

const shares = [
  ["p50", 0.5],
  ["p95", 0.95],
  ["p99", 0.99],
  ["max", 1],
] as const;

/**
 * Returns the metrics of a step's rewards.
 *
 * - `reward/latency_{mean,p50,p95,p99,max}_s`: time of the last attempt, for samples that were sent
 *   to a score function; quantiles by nearest rank.
 * - `reward/queue_wait_{...}_s`: time that these samples waited for a slot, for limits and between
 *   attempts.
 * - `reward/retry_rate`: share of these samples with more than one attempt of some function.
 * - `reward/invalid_rate`, `reward/cached_rate`: shares of all samples without a valid score, and
 *   with a score that was known before.
 * - `reward/cost`: cost of all samples, where prices are known.
 * - `reward/inflight`: samples that waited or were scored at a time, on average over the span.
 * - `reward/pool_util`: share of the slots' time in the span that last attempts took.
 * - `reward/exposed_wait_s`: time that the trainer only waited; `overlap_ratio`: share of the span
 *   in which it did other work.
 *
 * Without samples only the metrics of the times are there.
 */
export function rewardMetrics(
  outcomes: readonly SampleOutcome[],
  { spanMs, scoredInSpan = outcomes, exposedWaitMs, slots }: RewardTimes = {},
): StepMetrics {
  const metrics: Record<string, number> = {};
  const called = outcomes.filter(wasCalled);
  const latencies = called.map(({ latencyMs }) => latencyMs);
  const waits = called.map(({ waitedMs }) => waitedMs);
  Object.assign(metrics, secondsOf("queue_wait", waits), secondsOf("latency", latencies));
  if (called.length > 0) {
    metrics["reward/retry_rate"] = shareOf(called, wasTriedAgain);
  }
  if (outcomes.length > 0) {
    metrics["reward/invalid_rate"] = shareOf(outcomes, ({ valid }) => !valid);
    metrics["reward/cached_rate"] = shareOf(outcomes, ({ cached }) => cached === true);
  }
  const priced = outcomes.filter(({ cost }) => cost !== undefined);
  if (priced.length > 0) metrics["reward/cost"] = sumOf(priced.map(({ cost }) => cost ?? 0));
  if (spanMs !== undefined && spanMs > 0) {
    const inSpan = scoredInSpan.filter(wasCalled);
    const workMs = sumOf(inSpan.map(({ latencyMs }) => latencyMs));
    const waitedMs = sumOf(inSpan.map(({ waitedMs: ms }) => ms));
    metrics["reward/inflight"] = (workMs + waitedMs) / spanMs;
    if (slots !== undefined) metrics["reward/pool_util"] = workMs / (spanMs * slots);
  }
  if (exposedWaitMs !== undefined) {
    metrics["reward/exposed_wait_s"] = exposedWaitMs / 1000;
    if (spanMs !== undefined && spanMs > 0) {
      metrics["overlap_ratio"] = Math.min(1, Math.max(0, 1 - exposedWaitMs / spanMs));
    }
  }
  return metrics;
}

/**
 * Returns `reward_extra/{key}/{mean,max,min}` of the score functions' extra info (`format_reward`,
 * dapo's `overlong_reward`), for keys with numbers, over the valid outcomes that have one. true
 * counts 1, false 0.
 */
export function extraInfoMetrics(outcomes: readonly SampleOutcome[]): StepMetrics {
  const byKey = new Map<string, number[]>();
  for (const outcome of outcomes) {
    if (!outcome.valid) continue;
    for (const [key, value] of Object.entries(outcome.rewardExtraInfo)) {
      const number = typeof value === "boolean" ? Number(value) : value;
      if (typeof number !== "number" || !Number.isFinite(number)) continue;
      const values = byKey.get(key);
      if (values === undefined) byKey.set(key, [number]);
      else values.push(number);
    }
  }
  return Object.fromEntries(
    [...byKey].flatMap(([key, values]) =>
      Object.entries(meanMaxMin(`reward_extra/${key}`, Float64Array.from(values))),
    ),
  );
}

/** Rewards of answers that were scored for steps: trained on, filtered out or dropped. */
export interface RewardCount {
  /** Number of answers. The greedy ones that remax compares them with are no part of it. */
  readonly answers: number;
  /** How many of them have no valid score. */
  readonly failed: number;
}

/** Counts the answers of a run whose rewards are there. */
export class RewardCounts implements TrackingLogger {
  readonly name = "rewards";
  #answers = 0;
  #failed = 0;

  get count(): RewardCount {
    return { answers: this.#answers, failed: this.#failed };
  }

  samples(_step: number, samples: readonly SampleRecord[]): void {
    this.#answers += samples.length;
    this.#failed += samples.filter(({ outcome }) => !outcome.valid).length;
  }
}

function secondsOf(name: string, valuesMs: readonly number[]): StepMetrics {
  if (valuesMs.length === 0) return {};
  const sorted = valuesMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
  return {
    [`reward/${name}_mean_s`]: sumOf(sorted) / sorted.length / 1000,
    ...Object.fromEntries(
      shares.map(([quantile, share]) => [`reward/${name}_${quantile}_s`, at(share) / 1000]),
    ),
  };
}

function shareOf(
  outcomes: readonly SampleOutcome[],
  isOne: (outcome: SampleOutcome) => boolean,
): number {
  return outcomes.filter(isOne).length / outcomes.length;
}

function wasCalled({ cached, attempts }: SampleOutcome): boolean {
  return cached !== true && attempts > 0;
}

function wasTriedAgain({ attempts, components }: SampleOutcome): boolean {
  return components === undefined ? attempts > 1 : Object.values(components).some(wasTriedAgain);
}
