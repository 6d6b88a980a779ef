/**
 * A configuration as it is used: verl's keys in camelCase, at verl's places, every one with a value; null is not set. `readTrainerConfig` makes it, checked and frozen.
 * What a key means stands in presets/ppo_trainer.yaml, too, beside its default. Lengths are in tokens, batches in prompts.
 */

import type { RewardConfig } from "@rayling/reward-loop/config";
import type { KlPenaltyKind } from "../algorithms/kl.ts";
import type { LossAggMode } from "../algorithms/losses/aggregation.ts";
import type { Truncation } from "../data/prompt-lengths.ts";
import type { ScheduleName } from "../fit/options.ts";
import type { LoggerName } from "../tracking/loggers.ts";
import type { NotDone } from "./verl/not-done.ts";

export interface TrainerConfig {
  readonly actorRolloutRef: {
    readonly actor: ActorConfig;
    readonly rollout: RolloutConfig;
  };
  readonly critic: CriticConfig;
  readonly algorithm: AlgorithmConfig;
  readonly data: DataConfig;
  /** By verl's own names, as the reward loop has them. */
  readonly reward: RewardConfig;
  /** verl's recipe `max_concurrency`: rewards at once, over all workers. */
  readonly maxConcurrency: number | null;
  readonly trainer: RunConfig;
  readonly rayling: RaylingConfig;
  /** verl's keys that were given and have no meaning here. */
  readonly ignored: readonly string[];
  /** What is done otherwise than it says, without a change of the training, in words. */
  readonly notes: readonly string[];
  /** What it asks for and cannot be had: a run refuses the first. */
  readonly notDone: readonly NotDone[];
}

/** verl `actor_rollout_ref.actor`. */
export interface ActorConfig {
  readonly ppoMiniBatchSize: number;
  readonly ppoEpochs: number;
  readonly clipRatio: number;
  /** Null: clipRatio. */
  readonly clipRatioLow: number | null;
  readonly clipRatioHigh: number | null;
  readonly clipRatioC: number;
  readonly tauPos: number;
  readonly tauNeg: number;
  readonly lossAggMode: LossAggMode;
  /** Of seq-mean-token-sum-norm. Null: the longest response there may be. */
  readonly lossScaleFactor: number | null;
  readonly entropyCoeff: number;
  readonly useKlLoss: boolean;
  readonly klLossCoef: number;
  readonly klLossType: KlPenaltyKind;
  readonly policyLoss: {
    readonly lossMode: string;
    readonly clipCovRatio: number;
    readonly clipCovLb: number;
    readonly clipCovUb: number;
    readonly klCovRatio: number;
    readonly ppoKlCoef: number;
    readonly droBeta: number | null;
    readonly behavImpWeightCap: number;
  };
  readonly gradClip: number;
  readonly optim: OptimConfig;
}

/** verl `optim`, of the actor and of the critic. */
export interface OptimConfig {
  /** The longest gradient. verl's older name is grad_clip, beside optim. */
  readonly clipGrad: number;
  readonly lr: number;
  readonly weightDecay: number;
  readonly betas: readonly [number, number];
  readonly lrSchedulerType: "constant" | "cosine" | "linear";
  /** -1: the ratio instead. */
  readonly lrWarmupSteps: number;
  readonly lrWarmupStepsRatio: number;
  readonly minLrRatio: number;
  readonly numCycles: number;
  /** -1: those of the run. */
  readonly totalTrainingSteps: number;
}

/** verl `actor_rollout_ref.rollout`. */
export interface RolloutConfig {
  /** Samples of each prompt. */
  readonly n: number;
  readonly temperature: number;
  /** -1: all. */
  readonly topK: number;
  readonly topP: number;
  readonly doSample: boolean;
  readonly promptLength: number;
  readonly responseLength: number;
  /** Of validation. */
  readonly valKwargs: {
    readonly n: number;
    readonly doSample: boolean;
    /** 0: as without doSample. */
    readonly temperature: number;
    readonly topK: number;
    readonly topP: number;
  };
}

/** verl `critic`. */
export interface CriticConfig {
  readonly enable: boolean | null;
  readonly ppoMiniBatchSize: number;
  readonly ppoEpochs: number;
  readonly cliprangeValue: number;
  readonly lossAggMode: LossAggMode;
  readonly gradClip: number;
  readonly optim: OptimConfig;
}

