/** The part of Tracking that a training reports to. */

import type { Tracking } from "./tracking.ts";

/** Receives what a training reports: a Tracking, or an object of your own. */
export type StepTracker = Pick<Tracking, "log" | "phase" | "samples" | "generations" | "progress"> &
  // Without it, a warning of the training is one of the process.
  Partial<Pick<Tracking, "warning">>;

/** Ignores all reports. Used where `tracking` is not given. */
export const silentTracker: StepTracker = {
  log: () => undefined,
  phase: () => undefined,
  samples: () => undefined,
  generations: () => undefined,
  progress: () => undefined,
};
