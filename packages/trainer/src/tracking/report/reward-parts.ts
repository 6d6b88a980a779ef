/** How long rewards took, and why some failed, of all steps together. */

import { barPlot, numberText, table } from "@rayling/reward-loop/page";
import { bucketStartMs } from "../files/latency-buckets.ts";
import type { FailureCount, RewardsLine } from "../files/run-lines.ts";

/**
 * Two buckets to a bar, four bars to a doubling: what is written down is finer than what is drawn.
 */
export function latencyPlot(rewards: readonly RewardsLine[]): string {
  const counts = new Map<number, number>();
  for (const [bucket, count] of latencies(rewards)) {
    const pair = Math.floor(bucket / 2) * 2;
    counts.set(pair, (counts.get(pair) ?? 0) + count);
  }
  return barPlot({
    title: "Latency",
    xLabel: "s",
    yLabel: "rewards",
    isLog: true,
    bars: [...counts].map(([pair, value]) => {
      const [from, to] = [bucketStartMs(pair) / 1000, bucketStartMs(pair + 2) / 1000];
      return { from, to, value, text: `${value} from ${numberText(from)} to ${numberText(to)} s` };
    }),
  });
}

/** Returns an empty text without latencies. */
export function latencyTable(rewards: readonly RewardsLine[]): string {
  const counts = latencies(rewards);
  if (counts.length === 0) return "";
  const shares = [0.5, 0.9, 0.95, 0.99, 0.999, 1];
  return table(
    ["share of the rewards", "within"],
    shares.map((share) => [
      share === 1 ? "all" : `${numberText(100 * share)} %`,
      `${numberText(Number((upperEndMs(counts, share) / 1000).toPrecision(3)))} s`,
    ]),
  );
}

export function failuresTable(rewards: readonly RewardsLine[]): string {
  const counts = new Map<string, FailureCount>();
  for (const failure of rewards.flatMap(({ failures }) => failures)) {
    const key = `${failure.class} ${failure.code}`;
    const known = counts.get(key);
    counts.set(key, { ...(known ?? failure), count: (known?.count ?? 0) + failure.count });
  }
  const rows = [...counts.values()].toSorted((a, b) => b.count - a.count);
  if (rows.length === 0) return "";
  return table(
    ["count", "class", "code", "for example"],
    rows.map((one) => [numberText(one.count), one.class, one.code, one.example]),
  );
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
