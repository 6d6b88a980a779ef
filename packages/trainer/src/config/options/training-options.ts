/**
 * The options of `PPOTrainer.create`: the entries of the configuration's table by the names that a
 * program has for them. They are the same objects, which is how the key of an option is found: no
 * list has both names. Options without a key are declared here.
 */

import { treeOf, valueAt, withValue } from "@rayling/config-tree";
import type { ConfigTree } from "@rayling/config-tree";
import type { Frozen } from "@rayling/config-tree/options";
import { entriesOf } from "@rayling/config-tree/options";
import type { RewardLoopManager } from "@rayling/reward-loop";
import { z } from "zod";
import { present } from "@rayling/reward-manager-registry/values";
import type { PolicyLossSettings } from "../../algorithms/losses/policy-loss.ts";
import { algorithm, constants } from "./algorithm.ts";
import { trainerOptions } from "./index.ts";
import type { TrainerConfig } from "./index.ts";
import { learning, policyLoss, rollout, rollouts, valKwargs, valueLearning } from "./policies.ts";
import { arrangement, checkpoints, dumps, run, scheduling, seeds } from "./run.ts";

const { defaultLocalDir, maxActorCkptToKeep, resumeMode, resumeFromPath } = checkpoints;
const { rolloutCorrection, filterGroups } = algorithm.shape;

export const trainingOptions = z.strictObject({
  rollout: z.strictObject({
    ...rollouts,
    maxResponseLength: rollout.shape.responseLength,
    validation: valKwargs,
  }),
  algorithm: z.strictObject({
    ...algorithm.shape,
    ...constants,
    // Without it nothing is corrected, and there are no metrics of it.
    rolloutCorrection: rolloutCorrection.optional(),
    filterGroups: filterGroups.optional(),
  }),
  actor: z.strictObject({
    ...learning,
    ...policyLoss,
    /** Returns a permutation of so many numbers for clip_cov. Default: drawn by the seed. */
    permutation: z.custom<NonNullable<PolicyLossSettings["permutation"]>>().optional(),
  }),
  criticOptions: z.strictObject(valueLearning),
  run: z.strictObject({ ...run, ...seeds }),
  ...scheduling,
  rewardArrangement: z.strictObject({
    ...arrangement,
    /** Scores validation instead of the training's loop. */
    validationLoop: z.custom<RewardLoopManager>().optional(),
  }),
  checkpoints: z
    .strictObject({
      folder: defaultLocalDir,
      keep: maxActorCkptToKeep,
      resumeMode,
      resumePath: resumeFromPath,
    })
    .optional(),
  ...dumps,
});

type Sections = typeof trainingOptions.shape;

/** The options as they are used, each with its value. */
export type TrainingValues = { readonly [Name in keyof Sections]: Value<Sections[Name]> };

type Value<Entry> =
  Entry extends z.ZodOptional<infer Own>
    ? Value<Own> | undefined
    : Entry extends z.ZodObject<infer Shape>
      ? { readonly [Name in keyof Shape]: Value<Shape[Name]> }
      : Entry extends z.ZodCustom<infer Own>
        ? Own
        : Frozen<z.output<Entry>>;

/** The options as they may be given. */
export type GivenOptions = { readonly [Name in keyof Sections]?: Giving<Sections[Name]> };

/** A section as it may be given. Mapped so that editors show the comments of the table. */
export type Given<Name extends keyof Sections> = NonNullable<Giving<Sections[Name]>>;

type Giving<Entry> =
  Entry extends z.ZodOptional<infer Own>
    ? Giving<Own> | undefined
    : Entry extends z.ZodObject<infer Shape>
      ? { readonly [Name in keyof Shape]?: Giving<Shape[Name]> } | undefined
      : Entry extends z.ZodCustom<infer Own>
        ? Own | undefined
        : Frozen<z.input<Entry>>;

/** Facts that defaults of a program depend on. */
export interface DefaultsContext {
  readonly hasCritic: boolean;
  /** Prompts of a batch. */
  readonly trainBatchSize: number;
  readonly resumePath: unknown;
  /** Whether samples of a validation are asked for. */
  readonly drawsValidation: boolean;
}

/** Defaults of a program that are not a configuration's, which has verl's. */
export function ownDefaults(context: DefaultsContext): Readonly<Record<string, unknown>> {
  return {
    // A critic is given or not: without one gae would only be refused.
    ...(context.hasCritic ? {} : { "algorithm.advEstimator": "grpo" }),
    // verl's 256 belongs to its recipe; in a program one update of the whole batch is on-policy.
    "actor.ppoMiniBatchSize": context.trainBatchSize,
    // A program that gives filterGroups wants the filter.
    "algorithm.filterGroups.enable": true,
    // A program that asks for samples wants them drawn; verl's users set both, or get the likeliest
    // token.
    ...(context.drawsValidation ? { "rollout.validation.temperature": 1 } : {}),
    // A program that names a checkpoint resumes from it.
    ...((context.resumePath ?? null) === null ? {} : { "checkpoints.resumeMode": "resume_path" }),
  };
}

/**
 * The configuration's key, with dots, of each option that has one: `actor.lossMode` is
 * `actorRolloutRef.actor.policyLoss.lossMode`.
 */
export const keys: ReadonlyMap<string, string> = keysOfOptions();

function keysOfOptions(): ReadonlyMap<string, string> {
  const keyOf = new Map(entriesOf(trainerOptions).map(([key, entry]) => [entry, key]));
  return new Map(
    entriesOf(trainingOptions).flatMap(([option, entry]) => {
      const key = keyOf.get(entry);
      return key === undefined ? [] : [[option, key]];
    }),
  );
}

/** Returns the values that a configuration gives these options. */
export function valuesOf(config: TrainerConfig): TrainingValues {
  const tree = treeOf(config);
  const values = [...keys].reduce<ConfigTree>((result, [option, key]) => {
    const value = present(valueAt(tree, key.split(".")), key);
    return withValue(result, option.split("."), value);
  }, {});
  return values as unknown as TrainingValues;
}
