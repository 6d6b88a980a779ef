/**
 * The options of a training: its parts, and the options of `config/options` by verl's names in
 * camelCase.
 */

import type { RewardLoopManager, RewardLoopOptions } from "@rayling/reward-loop";
import type { AdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import type { PolicyLossRegistry } from "../algorithms/losses/policy-loss-registry.ts";
import type { Given, GivenOptions, TrainingValues } from "../config/options/training-options.ts";
import type { PromptDataset } from "../data/prompt-dataset.ts";
import type { PromptLoader } from "../data/prompt-loader.ts";
import type { CriticHandle, PolicyHandle } from "../policy/policy.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";

/** Name of one of verl's schedules. */
export type ScheduleName = TrainingValues["schedule"];
/** verl `algorithm`. */
export interface AlgorithmOptions extends Given<"algorithm"> {}
/** DAPO: groups that do not differ are left out, and others generated in their place. */
export type FilterGroups = NonNullable<AlgorithmOptions["filterGroups"]>;
/**
 * verl `actor_rollout_ref.actor`. `clipRatio` counts for each side that has no ratio of its own.
 */
export interface ActorOptions extends Given<"actor"> {}
/** verl `critic`; what is not given is the actor's. */
export interface CriticOptions extends Given<"criticOptions"> {}
/** verl `actor_rollout_ref.rollout`, and of validation `val_kwargs`. */
export interface RolloutOptions extends Given<"rollout"> {
  /** In tokens. */
  readonly maxResponseLength: number;
}
/** verl `actor_rollout_ref.rollout.val_kwargs`. */
export type ValidationOptions = NonNullable<RolloutOptions["validation"]>;
/** How rewards are asked for. */
export interface RewardArrangement extends Given<"rewardArrangement"> {}
/** verl `trainer`. */
export interface RunOptions extends Given<"run"> {}
/** verl `trainer.default_local_dir`, how many stay there, and what is gone on with. */
export interface CheckpointOptions extends Given<"checkpoints"> {
  /** Made if it is not there. */
  readonly folder: string;
}
/** How old rollouts may be under the schedule `streaming`. */
export interface StalenessOptions extends Given<"staleness"> {}

/** Parts and options of a training, for `PPOTrainer`. */
export interface TrainingOptions extends Omit<GivenOptions, "schedule"> {
  /** The policy that is trained. */
  readonly policy: PolicyHandle;
  /** Needed for a KL loss and for KL in the reward. */
  readonly referencePolicy?: PolicyHandle | undefined;
  /** Needed for gae. */
  readonly critic?: CriticHandle | undefined;
  /** Batches of prompts to train on. */
  readonly prompts: PromptLoader;
  /** Prompts for validation. Default: no validation. */
  readonly validationPrompts?: PromptDataset | undefined;
  /** The reward loop, or how to make one. It is closed with the training if it was made by it. */
  readonly reward: RewardLoopManager | RewardLoopOptions;
  /** verl `actor_rollout_ref.rollout`: how responses are sampled. */
  readonly rollout: RolloutOptions;
  /** verl `algorithm`: how advantages are computed. */
  readonly algorithm?: AlgorithmOptions | undefined;
  /** verl `actor_rollout_ref.actor`: the loss of the policy, and its mini-batches. */
  readonly actor?: ActorOptions | undefined;
  /** verl `critic`: the loss of the critic, and its mini-batches. */
  readonly criticOptions?: CriticOptions | undefined;
  /** How old rollouts may be under the schedule `streaming`. */
  readonly staleness?: StalenessOptions | undefined;
  /** How rewards are asked for. */
  readonly rewardArrangement?: RewardArrangement | undefined;
  /** verl `trainer`: steps, validation and saving. */
  readonly run?: RunOptions | undefined;
  /** Folder in which a run is saved, and from which it resumes. Needed for `run.saveFreq`. */
  readonly checkpoints?: CheckpointOptions | undefined;
  /** Receives the reports of the training, such as a Tracking; the training does not close it. */
  readonly tracking?: StepTracker | undefined;
  /**
   * Milliseconds, by which waits for rewards and updates are measured. Default `performance.now`.
   */
  readonly now?: (() => number) | undefined;
  /** Registry with estimators of your own. */
  readonly advantageRegistry?: AdvantageRegistry | undefined;
  /** Registry with losses of your own. */
  readonly policyLossRegistry?: PolicyLossRegistry | undefined;
}
