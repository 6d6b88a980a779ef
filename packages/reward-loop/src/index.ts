/** Public names of @rayling/reward-loop. */

export { AsyncRewardAgent } from "./agent/async-reward-agent.ts";
export type { RewardChunk } from "./agent/async-reward-agent.ts";
export type { TakeRange } from "./agent/group-takes.ts";
export { RewardRequest } from "./agent/reward-request.ts";
export type { RewardRequestOptions } from "./agent/reward-request.ts";
export type { EarlierRows } from "./manager/failures.ts";
export { calibrationAt, separationOf } from "./agreement/calibration.ts";
export type {
  Calibration,
  ConfusionMatrix,
  LabelledScore,
  Separation,
} from "./agreement/calibration.ts";
export { judgesReport } from "./agreement/judges-report.ts";
export type {
  JudgeAgreement,
  JudgeCalibration,
  JudgeDisagreement,
  JudgeFigures,
  JudgeLog,
  JudgesReport,
  JudgesReportOptions,
} from "./agreement/judges-report.ts";
export { cohenKappa, quadraticKappa } from "./agreement/kappa.ts";
export type { ScorePair } from "./agreement/kappa.ts";
export type { SampleLabel } from "./agreement/matched-scores.ts";
export { agreementOf } from "./agreement/pair-agreement.ts";
export type { PairAgreement } from "./agreement/pair-agreement.ts";
export { RewardLoopManager } from "./manager/reward-loop-manager.ts";
export type { ScoreOptions } from "./manager/reward-loop-manager.ts";
export type { ScoreStreamOptions } from "./manager/stream/score-stream.ts";
export { mostHeldByDefault as mostHeldInStream } from "./manager/stream/stream-groups.ts";
export type { StreamGroups } from "./manager/stream/stream-groups.ts";
export type { RewardProgress } from "./manager/stream/score-progress.ts";
export type { EndpointState } from "./pipeline/shared-limiter.ts";
export { RewardModelManager } from "./reward-model/reward-model-manager.ts";
export type { RewardModelState } from "./reward-model/reward-model-manager.ts";
export { RewardModels } from "./reward-model/reward-models.ts";
export type { ModelPlace } from "./reward-model/model-options.ts";
export type { RewardModelOptions } from "./options/defaults/reward-model.ts";
export { RewardModelRouter } from "./reward-model/router.ts";
export type { RouterOptions } from "./options/defaults/reward-model.ts";
export type { LaunchOptions } from "./options/defaults/reward-model.ts";
export type { RouterStrategy } from "./options/defaults/reward-model.ts";
export type { UpstreamState } from "./reward-model/upstreams.ts";
export { extractReward } from "./batch/reward-columns.ts";
export type { ExtractedReward } from "./batch/reward-columns.ts";
export { RewardLoopWorker, RewardLoopWorkerActor } from "./worker/reward-loop-worker.ts";
export type {
  ComputeScoreKwargs,
  ExecutorSettings,
  PipelineSettings,
  RewardFunctionOptions,
  RewardModelUse,
} from "./settings/settings.ts";
export type {
  CascadeStage,
  ReplayOptions,
  ResumeLogOptions,
  RewardComponent,
  RewardLoopOptions,
  RewardPart,
  SpendOptions,
} from "./compose/plan/loop-options.ts";
export { checkRewardLoop } from "./compose/plan/check-plan.ts";
export { rewardVersionsOf } from "./compose/plan/plan-versions.ts";
export type { RewardVersions } from "./compose/plan/plan-versions.ts";
export type { SandboxFusionUse } from "./settings/sandbox-fusion.ts";
export type { OnFailure, PolicyOptions, RewardLimits } from "./settings/policy-settings.ts";
export type { BreakerSettings, BreakerState } from "./faults/circuit-breaker.ts";
export { classOf as failureClassOf } from "./faults/failure-class.ts";
export type { FailureClass } from "./outcome.ts";
export type { HedgeSettings } from "./faults/hedge.ts";
export type { RetrySettings } from "./faults/retry-policy.ts";
export type { AdaptiveLimitSettings } from "./limits/adaptive-limit.ts";
export { RewardLimiter, RewardLimiterActor, rewardLimiterOf } from "./limits/reward-limiter.ts";
export type { RewardLimiterSettings } from "./limits/reward-limiter.ts";
export type { LimiterSettings, LimiterState, LimitReport, LimitRequest } from "./limits/limiter.ts";
export type { RateState } from "./limits/rate-limit.ts";
export { carriable } from "./record/carriable.ts";
export type { Carriable } from "./record/carriable.ts";
export { exportFormatOf, exportRewardLog } from "./record/export-log.ts";
export type { ExportFormat, ExportLogOptions } from "./record/export-log.ts";
export { countedRecords } from "./record/records-with-parts.ts";
export { textsOf } from "./sample/logged-texts.ts";
export type { PromptMessage, SampleTexts } from "./sample/logged-texts.ts";
export { RecordedPlaces } from "./record/recorded-places.ts";
export { outcomesIn, readRewardLog, RewardLog } from "./record/reward-log-file.ts";
export type { RewardLogOptions } from "./record/reward-log-file.ts";
export { givenOutcomeOf, isScored, outcomeOf } from "./record/reward-record.ts";
export type { RecordPlace, RewardRecord } from "./record/reward-record.ts";
export { reportOf as rewardReport } from "./record/reward-report.ts";
export type { Quantiles, RewardReport } from "./record/reward-report.ts";
export { keysOfRecord, olderSampleKeys, sampleKey } from "./sample/sample-key.ts";
export { WriterMark } from "./record/writer-mark.ts";
export type { Prices, SpendSettings, SpendState } from "./spend/cost-budget.ts";
export { usageOf } from "./spend/usage.ts";
export type { TokenUsage } from "./outcome.ts";
export type {
  Hedges,
  InvalidOutcome,
  SampleOutcome,
  ScoredSample,
  EarlierFailure,
  ScoreFailure,
  ScoreFailureCode,
  ValidOutcome,
} from "./outcome.ts";
export {
  ExecutorStartError,
  InvalidBatchError,
  RewardAssemblyError,
  RewardCacheError,
  RewardChunkError,
  RewardFailuresError,
  RewardGroupError,
  RewardLimiterConflictError,
  RewardLogBusyError,
  RewardLogError,
  RewardLogStaleError,
  RewardModelStartError,
  RewardLoopClosedError,
  RewardLoopOptionError,
  RewardLoopWorkerLostError,
  TokenizerFolderError,
} from "./errors.ts";
