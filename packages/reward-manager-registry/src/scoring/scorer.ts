/**
 * The user's score function with its hooks: an object of these, or a class that is constructed
 * without arguments (verl's async_reward_agent recipe). A bare function is a Scorer with only
 * computeScore, or, if it takes all answers to a prompt at once, with computeScores.
 */

import type { ComputeScore, ScoreInput, ScoreOutput } from "./compute-score.ts";

/** Scores all answers to one prompt at once: as many scores, in order. */
export type ComputeScores = (
  group: readonly ScoreInput[],
) => readonly ScoreOutput[] | PromiseLike<readonly ScoreOutput[]>;

/** A score function, with the hooks of its module. */
export interface Scorer {
  /** Scores one sample; a scorer of groups gets a group of one. */
  readonly computeScore: ComputeScore;
  /** Scores all answers to one prompt; if present, it is used. */
  readonly computeScores?: ComputeScores;
  /**
   * Processes the scores of one group (the rollouts of one prompt), in the order of the batch; null
   * for a missing one. Returns as many: a number replaces a missing score, null removes a score,
   * and NaN leaves a missing one missing (a mean of nothing).
   */
  readonly postProcessScores?: (scores: readonly (number | null)[]) => ProcessedScores;
  /**
   * Called once for each request to an AsyncRewardAgent, when all of its samples have an outcome.
   */
  readonly log?: (entry: ScoreLogEntry) => void | PromiseLike<void>;
}

/** The scores that `postProcessScores` returns, or a promise of them. */
export type ProcessedScores = readonly (number | null)[] | PromiseLike<readonly (number | null)[]>;

/** Lists of equal length, in the order in which the samples finished. */
export interface ScoreLogEntry {
  /** ISO 8601, the time when each finished. */
  readonly timestamps: readonly string[];
  /** Queries of [score, query, response]; null where the score function gave none. */
  readonly queries: readonly unknown[];
  /** Responses of [score, query, response]; null where the score function gave none. */
  readonly responses: readonly unknown[];
  /** Scores; null for an invalid one. */
  readonly results: readonly (number | null)[];
  /** The time from the request to the outcome, including waits. */
  readonly latenciesMs: readonly number[];
  /** The group of each sample. */
  readonly groupUids: readonly string[];
}
