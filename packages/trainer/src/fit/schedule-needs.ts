/** Which parts of an algorithm a schedule can do. One place for the options of a trainer and for a configuration, which say it by their own names. Pure. */

import type { ScheduleName } from "./options.ts";

export interface ScheduledParts {
  readonly schedule: ScheduleName;
  readonly advEstimator: string;
  /** Importance weights that are divided by their mean over the batch. */
  readonly normalizesWeights: boolean;
  readonly adaptsMiniBatch: boolean;
  readonly stalenessLimit: number;
}

export interface Misfit {
  readonly part: "advEstimator" | "batchNormalize" | "adaptiveMiniBatch" | "stalenessLimit";
  /** Schedules that can do it, the nearest to the given one first. */
  readonly schedules: readonly ScheduleName[];
  readonly why: string;
}

/** They whiten over the batch, or count over it: of a part of it they would come to something else. */
const perBatch = ["gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gdpo", "gpg"];

/** They train on parts of a batch as their rewards come. */
const splitting: readonly ScheduleName[] = [
  "mini-batch-pipeline",
  "one-step-pipeline",
  "streaming",
];

/** The first part that this schedule cannot do. */
export function misfitOf(parts: ScheduledParts): Misfit | undefined {
  const { schedule, advEstimator, normalizesWeights, adaptsMiniBatch, stalenessLimit } = parts;
  const splits = splitting.includes(schedule);
  if (stalenessLimit > 0 && schedule !== "streaming") {
    return {
      part: "stalenessLimit",
      schedules: ["streaming"],
      why: "which alone generates further ahead than others, whose rollouts are as old as they are",
    };
  }
  const isPerBatch = perBatch.includes(advEstimator);
  if ((isPerBatch || normalizesWeights) && splits) {
    const whole: readonly ScheduleName[] = ["one-step-off-policy", "sync"];
    return {
      part: isPerBatch ? "advEstimator" : "batchNormalize",
      schedules: schedule === "mini-batch-pipeline" ? whole.toReversed() : whole,
      why: "which train on all of a batch at once",
    };
  }
  if (adaptsMiniBatch && !splits) {
    const nearest = schedule === "sync" ? "mini-batch-pipeline" : "one-step-pipeline";
    return {
      part: "adaptiveMiniBatch",
      schedules: [nearest, ...splitting.filter((name) => name !== nearest)],
      why: "which train on parts of a batch",
    };
  }
  return undefined;
}

/** Without weights there is nothing to divide. */
export function isBatchNormalized(correction: {
  readonly rolloutIs?: string | null | undefined;
  readonly rolloutIsBatchNormalize?: boolean | undefined;
}): boolean {
  return (correction.rolloutIs ?? null) !== null && correction.rolloutIsBatchNormalize === true;
}
