/** DAPO's filter: a group whose rewards are all equal teaches nothing. */

import { extraInfoNumber } from "../samples/extra-info.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";

/** verl's names of the reward itself. */
const ofReward = new Set(["score", "seq_reward", "seq_final_reward"]);

/**
 * Whether not all valid rewards of the group are exactly the same, as verl compares them. One alone
 * has nothing to differ from, and is kept.
 *
 * @param metric a key of the extra info, or score. Throws TrainerStateError where a valid sample
 *   has no number there.
 */
export function differs(samples: readonly ScoredSample[], metric: string): boolean {
  if (samples.length === 1) return true;
  const values = new Set(samples.flatMap((sample) => valuesOf(sample, metric)));
  return values.size > 1;
}

function valuesOf(scored: ScoredSample, metric: string): number[] {
  const { outcome } = scored;
  if (!outcome.valid) return [];
  if (ofReward.has(metric)) return [outcome.rewardScore];
  return [extraInfoNumber(scored, metric, "algorithm.filterGroups.metric")];
}
