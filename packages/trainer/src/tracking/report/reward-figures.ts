/** How long rewards took, and why some failed, of all steps together. */

import { bucketStartMs } from "../files/latency-buckets.ts";
import type { FailureCount, RewardsLine } from "../files/run-lines.ts";

/** How long the rewards of a run took. */
export interface RewardLatency {
  /** How many took from so many to less than so many ms, the shortest first. */
  readonly bars: readonly (readonly [fromMs: number, toMs: number, count: number])[];
  /** Within which time such a share of them was there, in ms. */
  readonly within: readonly (readonly [share: number, ms: number])[];
}

const shares = [0.5, 0.9, 0.95, 0.99, 0.999, 1];

/**
 * Two buckets to a bar, four bars to a doubling: what is written down is finer than what is drawn.
 */
export function rewardLatency(rewards: readonly RewardsLine[]): RewardLatency {
  const counts = latencies(rewards);
  const pairs = new Map<number, number>();
  for (const [bucket, count] of counts) {
    const pair = Math.floor(bucket / 2) * 2;
    pairs.set(pair, (pairs.get(pair) ?? 0) + count);
  }
  return {
    bars: [...pairs].map(([pair, count]) => [bucketStartMs(pair), bucketStartMs(pair + 2), count]),
    within:
      counts.length === 0
        ? []
        : shares.map((share) => [share, Number(upperEndMs(counts, share).toPrecision(3))]),
  };
}

/** Returns failures by class and code, the most frequent first. */
export function rewardFailures(rewards: readonly RewardsLine[]): readonly FailureCount[] {
  const counts = new Map<string, FailureCount>();
  for (const failure of rewards.flatMap(({ failures }) => failures)) {
    const key = `${failure.class} ${failure.code}`;
    const known = counts.get(key);
    counts.set(key, { ...(known ?? failure), count: (known?.count ?? 0) + failure.count });
  }
  return [...counts.values()].toSorted((a, b) => b.count - a.count);
}

/** Returns the latencies of all steps, the shortest first. */
function latencies(rewards: readonly RewardsLine[]): readonly (readonly [number, number])[] {
  const counts = new Map<number, number>();
  for (const [bucket, count] of rewards.flatMap(({ latency }) => latency)) {
    counts.set(bucket, (counts.get(bucket) ?? 0) + count);
  }
  return [...counts].toSorted(([a], [b]) => a - b);
}

/** Returns the upper end of the bucket in which this share of the latencies is reached. */
function upperEndMs(counts: readonly (readonly [number, number])[], share: number): number {
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  for (const [bucket, count] of counts) {
    seen += count;
    if (seen >= Math.ceil(share * total)) return bucketStartMs(bucket + 1);
  }
  return 0;
}
