/** One sample on its way through a worker: settled exactly once, whatever becomes of the executors it visits. */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome, ScoreFailure } from "../outcome.ts";

export interface Job {
  readonly sample: RewardSample;
  /** Starts of the score function that are over. */
  attempts: number;
  /**
   * Where it may run: "shared" with others; "alone" after a loss for which nobody could be named; "fresh" (alone, in a thread that has
   * run nothing else) if a thread was lost again.
   */
  place: "shared" | "alone" | "fresh";
  readonly settle: (outcome: SampleOutcome) => void;
  readonly reject: (error: unknown) => void;
}

export function settleInvalid(job: Job, error: ScoreFailure, latencyMs: number): void {
  job.attempts += 1;
  job.settle({ valid: false, error, latencyMs, attempts: job.attempts });
}
