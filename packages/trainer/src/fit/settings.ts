/** The settings of a training: its options as they are used, with what follows from several of them. What does not fit together is refused: TrainerInputError names the option. */

import { createAdvantageRegistry } from "../algorithms/advantages/registry.ts";
import type { PolicyLossSettings } from "../algorithms/losses/policy-loss.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/registry.ts";
import { readTrainingOptions } from "../config/read-training.ts";
import { misfitOf } from "../config/together.ts";
import type { Whole } from "../config/together.ts";
import { ownDefaults } from "../config/options/training-options.ts";
import type { GivenOptions, TrainingValues } from "../config/options/training-options.ts";
import { TrainerInputError } from "../errors.ts";
import type { ScheduleName, TrainingOptions } from "./options.ts";

type Values = TrainingValues;

export interface TrainingSettings extends Pick<
  Values,
  "adaptiveMiniBatch" | "checkpoints" | "rewardArrangement" | "rolloutDataDir" | "validationDataDir"
> {
  /** Undefined for one of the user's own. */
  readonly schedule: ScheduleName | undefined;
  readonly algorithm: Omit<Known<Values["algorithm"]>, "filterGroups"> & {
    /** Undefined: no group is left out. */
    readonly filterGroups: FilterSettings | undefined;
  };
  readonly actor: Known<Values["actor"]> &
    Pick<PolicyLossSettings, "globalBatchInfo" | "rolloutCorrection">;
  readonly critic: Values["criticOptions"] & { readonly lossScaleFactor: number };
  readonly rollout: Omit<Values["rollout"], "validation">;
  readonly validation: Values["rollout"]["validation"];
  readonly staleness: Values["staleness"] & { readonly numWarmupBatches: number };
  readonly run: Omit<Values["run"], "totalEpochs" | "totalTrainingSteps"> & {
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

/** What settings hang on beside options. */
export interface SettingsContext extends Omit<Whole, "values"> {
  readonly batchesPerEpoch: number;
  readonly hasValidation: boolean;
}

/** Throws TrainerInputError. */
export function readTrainingSettings(
  options: TrainingOptions & { readonly schedule?: unknown },
): TrainingSettings {
  const { policy: _policy, referencePolicy, critic, prompts, validationPrompts, ...more } = options;
  const { reward: _reward, tracking: _tracking, now: _now, ...named } = more;
  const { advantageRegistry = createAdvantageRegistry() } = named;
  const { policyLossRegistry = createPolicyLossRegistry() } = named;
  const { advantageRegistry: _estimators, policyLossRegistry: _losses, schedule, ...given } = named;
  const hasOwnSchedule = typeof schedule === "function";
  const own =
    hasOwnSchedule || schedule === undefined ? {} : { schedule: schedule as ScheduleName };
  const settings = settingsOf(
    { ...given, ...own },
    {
      trainBatchSize: prompts.positionOf(0).batchSize,
      batchesPerEpoch: prompts.batchesPerEpoch,
      hasValidation: validationPrompts !== undefined,
      critic,
      hasOwnSchedule,
      estimators: advantageRegistry.names(),
      losses: policyLossRegistry.names(),
    },
  );
  const { algorithm, actor, run, checkpoints } = settings;
  if ((algorithm.useKlInReward || actor.useKlLoss) && referencePolicy === undefined) {
    const option = algorithm.useKlInReward ? "algorithm.useKlInReward" : "actor.useKlLoss";
    refuse("referencePolicy", `must be a policy, which ${option} needs; it is undefined`);
  }
  if (run.saveFreq > 0 && checkpoints === undefined) {
    refuse("checkpoints", "must have a folder, which run.saveFreq needs; it is undefined");
  }
  return settings;
}

/** Throws TrainerInputError. */
export function settingsOf(given: GivenOptions, context: SettingsContext): TrainingSettings {
  const { trainBatchSize, critic, hasOwnSchedule } = context;
  const hasCritic = (critic ?? false) !== false;
  const { resumePath } = given.checkpoints ?? {};
  const values = readTrainingOptions(given, ownDefaults({ hasCritic, trainBatchSize, resumePath }));
  const misfit = misfitOf({ values, ...context }, (option) => option);
  if (misfit !== undefined) {
    const { option, problem, nearest } = misfit;
    refuse(option, `${problem}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`);
  }
  const { adaptiveMiniBatch, checkpoints, rewardArrangement, rolloutDataDir, validationDataDir } =
    values;
  const { algorithm, actor, criticOptions, staleness, schedule } = values;
  const { filterGroups, ...ofAlgorithm } = known(algorithm);
  const { totalTrainingSteps, totalEpochs, ...run } = values.run;
  const { validation, ...rollout } = values.rollout;
  const { maxResponseLength } = rollout;
  const { rolloutCorrection } = ofAlgorithm;
  const isBypassed = rolloutCorrection?.bypassMode === true;
  const draws = validation.doSample && validation.temperature > 0;
  return {
    adaptiveMiniBatch,
    checkpoints,
    rewardArrangement,
    rolloutDataDir,
    validationDataDir,
    schedule: hasOwnSchedule ? undefined : schedule,
    algorithm: {
      ...ofAlgorithm,
      filterGroups:
        filterGroups?.enable === true
          ? { ...filterGroups, metric: filterGroups.metric ?? "score" }
          : undefined,
    },
    actor: {
      ...known(actor),
      // One for both sides, where they have none of their own: a loss would take its default for these.
      clipRatioLow: actor.clipRatioLow ?? actor.clipRatio,
      clipRatioHigh: actor.clipRatioHigh ?? actor.clipRatio,
      globalBatchInfo: { lossScaleFactor: actor.lossScaleFactor ?? maxResponseLength },
      ...(isBypassed ? { lossMode: "bypass_mode", rolloutCorrection } : {}),
    },
    critic: { ...criticOptions, lossScaleFactor: maxResponseLength },
    rollout,
    // Of the likeliest token there is no temperature.
    validation: draws
      ? validation
      : { ...validation, doSample: false, temperature: rollout.temperature },
    staleness: {
      ...staleness,
      numWarmupBatches: staleness.numWarmupBatches ?? Math.min(1, staleness.limit),
    },
    run: {
      ...run,
      valBeforeTrain: run.valBeforeTrain && context.hasValidation,
      overlapValidation: run.overlapValidation ?? (hasOwnSchedule || schedule !== "sync"),
      totalSteps: totalTrainingSteps ?? totalEpochs * context.batchesPerEpoch,
    },
    trainBatchSize,
  };
}

/** Without what is not set: there a formula has its own way. */
type Known<Section> = {
  readonly [Name in keyof Section as IsUnset<Section[Name], never, Name>]: Section[Name];
} & {
  readonly [Name in keyof Section as IsUnset<Section[Name], Name, never>]?: NonNullable<
    Section[Name]
  >;
};
type IsUnset<Value, Yes, No> = null extends Value ? Yes : undefined extends Value ? Yes : No;

function known<Section extends object>(section: Section): Known<Section> {
  const set = Object.entries(section).filter(([, value]) => (value ?? null) !== null);
  return Object.fromEntries(set) as Known<Section>;
}

function refuse(option: string, problem: string): never {
  throw new TrainerInputError(option, `${option} ${problem}`);
}
