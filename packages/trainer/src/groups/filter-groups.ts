/** DAPO's filter: a group whose rewards are all equal teaches nothing. */

import { extraInfoNumber, numberIn } from "../samples/extra-info.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";

/** verl's name of the reward itself (`FILTER_GROUPS_REWARD_METRIC`). */
const theReward = "reward";

/** Names that older recipes of verl have for the reward, where no extra info has a number so. */
const ofReward = new Set(["score", "seq_reward", "seq_final_reward"]);

/**
 * Whether not all valid rewards of the group are exactly the same, as verl compares them. One alone
 * has nothing to differ from, and is kept.
 *
 * @param metric a key of the extra info, or "reward". Also score, seq_reward and seq_final_reward
 *   are the reward, unless the extra info of the group's valid samples has numbers there, as verl
 *   takes them. Throws TrainerStateError where a valid sample has no number of another name.
 */
export function differs(samples: readonly ScoredSample[], metric: string): boolean {
  if (samples.length === 1) return true;
  const values = new Set(valuesOf(samples, metric));
  return values.size > 1;
}

function valuesOf(samples: readonly ScoredSample[], metric: string): number[] {
  const valid = samples.filter(({ outcome }) => outcome.valid);
  // One reward among numbers of the extra info would be compared with something else.
  const lacksNumber = (): boolean => valid.some((one) => numberIn(one, metric) === undefined);
  if (metric === theReward || (ofReward.has(metric) && lacksNumber())) {
    return valid.flatMap(({ outcome }) => (outcome.valid ? [outcome.rewardScore] : []));
  }
  return valid.map((one) => extraInfoNumber(one, metric, "algorithm.filterGroups.metric"));
}
