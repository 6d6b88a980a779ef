/**
 * The public names of @rayling/reward-manager-registry. The import has no side effects.
 */

export { copyData } from "./scoring/data-copy.ts";
export { scoreSample } from "./scoring/score-sample.ts";
export type { ScoreSampleOptions } from "./scoring/score-sample.ts";
export type { RewardSample, SampleContext, Tokenizer } from "./scoring/sample.ts";
export { withRewardKwargs } from "./scoring/compute-score.ts";
export type {
  ComputeScore,
  RewardModelAccess,
  RewardModelArguments,
  ScoreCall,
  ScoreInput,
  ScoreOutput,
  ScoreRecord,
  ScoreTuple,
  ScoreValue,
} from "./scoring/compute-score.ts";
export type { ComputeScores, ProcessedScores, Scorer, ScoreLogEntry } from "./scoring/scorer.ts";
export { GroupScorer } from "./scoring/group-scorer.ts";
export { placesOf, weightedPlaces } from "./scoring/placed-score.ts";
export type { PlacedScore, ScoredRow, TokenScore, TurnScores } from "./scoring/placed-score.ts";
export type { RewardResult } from "./scoring/reward-result.ts";

export { createDefaultRegistry, createRegistry } from "./registry.ts";
export type { RewardManagerRegistry } from "./registry.ts";
export type {
  RewardManager,
  RewardManagerArguments,
  RewardManagerClass,
  ScoredBatch,
} from "./managers/reward-manager.ts";
export { DapoRewardManager } from "./managers/dapo.ts";
export type { DapoOptions, OverlongBuffer } from "./managers/dapo.ts";
export { GdpoRewardManager } from "./managers/gdpo.ts";
export type { GdpoOptions } from "./managers/gdpo.ts";
export { NaiveRewardManager } from "./managers/naive.ts";

export { createDefaultComputeScore, defaultComputeScore } from "./scorers/default-compute-score.ts";
export type { DefaultScoreOptions } from "./scorers/default-compute-score.ts";
export { scorePrimeCode } from "./scorers/code/prime-code.ts";
export type { PrimeCodeOptions } from "./scorers/code/prime-code.ts";
export { scoreSandboxFusion } from "./scorers/code/sandbox-fusion.ts";
export type { SandboxFusionOptions } from "./scorers/code/sandbox-fusion.ts";
export type { CodeScore, CodeTestResult } from "./scorers/code/code-tests.ts";
export { LocalSandbox } from "./sandbox/local-sandbox.ts";
export type { LocalSandboxOptions, Program, ProgramEnd } from "./sandbox/local-sandbox.ts";
export type { SandboxReport } from "./sandbox/isolation/choose-isolation.ts";
export type { SandboxIsolation } from "./sandbox/isolation/isolation.ts";
export type { ProgramLanguage } from "./sandbox/runtimes.ts";
export { extractGsm8kSolution, scoreGsm8k } from "./scorers/gsm8k.ts";
export type { Gsm8kMethod, Gsm8kOptions } from "./scorers/gsm8k.ts";
export { scoreMathDapo } from "./scorers/math-dapo.ts";
export type { MathDapoOptions, MathDapoScore } from "./scorers/math-dapo.ts";
export { scoreMathReward } from "./scorers/math-reward.ts";
export { scoreSearchR1 } from "./scorers/search-r1.ts";
export type { SearchR1Options } from "./scorers/search-r1.ts";
export { scoreGeo3k } from "./scorers/geo3k.ts";
export type { Geo3kOptions } from "./scorers/geo3k.ts";
export { scorePrimeMath } from "./scorers/prime-math.ts";
export type { PrimeMathOptions, PrimeMathScore } from "./scorers/prime-math.ts";
export { routeDataSource } from "./scorers/routes.ts";
export type { RouteSettings, ScorerName, ScorerRoute } from "./scorers/routes.ts";

export {
  loadComputeScore,
  loadFunction,
  loadRewardManagerClass,
  loadScorer,
} from "./loader/load.ts";
export type { LoadedScorer, LoadOptions } from "./loader/load.ts";
export { timedBy } from "./calling/call-clock.ts";
export type { CallClock } from "./calling/call-clock.ts";
export { resolveRewardModule } from "./loader/module-url.ts";
export { parseRewardSpec } from "./loader/reward-spec.ts";
export type { RewardSpec } from "./loader/reward-spec.ts";

export {
  CannotTellError,
  InvalidManagerOptionError,
  InvalidRewardManagerError,
  InvalidRewardSpecError,
  InvalidSampleError,
  InvalidScoreError,
  InvalidScorerOptionError,
  MissingTokenizerError,
  RewardExportNotFoundError,
  RewardExportTypeError,
  RewardFunctionSignatureError,
  RewardHookNameError,
  RewardManagerConflictError,
  RewardModuleImportError,
  RewardModuleLanguageError,
  RewardModuleNotFoundError,
  SandboxResourceError,
  SandboxServiceError,
  SandboxUnavailableError,
  UnknownDataSourceError,
  UnknownRewardManagerError,
  UnknownScoreArgumentError,
} from "./errors.ts";
