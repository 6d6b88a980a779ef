/** A tracker that tells nobody: of a training that nobody watches, or that is watched in part. */

import type { StepTracker } from "./options.ts";

export const silentTracker: StepTracker = {
  log: () => undefined,
  phase: () => undefined,
  samples: () => undefined,
  generations: () => undefined,
  progress: () => undefined,
};
