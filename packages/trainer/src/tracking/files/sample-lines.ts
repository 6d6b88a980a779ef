/**
 * The samples of a step as lines: one line for all of their rewards, and one each for some samples,
 * spread evenly over the time of their ends. All samples of a long run would be too many to draw:
 * 5,120 in each of 105 steps.
 */

import { failureClassOf } from "@rayling/reward-loop";
import { present } from "@rayling/reward-manager-registry/values";
import type { SampleRecord } from "../tracking-logger.ts";
import { bucketOf } from "./latency-buckets.ts";
import type { FailureCount, RewardsLine, SampleLine } from "./run-lines.ts";

/** Lines for one step. */
const most = 256;

export function rewardsLineOf(step: number, samples: readonly SampleRecord[]): RewardsLine {
  const called = samples.filter(({ outcome }) => outcome.cached !== true && outcome.attempts > 0);
  const buckets = Map.groupBy(called, ({ outcome }) => bucketOf(outcome.latencyMs));
  return {
    type: "rewards",
    step,
    samples: samples.length,
    drawn: Math.min(most, samples.length),
    cost: samples.reduce((sum, { outcome }) => sum + (outcome.cost ?? 0), 0),
    latency: [...buckets]
      .map(([bucket, own]) => [bucket, own.length] as const)
      .toSorted(([a], [b]) => a - b),
    failures: failuresOf(samples),
  };
}

export function sampleLinesOf(
  step: number,
  samples: readonly SampleRecord[],
): readonly SampleLine[] {
  const sorted = samples.toSorted((a, b) => a.scoredMs - b.scoredMs);
  const count = Math.min(most, sorted.length);
  return Array.from({ length: count }, (_, index) => {
    const sample = present(sorted[Math.floor((index * sorted.length) / count)], `sample ${index}`);
    const { id, generatedMs, scoredMs, usedMs, outcome } = sample;
    return {
      type: "sample",
      step,
      id,
      generatedMs,
      startedMs: Math.min(scoredMs, Math.max(generatedMs, scoredMs - outcome.latencyMs)),
      scoredMs,
      usedMs: usedMs ?? null,
      valid: outcome.valid,
      attempts: outcome.attempts,
    };
  });
}

function failuresOf(samples: readonly SampleRecord[]): readonly FailureCount[] {
  const counts = new Map<string, FailureCount>();
  for (const { outcome } of samples) {
    if (outcome.valid) continue;
    const { code, message } = outcome.error;
    const failure = failureClassOf(outcome.error);
    const key = `${failure} ${code}`;
    const known = counts.get(key) ?? { class: failure, code, count: 0, example: message };
    counts.set(key, { ...known, count: known.count + 1 });
  }
  return [...counts.values()].toSorted((a, b) => b.count - a.count);
}
