/** Public names of @rayling/reward-loop. */

export { RewardLoopManager } from "./manager/reward-loop-manager.ts";
export type { ScoreStreamOptions } from "./manager/score-stream.ts";
export type { RewardProgress } from "./manager/progress.ts";
export { RewardLoopWorker, RewardLoopWorkerActor } from "./worker/reward-loop-worker.ts";
export type { ExecutorSettings, PipelineSettings, RewardLoopOptions } from "./settings.ts";
export type {
  InvalidOutcome,
  SampleOutcome,
  ScoredSample,
  ScoreFailure,
  ScoreFailureCode,
  ValidOutcome,
} from "./outcome.ts";
export {
  ExecutorStartError,
  InvalidBatchError,
  RewardLoopClosedError,
  RewardLoopOptionError,
  RewardLoopWorkerLostError,
} from "./errors.ts";
