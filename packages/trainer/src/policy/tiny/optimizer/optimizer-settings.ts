/**
 * Settings of the optimiser by verl's names (FSDPOptimizerConfig), with torch's defaults where verl
 * leaves them to torch.
 */

import { learningRateSchedule, warmupSteps } from "../../../algorithms/learning-rate.ts";
import type { LearningRateSettings } from "../../../algorithms/learning-rate.ts";
import { TrainerInputError } from "../../../errors.ts";

export interface OptimizerSettings {
  /** The learning rate that the schedule starts from. Default 1e-3. */
  readonly lr?: number;
  /**
   * Decay of all weights: a step without a gradient leaves 1 - lr * weightDecay of them. Default
   * 0.01.
   */
  readonly weightDecay?: number;
  /** Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** Default 1e-8. */
  readonly eps?: number;
  /** The longest gradient; a longer one is shortened to it. Default 1. */
  readonly clipGrad?: number;
  /** Schedule after the warm-up. Default "constant". */
  readonly lrSchedulerType?: NonNullable<LearningRateSettings["lrSchedulerType"]>;
  /**
   * Steps of the schedule until the learning rate is whole; -1 takes the ratio instead. Default -1.
   */
  readonly lrWarmupSteps?: number;
  /**
   * Share of totalTrainingSteps that warms up. Default null: 0, but after a supervised start the
   * first 20 steps warm up.
   */
  readonly lrWarmupStepsRatio?: number | null;
  /** Last step of the schedules other than constant, which need it. Default -1: unknown. */
  readonly totalTrainingSteps?: number;
  /** Share of lr at the end. Default 0. */
  readonly minLrRatio?: number;
  /** Cycles of the cosine; half a cycle goes down once. Default 0.5. */
  readonly numCycles?: number;
  /**
   * Whether steps are counted from 0, as verl does, or by the cosine from 1. Default null: the
   * warm-up counts its steps from 1, so that the first one learns, and what follows counts as verl.
   */
  readonly zeroIndexedStep?: boolean | null;
}

export type ResolvedOptimizerSettings = Required<OptimizerSettings>;

const standard: ResolvedOptimizerSettings = {
  lr: 1e-3,
  weightDecay: 0.01,
  betas: [0.9, 0.999],
  eps: 1e-8,
  clipGrad: 1,
  lrSchedulerType: "constant",
  lrWarmupSteps: -1,
  lrWarmupStepsRatio: null,
  totalTrainingSteps: -1,
  minLrRatio: 0,
  numCycles: 0.5,
  zeroIndexedStep: null,
};

/** @throws TrainerInputError that names the setting */
export function optimizerSettingsOf(settings: OptimizerSettings): ResolvedOptimizerSettings {
  const resolved: ResolvedOptimizerSettings = { ...standard };
  for (const [name, value] of Object.entries(settings)) {
    if (value !== undefined) Object.assign(resolved, { [name]: value });
  }
  const { lr, weightDecay, betas, eps, clipGrad, lrSchedulerType, lrWarmupSteps } = resolved;
  const { lrWarmupStepsRatio, totalTrainingSteps, minLrRatio, numCycles } = resolved;
  const wrong = (name: string, wanted: string, value: unknown): TrainerInputError =>
    new TrainerInputError(
      `optim.${name}`,
      `optim.${name} must be ${wanted}; it is ${String(value)}`,
    );
  const ratio = lrWarmupStepsRatio ?? 0;
  const amounts = { lr, weightDecay, lrWarmupStepsRatio: ratio, numCycles };
  for (const [name, value] of Object.entries(amounts)) {
    if (!(Number.isFinite(value) && value >= 0)) throw wrong(name, "a number of at least 0", value);
  }
  for (const [name, value] of Object.entries({ eps, clipGrad })) {
    if (!(value > 0)) throw wrong(name, "above 0", value);
  }
  if (betas.length !== 2 || !betas.every((beta) => beta >= 0 && beta < 1)) {
    throw wrong("betas", "two numbers from 0 to below 1", betas);
  }
  if (!(minLrRatio >= 0 && minLrRatio <= 1)) throw wrong("minLrRatio", "from 0 to 1", minLrRatio);
  for (const [name, value] of Object.entries({ lrWarmupSteps, totalTrainingSteps })) {
    if (!Number.isSafeInteger(value)) throw wrong(name, "a whole number", value);
  }
  const needsTotal = lrSchedulerType !== "constant" || (lrWarmupSteps < 0 && ratio > 0);
  if (needsTotal && totalTrainingSteps < 1) {
    throw wrong("totalTrainingSteps", "known for this schedule", totalTrainingSteps);
  }
  learningRateOf(resolved, false);
  return resolved;
}

/**
 * The learning rate by how many steps of the schedule are over: verl's, but for the steps of a
 * warm-up, which count from 1 unless zeroIndexedStep is set: counted from 0 the first update would
 * change nothing. What comes behind the warm-up counts from 0, so that the first of T steps of a
 * decay has all of the learning rate and the last one learns, too. Behind the last one it stays,
 * where verl's cosine would rise again.
 *
 * @param isSupervised whether the weights had a supervised start
 * @throws TrainerInputError for an unknown schedule
 */
export function learningRateOf(
  settings: ResolvedOptimizerSettings,
  isSupervised: boolean,
): (stepsBefore: number) => number {
  const { lr, lrSchedulerType, totalTrainingSteps, minLrRatio, numCycles } = settings;
  const { zeroIndexedStep } = settings;
  const warmup = warmupOf(settings, isSupervised);
  const factor = learningRateSchedule({
    lrSchedulerType,
    numWarmupSteps: warmup,
    numTrainingSteps: Math.max(0, totalTrainingSteps),
    minLrRatio,
    numCycles,
    zeroIndexedStep: zeroIndexedStep ?? true,
  });
  // The cosine adds 1 to it by itself where it counts from 1.
  const end = zeroIndexedStep === false ? totalTrainingSteps - 1 : totalTrainingSteps;
  const last = totalTrainingSteps < 1 ? Infinity : end;
  return (stepsBefore) => {
    const isShifted = zeroIndexedStep === null && stepsBefore < warmup;
    return lr * factor(Math.min(isShifted ? stepsBefore + 1 : stepsBefore, last));
  };
}

/**
 * Adam's first steps move every weight by the whole learning rate, whatever the gradient: weights
 * that know something lose it. 2e-3 took a policy from 0.84 to 0.46 in 2 steps without a warm-up;
 * with one of 20 steps it was at 0.99 after 10.
 */
const stepsAfterSupervision = 20;

function warmupOf(settings: ResolvedOptimizerSettings, isSupervised: boolean): number {
  const { lrWarmupSteps, lrWarmupStepsRatio, totalTrainingSteps } = settings;
  const isAsked = lrWarmupSteps >= 0 || lrWarmupStepsRatio !== null;
  if (!isAsked) return isSupervised ? stepsAfterSupervision : 0;
  return warmupSteps(totalTrainingSteps, {
    lrWarmupSteps,
    lrWarmupStepsRatio: lrWarmupStepsRatio ?? 0,
  });
}
