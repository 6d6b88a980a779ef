/** Rewards of several parts, of which gdpo makes its advantages. */

import { wholeStdOf } from "../algorithms/statistics.ts";
import { meanMaxMin } from "../metrics/data-metrics.ts";
import { extraInfoNumber } from "../samples/extra-info.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";

export type RewardComponents = Readonly<Record<string, readonly number[]>>;

/**
 * Returns components from extra info, by key and row; 0 for invalid rows. Throws TrainerStateError
 * where a valid row lacks one.
 */
export function componentsOf(
  samples: readonly ScoredSample[],
  valid: readonly boolean[],
  keys: readonly string[] | undefined,
): RewardComponents | undefined {
  if (keys === undefined) return undefined;
  const ofKey = (key: string): number[] =>
    samples.map((sample, row) =>
      valid[row] === true ? extraInfoNumber(sample, key, "algorithm.gdpoRewardKeys") : 0,
    );
  return Object.fromEntries(keys.map((key) => [key, ofKey(key)]));
}

/** verl `gdpo/{key}/*`, of valid rows. */
export function componentMetrics(
  components: RewardComponents = {},
  valid: readonly boolean[],
): Record<string, number> {
  const metrics: Record<string, number> = {};
  for (const [key, all] of Object.entries(components)) {
    const values = Float64Array.from(all.filter((_, row) => valid[row]));
    if (values.length === 0) continue;
    Object.assign(metrics, meanMaxMin(`gdpo/${key}`, values));
    metrics[`gdpo/${key}/std`] = wholeStdOf(values);
  }
  return metrics;
}
