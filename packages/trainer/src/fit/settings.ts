/** Options with their defaults, and what does not fit together refused: TrainerInputError names the option. */

import type { ComputeAdvantageSettings } from "../algorithms/advantages/compute.ts";
import type { KlControllerSettings, KlPenaltyKind } from "../algorithms/kl.ts";
import type { LossAggMode } from "../algorithms/losses/aggregation.ts";
import type { PolicyLossSettings } from "../algorithms/losses/policy-loss.ts";
import { TrainerInputError } from "../errors.ts";
import type { ScheduleName, TrainingOptions, ValidationOptions } from "./options.ts";
import { isBatchNormalized, misfitOf } from "./schedule-needs.ts";

export interface TrainingSettings {
  readonly algorithm: {
    readonly advEstimator: string;
    readonly advantage: ComputeAdvantageSettings;
    readonly klCtrl: KlControllerSettings;
    readonly filterGroups:
      | { readonly metric: string; readonly maxNumGenBatches: number }
      | undefined;
  };
  readonly actor: {
    readonly ppoMiniBatchSize: number;
    readonly ppoEpochs: number;
    readonly lossMode: string;
    readonly policyLoss: PolicyLossSettings;
    readonly entropyCoeff: number;
    readonly useKlLoss: boolean;
    readonly klLossCoef: number;
    readonly klLossType: KlPenaltyKind;
  };
  readonly critic: {
    readonly cliprangeValue: number;
    readonly ppoMiniBatchSize: number;
    readonly ppoEpochs: number;
    readonly lossAggMode: LossAggMode;
    readonly lossScaleFactor: number;
  };
  readonly rollout: {
    readonly n: number;
    readonly maxResponseLength: number;
    readonly temperature: number;
    readonly topP: number;
    readonly topK: number;
  };
  readonly validation: Required<{
    readonly [Key in keyof ValidationOptions]: NonNullable<ValidationOptions[Key]>;
  }>;
  readonly staleness: {
    readonly limit: number;
    readonly numWarmupBatches: number;
    readonly strategy: "wait" | "drop";
  };
  readonly run: {
    readonly totalSteps: number;
    readonly testFreq: number;
    readonly overlapValidation: boolean;
    readonly valBeforeTrain: boolean;
    readonly valOnly: boolean;
    readonly saveFreq: number;
    readonly criticWarmup: number;
    readonly seed: number;
    readonly policyTimeoutMs: number;
  };
  readonly adaptiveMiniBatch: boolean;
  /** Prompts of a batch. */
  readonly trainBatchSize: number;
}

/** Of them what algorithms are asked with. */
export interface AlgorithmSettings extends Pick<
  TrainingSettings,
  "algorithm" | "actor" | "critic"
> {
  /** Rollouts of each prompt. */
  readonly n: number;
}

/** Throws TrainerInputError. */
export function readAlgorithmSettings(
  options: Pick<TrainingOptions, "algorithm" | "actor" | "critic" | "criticOptions" | "rollout">,
  trainBatchSize: number,
): AlgorithmSettings {
  return {
    algorithm: algorithmOf(options),
    actor: actorOf(options, trainBatchSize),
    critic: criticOf(options, trainBatchSize),
    n: whole("rollout.n", options.rollout.n ?? 1),
  };
}

/** @param schedule undefined for one of the user's own. Throws TrainerInputError. */
export function readTrainingSettings(
  options: TrainingOptions,
  schedule: ScheduleName | undefined,
): TrainingSettings {
  const { rollout, run = {}, staleness = {}, prompts } = options;
  const trainBatchSize = prompts.positionOf(0).batchSize;
  const steps = run.totalTrainingSteps ?? (run.totalEpochs ?? 1) * prompts.batchesPerEpoch;
  const { n, ...algorithms } = readAlgorithmSettings(options, trainBatchSize);
  const settings: TrainingSettings = {
    trainBatchSize,
    ...algorithms,
    rollout: {
      n,
      maxResponseLength: whole("rollout.maxResponseLength", rollout.maxResponseLength),
      ...drawing("rollout", rollout),
    },
    validation: {
      n: whole("rollout.validation.n", rollout.validation?.n ?? 1),
      doSample: rollout.validation?.doSample ?? false,
      ...drawing("rollout.validation", rollout.validation ?? {}),
    },
    staleness: {
      limit: whole("staleness.limit", staleness.limit ?? 0, 0),
      numWarmupBatches: whole(
        "staleness.numWarmupBatches",
        staleness.numWarmupBatches ?? Math.min(1, staleness.limit ?? 0),
        0,
      ),
      strategy: oneOf("staleness.strategy", staleness.strategy ?? "wait", ["wait", "drop"]),
    },
    run: {
      totalSteps: whole("run.totalTrainingSteps", steps),
      testFreq: whole("run.testFreq", run.testFreq ?? -1, -1),
      overlapValidation: run.overlapValidation ?? schedule !== "sync",
      valBeforeTrain: (run.valBeforeTrain ?? true) && options.validationPrompts !== undefined,
      valOnly: run.valOnly ?? false,
      saveFreq: whole("run.saveFreq", run.saveFreq ?? -1, -1),
      criticWarmup: whole("run.criticWarmup", run.criticWarmup ?? 0, 0),
      seed: whole("run.seed", run.seed ?? 1, 0),
      policyTimeoutMs: whole("run.policyTimeoutMs", run.policyTimeoutMs ?? 3_600_000),
    },
    adaptiveMiniBatch: options.adaptiveMiniBatch ?? false,
  };
  checkTogether(options, settings, schedule);
  return settings;
}

