/** What a training run is made of, by verl's names in camelCase, with verl's defaults. Checked once, at the edge. */

import type { RewardLoopManager, RewardLoopOptions } from "@rayling/reward-loop";
import type { ComputeAdvantageSettings } from "../algorithms/advantages/compute.ts";
import type { AdvantageRegistry } from "../algorithms/advantages/registry.ts";
import type { KlControllerSettings, KlPenaltyKind } from "../algorithms/kl.ts";
import type { LossAggMode } from "../algorithms/losses/aggregation.ts";
import type { PolicyLossSettings } from "../algorithms/losses/policy-loss.ts";
import type { PolicyLossRegistry } from "../algorithms/losses/registry.ts";
import type { CriticHandle, PolicyHandle } from "../policy/policy.ts";
import type { Tracking } from "../tracking/tracking.ts";
import type { ResumeOptions } from "../checkpoint/checkpoint-folder.ts";
import type { PromptDataset } from "../data/prompt-dataset.ts";
import type { PromptLoader } from "../data/prompt-loader.ts";

/** What of Tracking a training tells. */
export type StepTracker = Pick<Tracking, "log" | "phase" | "samples" | "generations" | "progress">;

export type ScheduleName =
  | "sync"
  | "one-step-off-policy"
  | "mini-batch-pipeline"
  | "one-step-pipeline"
  | "streaming";

/** verl `algorithm`. */
export interface AlgorithmOptions extends Omit<ComputeAdvantageSettings, "advEstimator"> {
  /** Default "grpo" without a critic, "gae" with one. */
  readonly advEstimator?: string;
  /** Default: fixed, 0.001. */
  readonly klCtrl?: KlControllerSettings | undefined;
  /** DAPO: groups whose scores are all the same are left out, and others generated in their place. */
  readonly filterGroups?: FilterGroups | undefined;
}

export interface FilterGroups {
  /** Of what a group must differ: "score" (default), or a key of the extra info such as acc. */
  readonly metric?: string | undefined;
  /** Generations for one step before it is given up; 0: as many as it takes, until no group of two whole epochs, and of ten batches, differs. Default 10. */
  readonly maxNumGenBatches?: number | undefined;
}

/** verl `actor_rollout_ref.actor`. `clipRatio` counts for each side that has no ratio of its own. */
export interface ActorOptions extends Omit<PolicyLossSettings, "globalBatchInfo"> {
  /** Prompts of one update. Default: all of the batch. */
  readonly ppoMiniBatchSize?: number | undefined;
  /** Default 1. */
  readonly ppoEpochs?: number | undefined;
  /** What `seq-mean-token-sum-norm` divides by. Default: `rollout.maxResponseLength`, which is the same in all batches. */
  readonly lossScaleFactor?: number | undefined;
  /** verl `policy_loss.loss_mode`. Default "vanilla". */
  readonly lossMode?: string | undefined;
  /** Default 0. */
  readonly entropyCoeff?: number | undefined;
  /** Adds the divergence from the reference policy to the loss. Default false. */
  readonly useKlLoss?: boolean | undefined;
  /** Default 0.001. */
  readonly klLossCoef?: number | undefined;
  /** Default "low_var_kl". */
  readonly klLossType?: KlPenaltyKind | undefined;
}

/** verl `critic`. */
export interface CriticOptions {
  /** Default 0.5. */
  readonly cliprangeValue?: number | undefined;
  /** Default: the actor's. */
  readonly ppoMiniBatchSize?: number | undefined;
  /** Default: the actor's. */
  readonly ppoEpochs?: number | undefined;
  /** Default: the actor's. */
  readonly lossAggMode?: LossAggMode | undefined;
}

/** verl `actor_rollout_ref.rollout`, and of validation `val_kwargs`. */
export interface RolloutOptions {
  /** Samples of each prompt. Default 1. */
  readonly n?: number | undefined;
  readonly maxResponseLength: number;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly validation?: ValidationOptions | undefined;
}

export interface ValidationOptions {
  /** Default 1. */
  readonly n?: number | undefined;
  /** Default false: greedy. */
  readonly doSample?: boolean | undefined;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
}

/** How rewards are asked for. The first two are there to measure what they cost. */
export interface RewardArrangement {
  /** No sample of a batch is begun before all of the batch before it are done, as in verl's recipe. Default false. */
  readonly batchBarrier?: boolean | undefined;
  /** Validation waits behind the barrier, too, in the same pool. Default false: in a lane of its own. */
  readonly validationInLine?: boolean | undefined;
  /** Scores validation instead of the training's loop. */
  readonly validationLoop?: RewardLoopManager | undefined;
}

