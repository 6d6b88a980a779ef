/**
 * The contract of a source of outcomes: one reward function with its own workers, several of them
 * with weights, a cascade, a judge that takes over at the cap, a log.
 *
 * Invariant of all: every sample that is given to `score` settles exactly once, also when the
 * source is closed or its functions are reloaded meanwhile.
 */

import type { RewardSample, ScoredBatch, ScoreLogEntry } from "@rayling/reward-manager-registry";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { SampleOutcome, ScoreFailure } from "../outcome.ts";

/** A group's scores after the user's postProcessScores, or why there are none. */
export type GroupScores =
  | { readonly valid: true; readonly scores: GroupScoreList }
  | { readonly valid: false; readonly error: ScoreFailure };

/** New functions that are loaded and not used yet: one of the two is called, once. */
export interface PreparedReload {
  /** Scores later samples by the new functions; pending ones finish on the old ones. */
  readonly commit: () => void;
  /** Drops the new functions. */
  readonly discard: () => Promise<void>;
}

/** Hears of the end of a sample before its promise settles: of one of the two, once. */
export interface ScoreEnds {
  /** Returns the outcome. */
  readonly settled: (outcome: SampleOutcome) => SampleOutcome;
  /** Nothing can be scored any more. */
  readonly rejected: (error: unknown) => void;
}

/** How a sample is asked for, beside its lane. */
export interface AskedFor {
  /**
   * Resolves when the outcome is stored: a function that waits for calls begins the next one then.
   * Used where one call is all that the sample needs: parts of a sample that waited for each
   * other's slots might wait for ever.
   */
  readonly kept?: Promise<void> | undefined;
  /** Aborted when nobody needs the outcome any more: see `giveUp`. */
  readonly signal?: AbortSignal | undefined;
}

/** Returns how the parts of a sample are asked for: none of them is what is stored. */
export function forPart(asked: AskedFor | undefined): AskedFor | undefined {
  return asked?.signal && { signal: asked.signal };
}

export interface RewardSource {
  /** The version of its functions, by their present texts and settings. */
  readonly version: string;
  /** Names for `ray.getActor`, in order. */
  readonly workerNames: readonly string[];
  readonly traits: ExecutorTraits;
  /** Samples that may be at work at a time. */
  readonly slots: number;
  /**
   * Whether a stream is to begin a sample of that lane now: it would be begun at once, or rejected,
   * or stand in line, beside other lanes or streams, for the lane's share of what becomes free.
   */
  hasRoomFor(lane: string): boolean;
  /**
   * Whether as many samples of that lane wait as may be scored at once: one more would only wait
   * behind them.
   */
  isCongestedFor(lane: string): boolean;
  /** Called whenever there may be room. Returns what ends it. */
  onRoom(listener: () => void): () => void;
  /**
   * Rejects only when nothing can be scored any more: ExecutorStartError,
   * RewardLoopWorkerLostError, RewardLoopClosedError; and with its signal's reason, if it was given
   * up.
   */
  score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome>;
  /**
   * `score` without a promise of their own for ends that only count, and never throw. Absent where
   * one outcome is made of others.
   */
  scoreFor?(
    ends: ScoreEnds,
    sample: RewardSample,
    lane: string,
    asked?: AskedFor,
  ): Promise<SampleOutcome>;
  /**
   * Scores all answers to one prompt, in their order: in one call where the function takes groups,
   * else each by itself. Rejects as score.
   */
  scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]>;
  /**
   * The signal was aborted: samples that were asked for with it are not begun any more, and calls
   * of theirs are aborted. Those that have no score then reject with its reason.
   */
  giveUp(signal: AbortSignal): void;
  /** Rejects as score. */
  postProcessScores(scores: GroupScoreList): Promise<GroupScores>;
  /**
   * Returns where its manager puts the scores of a batch (as the extra info `rmScores`), or why it
   * failed; undefined where no manager places them. Rejects as score.
   */
  assembleRmScores(batch: ScoredBatch): Promise<SampleOutcome | undefined>;
  /** Rejects as score. */
  log(entry: ScoreLogEntry): Promise<SampleOutcome>;
  /**
   * Loads the present modules of the functions. Rejects if they cannot be loaded; nothing has
   * changed then.
   */
  prepareReload(): Promise<PreparedReload>;
  /**
   * Ends all workers and executors; pending scores reject with RewardLoopClosedError. Idempotent.
   */
  close(): Promise<void>;
}
