/** The part of Tracking that a training reports to. */

import type { Tracking } from "./tracking.ts";

/** Receives what a training reports: a Tracking, or an object of your own. */
export type StepTracker = Pick<Tracking, "log" | "phase" | "samples" | "generations" | "progress">;

/** Ignores all reports. Used where `tracking` is not given. */
export const silentTracker: StepTracker = {
  log: () => undefined,
  phase: () => undefined,
  samples: () => undefined,
  generations: () => undefined,
  progress: () => undefined,
};