/** verl `trainer`. */
export interface RunOptions {
  /** Default: all of `totalEpochs`. */
  readonly totalTrainingSteps?: number | undefined;
  /** Default 1. */
  readonly totalEpochs?: number | undefined;
  /** Validates after every so many steps, and after the last; also where a run goes on behind such a step: whether the one before told of it is not known. Default -1: never. */
  readonly testFreq?: number | undefined;
  /** Whether training goes on while a validation is judged; it is told with its step all the same, when the next one is over. Default true, but with the schedule sync. */
  readonly overlapValidation?: boolean | undefined;
  /** Default true, where there is something to validate on. */
  readonly valBeforeTrain?: boolean | undefined;
  /** Ends after it. Default false. */
  readonly valOnly?: boolean | undefined;
  /** Keeps a checkpoint after every so many steps, and after the last. Default -1: never. */
  readonly saveFreq?: number | undefined;
  /** The first step that trains the policy, after those that train the critic alone. Default 0. */
  readonly criticWarmup?: number | undefined;
  /** Of everything that is drawn. Default 1. */
  readonly seed?: number | undefined;
  /** How long a policy or a critic may take for an answer; to generate, for each part of it that comes. Default: an hour. Then `fit` rejects: TrainerStateError, POLICY_TIMEOUT. */
  readonly policyTimeoutMs?: number | undefined;
}

export interface CheckpointOptions {
  /** verl `trainer.default_local_dir`. */
  readonly folder: string;
  /** verl `trainer.max_actor_ckpt_to_keep`: so many of the last ones stay. Default: all. */
  readonly keep?: number | undefined;
  /** verl `trainer.resume_mode`: goes on with the latest of the folder, if there is one; with none; with that of `resumePath`. Default: resume_path where there is a `resumePath`, else auto. */
  readonly resumeMode?: ResumeOptions["mode"];
  /** verl `trainer.resume_from_path`. */
  readonly resumePath?: string | undefined;
}

export interface StalenessOptions {
  /** Of `streaming`: by how many steps rollouts may be older than the weights they train. Default 0: on-policy. */
  readonly limit?: number | undefined;
  /** verl `num_warmup_batches`: batches whose rollouts are generated ahead of the one that is trained. Default 1 where the limit allows it. */
  readonly numWarmupBatches?: number | undefined;
  /** What becomes of groups that would be older: they are waited for, or dropped and others taken instead. Default "wait". */
  readonly strategy?: "wait" | "drop" | undefined;
}

export interface TrainingOptions {
  readonly policy: PolicyHandle;
  /** Needed for a KL loss and for KL in the reward. */
  readonly referencePolicy?: PolicyHandle | undefined;
  /** Needed for gae. */
  readonly critic?: CriticHandle | undefined;
  readonly prompts: PromptLoader;
  readonly validationPrompts?: PromptDataset | undefined;
  /** The reward loop, or how to make one. It is closed with the training if it was made by it. */
  readonly reward: RewardLoopManager | RewardLoopOptions;
  readonly rewardArrangement?: RewardArrangement | undefined;
  readonly rollout: RolloutOptions;
  readonly algorithm?: AlgorithmOptions | undefined;
  readonly actor?: ActorOptions | undefined;
  readonly criticOptions?: CriticOptions | undefined;
  readonly staleness?: StalenessOptions | undefined;
  /**
   * The size of each mini-batch is chosen by the exposed wait for the one before: half of it where the trainer waited, twice as much where it did not, between a quarter of `ppoMiniBatchSize` and
   * all of it; whatever else is done by then comes along. A mini-batch is one update. It begins with `ppoMiniBatchSize`; a run that is resumed goes on where it was. With the schedules that train as
   * rewards come. Default false.
   */
  readonly adaptiveMiniBatch?: boolean | undefined;
  readonly run?: RunOptions | undefined;
  /** Where a run is kept, and gone on with. Needed for `run.saveFreq`. */
  readonly checkpoints?: CheckpointOptions | undefined;
  /** verl `trainer.rollout_data_dir`: the rollouts of each step, with their scores, as `{dir}/{step}.jsonl`. Default: nowhere. */
  readonly rolloutDataDir?: string | undefined;
  /** verl `trainer.validation_data_dir`: all answers of each validation, likewise. */
  readonly validationDataDir?: string | undefined;
  /** Is told what goes on, such as a Tracking; it is not closed with the training. */
  readonly tracking?: StepTracker | undefined;
  /** Milliseconds, by which waits for rewards and updates are measured. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
  /** With estimators of your own. */
  readonly advantageRegistry?: AdvantageRegistry | undefined;
  /** With losses of your own. */
  readonly policyLossRegistry?: PolicyLossRegistry | undefined;
}
