/** Counts of groups that are not trained: too old, without a difference, or without a score. */

import { TrainerStateError } from "../errors.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";

/** Groups that were left out since the last report, and their samples. */
export interface LeftOutGroups {
  /** Groups that were too old. */
  readonly dropped: number;
  /** Groups with a score that the filter left out. */
  readonly filtered: number;
  /** Groups without a valid score that the filter left out: they say nothing about the task. */
  readonly unscored: number;
  /** Scored samples of these groups: of one that was dropped, those that were scored by then. */
  readonly samples: readonly ScoredSample[];
}

export class LeftOutTally {
  #dropped = 0;
  #filtered = 0;
  #unscored = 0;
  #samples: ScoredSample[] = [];
  #lacksFiltered = false;
  #filteredInRow = 0;
  #unscoredRows = 0;

  /** Whether groups were filtered out since the last replacement began. */
  get lacksFiltered(): boolean {
    return this.#lacksFiltered;
  }

  /** Scored groups that the filter left out since it last kept one. */
  get filteredInRow(): number {
    return this.#filteredInRow;
  }

  /** The filter kept a group. */
  kept(): void {
    this.#filteredInRow = 0;
  }

  /** Groups that replace filtered ones are generated now. */
  replaced(): void {
    this.#lacksFiltered = false;
  }

  filtered(samples: readonly ScoredSample[], isScored: boolean): void {
    if (isScored) {
      this.#filtered += 1;
      this.#filteredInRow += 1;
    } else this.#unscored += 1;
    this.#lacksFiltered = true;
    this.untrained(samples);
  }

  dropped(groups: number): void {
    this.#dropped += groups;
  }

  untrained(samples: readonly ScoredSample[]): void {
    this.#samples.push(...samples);
  }

  /**
   * Counts a whole batch. Throws TrainerStateError after `most` rows in sequence without a valid
   * score: while a judge is away, the filter would have groups generated for ever.
   *
   * @param failure why the first sample without a score has none
   */
  batch(
    { rows, hasScore, failure }: { rows: number; hasScore: boolean; failure: string | undefined },
    most: number,
  ): void {
    this.#unscoredRows = hasScore ? 0 : this.#unscoredRows + rows;
    if (this.#unscoredRows < most) return;
    throw new TrainerStateError(
      "NO_SCORES",
      `none of the last ${this.#unscoredRows} samples has a valid score, so that algorithm.filterGroups would generate others for ever; the first is ${failure ?? "unknown"}`,
    );
  }

  /** Returns the groups that were left out since the last call. */
  take(): LeftOutGroups {
    const groups: LeftOutGroups = {
      dropped: this.#dropped,
      filtered: this.#filtered,
      unscored: this.#unscored,
      samples: this.#samples,
    };
    this.#dropped = 0;
    this.#filtered = 0;
    this.#unscored = 0;
    this.#samples = [];
    return groups;
  }
}
