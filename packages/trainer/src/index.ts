/** Public names of @rayling/trainer. Nothing happens on import. */

export type {
  AdvantageBatch,
  AdvantageEstimator,
  Advantages,
  AdvantageSettings,
} from "./algorithms/advantages/batch.ts";
export { computeAdvantage } from "./algorithms/advantages/compute.ts";
export type {
  AdvantageColumns,
  ComputeAdvantageParts,
  ComputeAdvantageSettings,
  ComputedAdvantage,
} from "./algorithms/advantages/compute.ts";
export { drawRows, pfPpoWeights } from "./algorithms/advantages/pf-ppo.ts";
export type { PfPpoBatch, PfPpoSettings } from "./algorithms/advantages/pf-ppo.ts";
export { createAdvantageRegistry } from "./algorithms/advantages/advantage-registry.ts";
export type { AdvantageRegistry } from "./algorithms/advantages/advantage-registry.ts";
export { aggLoss } from "./algorithms/losses/aggregation.ts";
export type { Aggregated, GlobalBatchInfo, LossAggMode } from "./algorithms/losses/aggregation.ts";
export type {
  PolicyLoss,
  PolicyLossBatch,
  PolicyLossResult,
  PolicyLossSettings,
} from "./algorithms/losses/policy-loss.ts";
export { createPolicyLossRegistry } from "./algorithms/losses/policy-loss-registry.ts";
export type { PolicyLossRegistry } from "./algorithms/losses/policy-loss-registry.ts";
export { decoupled, reinforce } from "./algorithms/losses/tokenwise.ts";
export type { DecoupledBatch, DecoupledSettings } from "./algorithms/losses/tokenwise.ts";
export { entropyLoss, valueLoss } from "./algorithms/losses/value-loss.ts";
export type {
  EntropyLossResult,
  ValueLossBatch,
  ValueLossResult,
  ValueLossSettings,
} from "./algorithms/losses/value-loss.ts";
export { applyKlPenalty, createKlController, klPenalty } from "./algorithms/kl.ts";
export type {
  KlController,
  KlControllerSettings,
  KlInReward,
  KlInRewardBatch,
  KlPenalty,
  KlPenaltyKind,
} from "./algorithms/kl.ts";
export { learningRateSchedule, warmupSteps } from "./algorithms/learning-rate.ts";
export type { LearningRateSchedule, LearningRateSettings } from "./algorithms/learning-rate.ts";
export {
  entropyFromLogits,
  logProbsFromLogits,
  sumPiSquaredFromLogits,
} from "./algorithms/logits.ts";
export type { OfLogits } from "./algorithms/logits.ts";
export {
  fitRows,
  packingOf,
  padRows,
  responseMaskByEos,
  responseMaskOf,
  unpaddedRows,
} from "./algorithms/tokens.ts";
export type { FitOptions, FittedRows, Packing, PadOptions } from "./algorithms/tokens.ts";
export type { Matrix } from "./algorithms/matrix.ts";
export type { GroupId } from "./algorithms/groups.ts";
export {
  bypassed,
  correctRollouts,
  rolloutCorrectionMetrics,
} from "./algorithms/rollout-correction/rollout-correction.ts";
export type {
  RolloutCorrection,
  RolloutCorrectionBatch,
} from "./algorithms/rollout-correction/rollout-correction.ts";
export { rolloutCorrectionPreset } from "./algorithms/rollout-correction/correction-settings.ts";
export type {
  RolloutCorrectionPreset,
  RolloutCorrectionSettings,
} from "./algorithms/rollout-correction/correction-settings.ts";
export { balanceBatch, microBatches, seqlenMetrics, workloadOf } from "./balance/batches.ts";
export type { Balance, BalanceOptions, MicroBatchOptions } from "./balance/batches.ts";
export { balancedPartitions, greedyPartition, karmarkarKarp } from "./balance/partitions.ts";
export type { PartitionOptions } from "./balance/partitions.ts";
export { dataMetrics, lengthsOf } from "./metrics/data-metrics.ts";
export type { DataMetricsBatch, Lengths, LengthsBatch } from "./metrics/data-metrics.ts";
export { aggregate, aggregateDp, reduceMetrics } from "./metrics/reduce.ts";
export type { Aggregation, Metric } from "./metrics/reduce.ts";
export { rolloutProbsMetrics } from "./metrics/rollout-probs.ts";
export type { RolloutProbsBatch } from "./metrics/rollout-probs.ts";
export { specDecodeMetrics } from "./metrics/spec-decode.ts";
export type { SpecDecodeBatch } from "./metrics/spec-decode.ts";
export { throughputMetrics, timingMetrics } from "./metrics/timing-metrics.ts";
export type { Timings, TokenCounts } from "./metrics/timing-metrics.ts";
export { processValidationMetrics, validationMetrics } from "./metrics/validation-metrics.ts";
export type {
  ValidationBySource,
  ValidationMetricsOptions,
  ValidationResults,
} from "./metrics/validation-metrics.ts";
export { varianceProxyMetrics } from "./metrics/variance-proxy.ts";
export type { VarianceProxyBatch } from "./metrics/variance-proxy.ts";
export type { Checkpoint } from "./checkpoint/checkpoint.ts";
export { resumeCheckpoint, saveCheckpoint } from "./checkpoint/checkpoint-folder.ts";
export type {
  Resumed,
  ResumeOptions,
  SaveCheckpointOptions,
} from "./checkpoint/checkpoint-folder.ts";
export { gsm8kRow, prepareGsm8k } from "./data/gsm8k.ts";
export type { Gsm8kOptions, Gsm8kRow } from "./data/gsm8k.ts";
export { PromptDataset } from "./data/prompt-dataset.ts";
export type {
  CountedShape,
  PromptDatasetOptions,
  PromptLengthOptions,
} from "./data/prompt-dataset.ts";
export type { PromptLengths, Truncation } from "./data/prompt-lengths.ts";
export { PromptLoader } from "./data/prompt-loader.ts";
export type { LoaderPosition, PromptBatch, PromptLoaderOptions } from "./data/prompt-loader.ts";
export type { ColumnNames, PromptRow, RowShape } from "./data/prompt-row.ts";
export {
  CheckpointError,
  DatasetError,
  FolderBusyError,
  TrackingError,
  TrainerInputError,
  TrainerStateError,
} from "./errors.ts";
export type {
  CheckpointErrorCode,
  RowPlace,
  TrackingErrorCode,
  TrainerStateErrorCode,
} from "./errors.ts";
export { OpenAIPolicy, OpenAIPolicyActor } from "./policy/openai/openai-policy.ts";
export type { OpenAIPolicySettings, UpdaterSpec } from "./policy/openai/openai-settings.ts";
export type { PolicyUpdater } from "./policy/openai/updater.ts";
export type {
  Account,
  ChatMessage,
  ContentPart,
  Critic,
  CriticHandle,
  CriticUpdate,
  GenerateRequest,
  LogProbs,
  Policy,
  PolicyHandle,
  PolicyInfo,
  PolicyState,
  PolicyUpdate,
  Rollout,
  TokenRows,
  UpdateMetrics,
} from "./policy/policy.ts";
export { arithmeticAlphabet, arithmeticTask } from "./tasks/arithmetic.ts";
export type { ArithmeticOptions, ArithmeticRow, ArithmeticTask } from "./tasks/arithmetic.ts";
export { loggerNames } from "./config/verl/logger-names.ts";
export { ConsoleLogger } from "./tracking/console/console-logger.ts";
export type { ConsoleLoggerOptions } from "./tracking/console/console-logger.ts";
export { readRun } from "./tracking/files/run-files.ts";
export type { RunRecord } from "./tracking/files/run-files.ts";
export type {
  FailureCount,
  GenerationLine,
  MetricsLine,
  PhaseLine,
  RewardsLine,
  SampleLine,
  StartLine,
  WarningLine,
} from "./tracking/files/run-lines.ts";
export type { LoggerName } from "./tracking/loggers.ts";
export { MlflowLogger } from "./tracking/mlflow/mlflow-logger.ts";
export type { MlflowLoggerOptions } from "./tracking/mlflow/mlflow-logger.ts";
export { PrometheusLogger } from "./tracking/prometheus-logger.ts";
export { writeReport } from "./tracking/report/report.ts";
export type { ReportOptions } from "./tracking/report/report.ts";
export { rewardMetrics } from "./tracking/reward-metrics.ts";
export type { RewardTimes } from "./tracking/reward-metrics.ts";
export { dumpRollouts } from "./tracking/rollout-dump.ts";
export type { RolloutDump } from "./tracking/rollout-dump.ts";
export { TensorboardLogger } from "./tracking/tensorboard/tensorboard-logger.ts";
export type { TensorboardLoggerOptions } from "./tracking/tensorboard/tensorboard-logger.ts";
export { traceOf, writeTrace } from "./tracking/trace/trace.ts";
export type { TraceOptions, TrainingTraceEvent } from "./tracking/trace/trace.ts";
export type { StepTracker } from "./tracking/step-tracker.ts";
export { Tracking } from "./tracking/tracking.ts";
export type { TrackingOptions } from "./tracking/tracking.ts";
export type {
  Generation,
  PhaseRecord,
  RunEnd,
  SampleRecord,
  StepMetrics,
  TrackedRun,
  TrackingConfig,
  TrackingLogger,
  TrainingProgress,
} from "./tracking/tracking-logger.ts";
export { TrackioLogger } from "./tracking/trackio/trackio-logger.ts";
export type { TrackioLoggerOptions } from "./tracking/trackio/trackio-logger.ts";
export { WandbLogger } from "./tracking/wandb/wandb-logger.ts";
export type { WandbLoggerOptions } from "./tracking/wandb/wandb-logger.ts";
export { PPOTrainer } from "./ppo-trainer.ts";
export type { PPOTrainerOptions, TrainingReport } from "./ppo-trainer.ts";
export { GroupPool } from "./groups/group-pool.ts";
export type { GroupPoolSettings } from "./groups/group-pool.ts";
export type {
  ActorOptions,
  AlgorithmOptions,
  CheckpointOptions,
  CriticOptions,
  FilterGroups,
  RewardArrangement,
  RolloutOptions,
  RunOptions,
  ScheduleName,
  StalenessOptions,
  TrainingOptions,
  ValidationOptions,
} from "./settings/program-options.ts";
export type {
  EarlierFailures,
  PreparedBatch,
  RolloutBatch,
  ScoredSample,
} from "./samples/rollout-batch.ts";
export type { TrainingSample } from "./samples/training-sample.ts";
export { Training } from "./step/training.ts";
export type { TrainingParts } from "./step/training.ts";
export type { FirstValidation, TrainingStart } from "./rollouts/training-state.ts";
export type { TrainingSettings } from "./settings/training-settings.ts";
export {
  TimedCritic,
  TimedCriticActor,
  TimedPolicy,
  TimedPolicyActor,
} from "./policy/timed-policy.ts";
export type { TimedPolicySettings } from "./policy/timed-policy.ts";
export { schedules } from "./schedules/schedule.ts";
export type { Schedule } from "./schedules/schedule.ts";
