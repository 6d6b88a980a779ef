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
  readonly rewardRouterToken?: string | undefined;
  readonly rewardModelTokenizer?: Tokenizer | undefined;
  /** The manager's own settings (verl `reward.reward_kwargs` and the like). */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
}

export interface RewardManagerClass {
  new (args: RewardManagerArguments): RewardManager;
  readonly name: string;
  /** Awaited once per class and registry, before its first instance (verl `init_class`); a failure is retried at the next one. */
  initClass?(args: RewardManagerArguments): void | PromiseLike<void>;
  /**
   * Where the scores of a batch stand (verl `assemble_rm_scores`): `width` finite numbers for each row, one row behind the other. What it gives for rows without a score is not used.
   * Default: each score at the last valid token of its row, zeros elsewhere.
   */
  assembleRmScores?(batch: ScoredBatch): ArrayLike<number> | PromiseLike<ArrayLike<number>>;
}

/** A batch whose samples are scored. */
export interface ScoredBatch {
  /** Columns of a row: tokens that a response may have. */
  readonly width: number;
  /** Valid tokens of each response. */
  readonly lengths: readonly number[];
  /** null: it is invalid. */
  readonly scores: readonly (number | null)[];
  /** What each score function said besides; null where the score is invalid. */
  readonly rewardExtraInfos: readonly (Readonly<Record<string, unknown>> | null)[];
  /** Token ids of each response, without padding; none where responses are texts. */
  readonly responses?: readonly (readonly number[])[];
}
