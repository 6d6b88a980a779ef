/**
 * The contract of a reward manager: how ONE sample becomes a score, with whatever surrounds the score function
 * (extra fields, penalties, limits, another process). Batches, actors and threads are the business of reward-loop.
 */

import type { ComputeScore } from "../scoring/compute-score.ts";
import type { RewardResult } from "../scoring/reward-result.ts";
import type { RewardSample, Tokenizer } from "../scoring/sample.ts";

export interface RewardManager {
  runSingle(sample: RewardSample): Promise<RewardResult>;
}

/** The few values that verl's managers read out of the whole config tree. */
export interface RewardManagerArguments {
  /** Default: defaultComputeScore. */
  readonly computeScore?: ComputeScore | undefined;
  readonly tokenizer?: Tokenizer | undefined;
  readonly rewardRouterAddress?: string | undefined;
  readonly rewardModelTokenizer?: Tokenizer | undefined;
  /** The manager's own settings (verl `reward.reward_kwargs` and the like). */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
}

export interface RewardManagerClass {
  new (args: RewardManagerArguments): RewardManager;
  readonly name: string;
  /** Awaited once per class and registry, before its first instance (verl `init_class`); a failure is retried at the next one. */
  initClass?(args: RewardManagerArguments): void | PromiseLike<void>;
}
