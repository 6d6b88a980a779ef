/**
 * The settings of a training: its options as they are used, with what follows from several of them.
 */

import type { PolicyLossSettings } from "../algorithms/losses/policy-loss.ts";
import type { TrainingValues } from "../config/options/training-options.ts";
import type { ScheduleName } from "./program-options.ts";

type Values = TrainingValues;

/** Options of a training with their defaults, and the values that follow from several of them. */
export interface TrainingSettings extends Omit<
  Values,
  "schedule" | "algorithm" | "actor" | "rollout" | "staleness" | "run"
> {
  /** Undefined for one of the user's own. */
  readonly schedule: ScheduleName | undefined;
  /** verl `algorithm`. */
  readonly algorithm: Omit<Known<Values["algorithm"]>, "filterGroups"> & {
    /** Undefined: no group is left out. */
    readonly filterGroups: FilterSettings | undefined;
  };
  /** verl `actor_rollout_ref.actor`, with the settings of the policy loss. */
  readonly actor: Known<Values["actor"]> & PolicyLossSettings;
  /** verl `actor_rollout_ref.rollout`, with whether answers of a validation are sampled. */
  readonly rollout: Values["rollout"] & { readonly validation: { readonly doSample: boolean } };
  /** verl `critic`, with the divisor of seq-mean-token-sum-norm. */
  readonly criticOptions: Values["criticOptions"] & { readonly lossScaleFactor: number };
  /** How old rollouts may be under the schedule `streaming`. */
  readonly staleness: Values["staleness"] & { readonly numWarmupBatches: number };
  /** verl `trainer`, with the number of steps in all. */
  readonly run: Values["run"] & {
    readonly overlapValidation: boolean;
    readonly totalSteps: number;
  };
  /** Prompts of a batch. */
  readonly trainBatchSize: number;
}

export interface FilterSettings {
  readonly metric: string;
  readonly maxNumGenBatches: number;
}

/** A section without the options that are not set: a formula has its own default for them. */
export type Known<Section> = {
  readonly [Name in keyof Section as IsUnset<Section[Name], never, Name>]: Section[Name];
} & {
  readonly [Name in keyof Section as IsUnset<Section[Name], Name, never>]?: NonNullable<
    Section[Name]
  >;
};
type IsUnset<Value, Yes, No> = null extends Value ? Yes : undefined extends Value ? Yes : No;

/** Whether log-probabilities of the reference policy are needed. */
export function needsReference({
  algorithm,
  actor,
}: Pick<TrainingSettings, "algorithm" | "actor">): boolean {
  return algorithm.useKlInReward || actor.useKlLoss;
}

/** Whether a thing that is done every so many steps, and after the last, belongs to this step. */
export function isDue(
  everySteps: number,
  step: number,
  { totalSteps }: { readonly totalSteps: number },
): boolean {
  return everySteps > 0 && (step % everySteps === 0 || step >= totalSteps);
}

/** Whether samples are compared with greedy answers to their prompts, which are scored, too. */
export function needsBaselines({ algorithm }: TrainingSettings): boolean {
  return algorithm.advEstimator === "remax";
}