function algorithmOf({
  algorithm = {},
  critic,
}: Pick<TrainingOptions, "algorithm" | "critic">): TrainingSettings["algorithm"] {
  const { klCtrl, filterGroups, ...advantage } = algorithm;
  const { advEstimator = critic === undefined ? "grpo" : "gae" } = advantage;
  return {
    advEstimator,
    advantage: { ...advantage, advEstimator },
    klCtrl: klCtrl ?? { type: "fixed", klCoef: 0.001 },
    filterGroups:
      filterGroups === undefined
        ? undefined
        : {
            metric: filterGroups.metric ?? "score",
            maxNumGenBatches: whole(
              "algorithm.filterGroups.maxNumGenBatches",
              filterGroups.maxNumGenBatches ?? 10,
              0,
            ),
          },
  };
}

function actorOf(
  { actor = {}, algorithm = {}, rollout }: Pick<TrainingOptions, "actor" | "algorithm" | "rollout">,
  trainBatchSize: number,
): TrainingSettings["actor"] {
  const {
    ppoMiniBatchSize,
    ppoEpochs,
    lossMode,
    entropyCoeff,
    useKlLoss,
    klLossCoef,
    klLossType,
    lossScaleFactor = rollout.maxResponseLength,
    ...own
  } = actor;
  if (!(lossScaleFactor > 0)) refuse("actor.lossScaleFactor", "above 0", lossScaleFactor);
  const policyLoss = {
    ...own,
    // One for both sides, where they have none of their own: a loss would take its default for these.
    clipRatioLow: own.clipRatioLow ?? own.clipRatio ?? 0.2,
    clipRatioHigh: own.clipRatioHigh ?? own.clipRatio ?? 0.2,
    globalBatchInfo: { lossScaleFactor },
  };
  const { rolloutCorrection } = algorithm;
  const isBypassed = rolloutCorrection?.bypassMode === true;
  if (isBypassed && !["vanilla", "bypass_mode", undefined].includes(lossMode)) {
    const wanted =
      "left out where algorithm.rolloutCorrection.bypassMode is true, whose loss it is";
    refuse("actor.lossMode", wanted, lossMode);
  }
  if (lossMode === "bypass_mode" && !isBypassed) {
    const wanted = "true, which actor.lossMode bypass_mode needs";
    refuse("algorithm.rolloutCorrection.bypassMode", wanted, rolloutCorrection?.bypassMode);
  }
  return {
    ppoMiniBatchSize: whole("actor.ppoMiniBatchSize", ppoMiniBatchSize ?? trainBatchSize),
    ppoEpochs: whole("actor.ppoEpochs", ppoEpochs ?? 1),
    lossMode: isBypassed ? "bypass_mode" : (lossMode ?? "vanilla"),
    policyLoss: isBypassed ? { ...policyLoss, rolloutCorrection } : policyLoss,
    entropyCoeff: entropyCoeff ?? 0,
    useKlLoss: useKlLoss ?? false,
    klLossCoef: klLossCoef ?? 0.001,
    klLossType: klLossType ?? "low_var_kl",
  };
}

