/**
 * Rollouts of some prompts with their rewards on the way: whole groups, each of which is trained on
 * once.
 */

import type { DataProto } from "@rayling/data-proto";
import type { RewardRequest, SampleOutcome } from "@rayling/reward-loop";
import { present } from "@rayling/reward-manager-registry/values";
import type { Baselines } from "./baselines.ts";
import { trainedOutcome } from "./trained-outcome.ts";
import type { TrainingSample } from "./training-sample.ts";

/** Rollouts of some prompts, with their rewards on the way. */
export interface RolloutBatch {
  /** In groups of `n` neighbours. */
  readonly samples: readonly TrainingSample[];
  /** Samples of each prompt. */
  readonly n: number;
  /** Number of its prompts among the loader's batches. */
  readonly number: number;
  /** Number of the epoch of its prompts, from 0. */
  readonly epoch: number;
  /** Steps that were finished when its generation began. */
  readonly generatedAt: number;
  /** Request for the rewards of `samples`, row by row. */
  readonly rewards: RewardRequest;
  /** Greedy answers of remax, one for each group. */
  readonly baselines?: Baselines | undefined;
  /** When each rollout was finished, in ms since 1970. */
  readonly generatedMs: readonly number[];
  /** 1 for each row that an update has learned from or that was dropped, else 0. */
  readonly isUsed: Uint8Array;
  /** Failures of rows that a run before has trained on or dropped. */
  readonly earlierFailures?: EarlierFailures | undefined;
}

/** Failures of a batch by the codes of their errors. */
export interface EarlierFailures {
  /** Failures of samples. */
  readonly samples: Readonly<Record<string, number>>;
  /** Failures of greedy answers. */
  readonly baselines: Readonly<Record<string, number>>;
}

/** A batch with columns for all of its rows. */
export interface PreparedBatch extends RolloutBatch {
  /** Columns by verl's names, [rows, …]. */
  readonly data: DataProto;
}

/** A sample with the outcome of its score, and its place in its batch. */
export interface ScoredSample {
  /** The batch that it belongs to. */
  readonly batch: RolloutBatch;
  /** Number of its row in the batch, from 0. */
  readonly row: number;
  /** The prompt with its rollout. */
  readonly sample: TrainingSample;
  /** The score, or why there is none. */
  readonly outcome: SampleOutcome;
}

/** Whether nobody needed the score any more. */
export function isGivenUp(outcome: SampleOutcome): boolean {
  return !outcome.valid && outcome.error.code === "GIVEN_UP";
}

/** Returns the samples of rows that are scored. */
export function scoredSamplesOf(batch: RolloutBatch, rows: readonly number[]): ScoredSample[] {
  return rows.map((row) => {
    const sample = present(batch.samples[row], `row ${row}`);
    const scored = present(batch.rewards.outcomeOf(row), `the outcome of row ${row}`);
    return { batch, row, sample, outcome: trainedOutcome(sample, scored) };
  });
}
