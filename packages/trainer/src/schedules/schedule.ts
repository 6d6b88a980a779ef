/**
 * In which order the parts of training run. Each schedule is one loop in one file; compare them by
 * diff.
 */

import type { ScheduleName } from "../settings/program-options.ts";
import type { Training } from "../step/training.ts";
import { miniBatchPipeline } from "./mini-batch-pipeline.ts";
import { oneStepOffPolicy } from "./one-step-off-policy.ts";
import { oneStepPipeline } from "./one-step-pipeline.ts";
import { streaming } from "./streaming.ts";
import { sync } from "./sync.ts";

/** Resolves when all steps are trained. */
export type Schedule = (training: Training) => Promise<void>;

/** verl's schedules by name. */
export const schedules: Readonly<Record<ScheduleName, Schedule>> = {
  sync,
  "one-step-off-policy": oneStepOffPolicy,
  "mini-batch-pipeline": miniBatchPipeline,
  "one-step-pipeline": oneStepPipeline,
  streaming,
};
