/** Counts the answers of a run whose rewards are there, and those without a score. */

import type { SampleRecord, TrackingLogger } from "../tracking-logger.ts";

/** Rewards of answers that were scored for steps: trained on, filtered out or dropped. */
export interface RewardCount {
  /** Number of answers. The greedy ones that remax compares them with are no part of it. */
  readonly answers: number;
  /** How many of them have no valid score. */
  readonly failed: number;
}

export class RewardCounts implements TrackingLogger {
  readonly name = "rewards";
  #answers = 0;
  #failed = 0;

  get count(): RewardCount {
    return { answers: this.#answers, failed: this.#failed };
  }

  samples(_step: number, samples: readonly SampleRecord[]): void {
    this.#answers += samples.length;
    this.#failed += samples.filter(({ outcome }) => !outcome.valid).length;
  }
}