function criticOf(
  {
    criticOptions = {},
    actor = {},
    rollout,
  }: Pick<TrainingOptions, "criticOptions" | "actor" | "rollout">,
  trainBatchSize: number,
): TrainingSettings["critic"] {
  return {
    cliprangeValue: criticOptions.cliprangeValue ?? 0.5,
    lossAggMode: criticOptions.lossAggMode ?? actor.lossAggMode ?? "token-mean",
    lossScaleFactor: rollout.maxResponseLength,
    ppoMiniBatchSize: whole(
      "criticOptions.ppoMiniBatchSize",
      criticOptions.ppoMiniBatchSize ?? actor.ppoMiniBatchSize ?? trainBatchSize,
    ),
    ppoEpochs: whole("criticOptions.ppoEpochs", criticOptions.ppoEpochs ?? actor.ppoEpochs ?? 1),
  };
}

function drawing(
  option: string,
  {
    temperature = 1,
    topP = 1,
    topK = -1,
  }: Pick<ValidationOptions, "temperature" | "topP" | "topK">,
): { readonly temperature: number; readonly topP: number; readonly topK: number } {
  if (!(temperature > 0)) refuse(`${option}.temperature`, "above 0", temperature);
  if (!(topP > 0 && topP <= 1)) refuse(`${option}.topP`, "above 0 and at most 1", topP);
  if (topK !== -1) whole(`${option}.topK`, topK);
  return { temperature, topP, topK };
}

function checkTogether(
  options: TrainingOptions,
  settings: TrainingSettings,
  schedule: ScheduleName | undefined,
): void {
  const { algorithm, actor, trainBatchSize, staleness } = settings;
  if (trainBatchSize % actor.ppoMiniBatchSize !== 0) {
    refuse(
      "actor.ppoMiniBatchSize",
      `a divisor of the batch's ${trainBatchSize} prompts`,
      actor.ppoMiniBatchSize,
    );
  }
  if (algorithm.advEstimator === "gae" && options.critic === undefined) {
    refuse("critic", 'a critic, which advEstimator "gae" needs', undefined);
  }
  if (
    (algorithm.advantage.useKlInReward === true || actor.useKlLoss) &&
    options.referencePolicy === undefined
  ) {
    const option =
      algorithm.advantage.useKlInReward === true ? "algorithm.useKlInReward" : "actor.useKlLoss";
    refuse("referencePolicy", `a policy, which ${option} needs`, undefined);
  }
  if (options.checkpoints?.keep !== undefined) {
    whole("checkpoints.keep", options.checkpoints.keep);
  }
  if (settings.run.saveFreq > 0 && options.checkpoints === undefined) {
    refuse("checkpoints", "a folder, which run.saveFreq needs", undefined);
  }
  if (staleness.numWarmupBatches > staleness.limit) {
    const wanted = `at most staleness.limit, ${staleness.limit}`;
    refuse("staleness.numWarmupBatches", wanted, staleness.numWarmupBatches);
  }
  // A schedule of the user's own knows what it can do.
  if (schedule !== undefined) checkSchedule(settings, schedule);
}

const optionOf = {
  advEstimator: "algorithm.advEstimator",
  batchNormalize: "algorithm.rolloutCorrection.rolloutIsBatchNormalize",
  adaptiveMiniBatch: "adaptiveMiniBatch",
  stalenessLimit: "staleness.limit",
} as const;

function checkSchedule(settings: TrainingSettings, schedule: ScheduleName): void {
  const { algorithm, adaptiveMiniBatch, staleness } = settings;
  const misfit = misfitOf({
    schedule,
    advEstimator: algorithm.advEstimator,
    normalizesWeights: isBatchNormalized(algorithm.advantage.rolloutCorrection ?? {}),
    adaptsMiniBatch: adaptiveMiniBatch,
    stalenessLimit: staleness.limit,
  });
  if (misfit === undefined) return;
  const { part, schedules, why } = misfit;
  const given = {
    advEstimator: algorithm.advEstimator,
    batchNormalize: "true",
    adaptiveMiniBatch: "true",
    stalenessLimit: String(staleness.limit),
  }[part];
  throw new TrainerInputError(
    optionOf[part],
    `${optionOf[part]} is ${given}, which needs the schedule ${schedules.join(" or ")}, ${why}; it is ${schedule}`,
  );
}

function whole(option: string, value: number, least = 1): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  return refuse(option, `a whole number of at least ${least}`, value);
}

function oneOf<Value extends string>(
  option: string,
  value: Value,
  values: readonly Value[],
): Value {
  return values.includes(value) ? value : refuse(option, values.join(" or "), value);
}

function refuse(option: string, wanted: string, given: unknown): never {
  throw new TrainerInputError(option, `${option} must be ${wanted}; it is ${String(given)}`);
}
