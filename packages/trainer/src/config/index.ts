/**
 * verl's configuration of a training, for `@rayling/trainer/config`: by itself, because what reads
 * it takes time to load.
 */

export { TrainerConfigError } from "../errors.ts";
export type { ConfigErrorPlace } from "../errors.ts";
export { expectedStepSeconds, rewardMakespan } from "./expected-time.ts";
export type { RewardLoad, StepTiming } from "./expected-time.ts";
export { presetNames } from "./presets.ts";
export { printConfig } from "./print-config.ts";
export { loadTrainerConfig, readTrainerConfig } from "./read-config.ts";
export type { LoadConfigOptions } from "./read-config.ts";
export type {
  ActorConfig,
  AlgorithmConfig,
  CriticConfig,
  DataConfig,
  ExpectedSeconds,
  OptimConfig,
  RaylingConfig,
  RolloutConfig,
  RunConfig,
  TrainerConfig,
} from "./options/index.ts";
export { epochsOf } from "./options/run-length.ts";
export type { RunLength } from "./options/run-length.ts";
export type { PromptShapes } from "./prompts-text.ts";
export { planText, trainingPlanOf } from "./training-plan.ts";
export { drawsValidation } from "./options/validation-draws.ts";
export type { DatasetSizes, ExpectedRun, TrainingPlan } from "./training-plan.ts";
