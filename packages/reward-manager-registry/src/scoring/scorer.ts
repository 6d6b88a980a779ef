/**
 * The user's score function with what may come with it: an object of these, or a class that is made without arguments (verl's async_reward_agent recipe).
 * A bare function is a Scorer with computeScore alone, or, where it takes all answers to a prompt at once, with computeScores.
 */

import type { ComputeScore, ScoreInput, ScoreOutput } from "./compute-score.ts";

/** All answers to one prompt at once: as many scores, in their order. */
export type ComputeScores = (
  group: readonly ScoreInput[],
) => readonly ScoreOutput[] | PromiseLike<readonly ScoreOutput[]>;

export interface Scorer {
  /** Of one sample. Of a scorer of groups that is a group of one. */
  readonly computeScore: ComputeScore;
  /** Of all answers to one prompt: then this is what is asked. */
  readonly computeScores?: ComputeScores;
  /**
   * The scores of one group (the rollouts of one prompt), by their order in the batch; null in the place of one that has none. Returns as many: a number gives a score to one that had none,
   * null takes it from one that had; NaN leaves it where there was none (a mean of nothing).
   */
  readonly postProcessScores?: (scores: readonly (number | null)[]) => ProcessedScores;
  /** Told once for each request to an AsyncRewardAgent, when all of its samples have an outcome. */
  readonly log?: (entry: ScoreLogEntry) => void | PromiseLike<void>;
}

export type ProcessedScores = readonly (number | null)[] | PromiseLike<readonly (number | null)[]>;

/** Lists of equal length, in the order in which the samples were done. */
export interface ScoreLogEntry {
  /** ISO 8601, when each was done. */
  readonly timestamps: readonly string[];
  /** What the score function said of them: the parts of [score, query, response]; null where it said nothing. */
  readonly queries: readonly unknown[];
  readonly responses: readonly unknown[];
  /** null: invalid. */
  readonly results: readonly (number | null)[];
  /** From the request to the outcome, with all waiting. */
  readonly latenciesMs: readonly number[];
  readonly groupUids: readonly string[];
}