/** verl `algorithm`. */
export interface AlgorithmConfig {
  readonly advEstimator: string;
  readonly gamma: number;
  readonly lam: number;
  readonly normAdvByStdInGrpo: boolean;
  readonly useKlInReward: boolean;
  readonly klPenalty: KlPenaltyKind;
  readonly klCtrl: {
    readonly type: "fixed" | "adaptive";
    readonly klCoef: number;
    readonly horizon: number;
    readonly targetKl: number;
  };
  readonly filterGroups: {
    readonly enable: boolean;
    /** Null: the score. */
    readonly metric: string | null;
    readonly maxNumGenBatches: number;
  };
  readonly rolloutCorrection: {
    readonly rolloutIs: "token" | "sequence" | null;
    readonly rolloutIsThreshold: number | string | null;
    readonly rolloutIsBatchNormalize: boolean;
    readonly rolloutRs: string | null;
    readonly rolloutRsThreshold: number | string | null;
    readonly bypassMode: boolean;
    readonly lossType: "ppo_clip" | "reinforce";
  };
  readonly usePfPpo: boolean;
  readonly pfPpo: {
    readonly reweightMethod: "pow" | "max_min" | "max_random";
    readonly weightPow: number;
  };
  readonly gdpoRewardKeys: readonly string[] | null;
  readonly gdpoRewardWeights: readonly number[] | null;
}

/** verl `data`. */
export interface DataConfig {
  readonly trainFiles: readonly string[];
  /** None: no validation. */
  readonly valFiles: readonly string[];
  /** -1: all. */
  readonly trainMaxSamples: number;
  readonly valMaxSamples: number;
  readonly promptKey: string;
  readonly rewardFnKey: string;
  /** Rows with something in one of these are refused: prompts are texts. */
  readonly imageKey: string;
  readonly videoKey: string;
  readonly audioKey: string;
  readonly maxPromptLength: number;
  readonly maxResponseLength: number;
  readonly trainBatchSize: number;
  readonly shuffle: boolean;
  /** Null: that of `rayling`. */
  readonly seed: number | null;
  readonly filterOverlongPrompts: boolean;
  readonly truncation: Truncation;
}

/** verl `trainer`. -1: never. */
export interface RunConfig {
  readonly totalEpochs: number;
  /** Null: all of the epochs. */
  readonly totalTrainingSteps: number | null;
  readonly projectName: string;
  readonly experimentName: string;
  readonly logger: readonly LoggerName[];
  /** Of each validation. */
  readonly logValGenerations: number;
  readonly saveFreq: number;
  readonly testFreq: number;
  /** Ours. Null: but with the schedule sync. */
  readonly overlapValidation: boolean | null;
  readonly valBeforeTrain: boolean;
  readonly valOnly: boolean;
  readonly criticWarmup: number;
  readonly resumeMode: "auto" | "disable" | "resume_path";
  readonly resumeFromPath: string | null;
  readonly defaultLocalDir: string;
  /** Null: rollouts are not kept. */
  readonly rolloutDataDir: string | null;
  readonly validationDataDir: string | null;
  /** Null: all. */
  readonly maxActorCkptToKeep: number | null;
  readonly maxCriticCkptToKeep: number | null;
  /** Ours. */
  readonly policyTimeoutMs: number;
}

/** What verl has no key for. */
export interface RaylingConfig {
  /** tiny, openai, timed, or PATH[:name]. */
  readonly policy: string;
  readonly policyKwargs: Readonly<Record<string, unknown>>;
  /** PATH[:name]. */
  readonly critic: string | null;
  readonly task: "arithmetic" | null;
  readonly taskKwargs: Readonly<Record<string, unknown>>;
  readonly warmStartSteps: number;
  readonly schedule: ScheduleName;
  readonly staleness: {
    /** In steps. */
    readonly limit: number;
    readonly numWarmupBatches: number | null;
    readonly strategy: "wait" | "drop";
  };
  /** Whether the size of a mini-batch follows the exposed wait for the one before. */
  readonly adaptiveMiniBatch: boolean;
  readonly batchBarrier: boolean;
  readonly validationInLine: boolean;
  /** Null: runs/{projectName}/{experimentName}. */
  readonly directory: string | null;
  readonly seed: number;
  /** Where `rayling train` serves metrics for Prometheus. Null: nowhere. 0: any port that is free. */
  readonly metricsPort: number | null;
  readonly expectedSeconds: ExpectedSeconds;
}

/** Of a phase of one step, by verl's timers; what lacks is taken for 0. */
export interface ExpectedSeconds {
  readonly gen?: number | undefined;
  readonly oldLogProb?: number | undefined;
  readonly ref?: number | undefined;
  readonly values?: number | undefined;
  readonly adv?: number | undefined;
  readonly updateActor?: number | undefined;
  readonly updateCritic?: number | undefined;
  readonly testing?: number | undefined;
  readonly saveCheckpoint?: number | undefined;
  /** Of one sample: always the same, or even from the first to the second. */
  readonly reward?: number | readonly [number, number] | undefined;
}
