/** A configured run as a whole, for `@rayling/trainer/run`: public names. */

export { coreMetricText, coreMetricValue } from "../metrics/core-metric-words.ts";
export { openPrompts } from "./prompt-files.ts";
export type { ConfiguredPrompts } from "./prompt-files.ts";
export { rehearseRun } from "./rehearse-run.ts";
export type { RehearseOptions } from "./rehearse-run.ts";
export type { RewardCount } from "../tracking/reward-metrics.ts";
export { runTraining } from "./run-training.ts";
export type { RunTrainingOptions, TrainingRun } from "./run-training.ts";
export { runFolder } from "../tracking/run-folder.ts";
export type { RunFolderOptions } from "../tracking/run-folder.ts";
export { trainerOptionsOf } from "./trainer-options.ts";
export type { TrainerSettingsOfConfig } from "./trainer-options.ts";
