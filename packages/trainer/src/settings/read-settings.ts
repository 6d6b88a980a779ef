/** Reads the options of a training. Options that do not fit together are refused by their names. */

import { resolve } from "node:path";
import { ConfigError } from "@rayling/config-tree";
import { createAdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/policy-loss-registry.ts";
import { absolutePath } from "../checkpoint/checkpoint-folder.ts";
import { ownDefaults } from "../config/options/training-options.ts";
import type { GivenOptions } from "../config/options/training-options.ts";
import { readTrainingOptions } from "../config/read-training.ts";
import { checkFit } from "../config/option-conflicts.ts";
import type { Whole } from "../config/option-conflicts.ts";
import { stepsOf } from "../config/options/run-length.ts";
import { drawsValidation } from "../config/options/validation-draws.ts";
import { TrainerInputError } from "../errors.ts";
import type { ScheduleName, TrainingOptions } from "./program-options.ts";
import { needsReference } from "./training-settings.ts";
import type { Known, TrainingSettings } from "./training-settings.ts";

/** Facts that settings hang on beside options. */
export interface SettingsContext extends Omit<Whole, "values"> {
  readonly batchesPerEpoch: number;
  readonly hasValidation: boolean;
}

/** Throws TrainerInputError. */
export function readTrainingSettings(
  options: TrainingOptions & { readonly schedule?: unknown },
): TrainingSettings {
  const { policy: _policy, referencePolicy, critic, prompts, validationPrompts, ...more } = options;
  const { reward: _reward, tracking: _tracking, now: _now, ...registries } = more;
  const { advantageRegistry = createAdvantageRegistry(), ...others } = registries;
  const { policyLossRegistry = createPolicyLossRegistry(), schedule, ...given } = others;
  const hasOwnSchedule = typeof schedule === "function";
  const named = { ...given, ...(hasOwnSchedule ? {} : { schedule: schedule as ScheduleName }) };
  const context = {
    trainBatchSize: prompts.positionOf(0).batchSize,
    batchesPerEpoch: prompts.batchesPerEpoch,
    hasValidation: validationPrompts !== undefined,
    hasCritic: critic !== undefined,
    hasOwnSchedule,
    estimators: advantageRegistry.names(),
    losses: policyLossRegistry.names(),
  };
  const settings = withAbsoluteFolders(asInputError(() => settingsOf(named, context)));
  const { algorithm, run, checkpoints } = settings;
  if (needsReference(settings) && referencePolicy === undefined) {
    const option = algorithm.useKlInReward ? "algorithm.useKlInReward" : "actor.useKlLoss";
    const message = `referencePolicy: is undefined, and ${option} needs one`;
    throw new TrainerInputError("referencePolicy", message);
  }
  if (run.saveFreq > 0 && checkpoints === undefined) {
    const message = "checkpoints: are undefined, and run.saveFreq needs a folder";
    throw new TrainerInputError("checkpoints", message);
  }
  return settings;
}

/**
 * A program may change its directory while it trains: one run would have its files in two places.
 */
function withAbsoluteFolders(settings: TrainingSettings): TrainingSettings {
  const { checkpoints, rolloutDataDir, validationDataDir } = settings;
  const resumePath = checkpoints?.resumePath ?? null;
  return {
    ...settings,
    checkpoints: checkpoints && {
      ...checkpoints,
      folder: resolve(checkpoints.folder),
      resumePath: resumePath === null ? resumePath : absolutePath(resumePath),
    },
    rolloutDataDir: rolloutDataDir === null ? null : resolve(rolloutDataDir),
    validationDataDir: validationDataDir === null ? null : resolve(validationDataDir),
  };
}

function asInputError<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new TrainerInputError(error.key, error.message, { cause: error });
  }
}

/** Throws ConfigError, which names the option. */
export function settingsOf(given: GivenOptions, context: SettingsContext): TrainingSettings {
  const { trainBatchSize, hasOwnSchedule } = context;
  const { resumePath } = given.checkpoints ?? {};
  const isDrawn = given.rollout?.validation?.doSample === true;
  const own = ownDefaults({ ...context, resumePath, drawsValidation: isDrawn });
  const values = readTrainingOptions(given, own);
  checkFit({ values, ...context }, (option) => option);
  const { actor, criticOptions, rollout, staleness, run } = values;
  const schedule = hasOwnSchedule ? undefined : values.schedule;
  const { filterGroups, ...algorithm } = known(values.algorithm);
  const { rolloutCorrection } = algorithm;
  const isBypassed = rolloutCorrection?.bypassMode === true;
  const { maxResponseLength, validation } = rollout;
  return {
    ...values,
    schedule,
    algorithm: {
      ...algorithm,
      filterGroups:
        filterGroups?.enable === true
          ? { ...filterGroups, metric: filterGroups.metric ?? "reward" }
          : undefined,
    },
    actor: {
      ...known(actor),
      // A side without a ratio of its own takes the common one: a loss would take its default.
      clipRatioLow: actor.clipRatioLow ?? actor.clipRatio,
      clipRatioHigh: actor.clipRatioHigh ?? actor.clipRatio,
      globalBatchInfo: { lossScaleFactor: actor.lossScaleFactor ?? maxResponseLength },
      ...(isBypassed ? { lossMode: "bypass_mode", rolloutCorrection } : {}),
    },
    criticOptions: {
      ...criticOptions,
      lossScaleFactor: criticOptions.lossScaleFactor ?? maxResponseLength,
    },
    rollout: {
      ...rollout,
      // The likeliest token has no temperature.
      validation: drawsValidation(validation)
        ? { ...validation, doSample: true }
        : { ...validation, doSample: false, temperature: rollout.temperature },
    },
    staleness: {
      ...staleness,
      numWarmupBatches: staleness.numWarmupBatches ?? Math.min(1, staleness.limit),
    },
    run: {
      ...run,
      valBeforeTrain: run.valBeforeTrain && context.hasValidation,
      overlapValidation: run.overlapValidation ?? schedule !== "sync",
      totalSteps: stepsOf(run, context.batchesPerEpoch),
    },
    trainBatchSize,
  };
}

function known<Section extends object>(section: Section): Known<Section> {
  const set = Object.entries(section).filter(([, value]) => (value ?? null) !== null);
  return Object.fromEntries(set) as Known<Section>;
}
