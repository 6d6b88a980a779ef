/**
 * Factors of the learning rate for each step: a linear warm-up, then the chosen schedule
 * (verl/utils/torch_functional.py, `optim.*`).
 */

import { TrainerInputError } from "../errors.ts";
import { clamp } from "./matrix.ts";

/** verl's `optim.*`. */
export interface LearningRateSettings {
  /**
   * wsd: warm-up, stable, decay by a cosine. linear is Megatron's `lr_decay_style`. Default
   * "constant".
   */
  readonly lrSchedulerType?: "constant" | "linear" | "cosine" | "wsd";
  /** Default 0. */
  readonly numWarmupSteps?: number;
  /** Needed for all but constant. */
  readonly numTrainingSteps?: number;
  /** Factor at the end. Default 0. */
  readonly minLrRatio?: number;
  /** Factor at which the warm-up of cosine begins. Default 0. */
  readonly initLrRatio?: number;
  /** Cycles of the cosine; half a cycle goes down once. Default 0.5. */
  readonly numCycles?: number;
  /** Whether the cosine counts steps from 0 and not from 1. Default true. */
  readonly zeroIndexedStep?: boolean;
  /** Share of the steps after the warm-up at which wsd stays stable. Default 0.9. */
  readonly stableRatio?: number;
}

/** The factor of a step, from 0 on. */
export type LearningRateSchedule = (step: number) => number;

/** Throws TrainerInputError for an unknown type, and for ratios that are none. */
export function learningRateSchedule(settings: LearningRateSettings = {}): LearningRateSchedule {
  const { lrSchedulerType: type = "constant", numWarmupSteps: warmup = 0 } = settings;
  const schedule = Object.hasOwn(schedules, type) ? schedules[type] : undefined;
  if (schedule === undefined) {
    throw new TrainerInputError(
      "lrSchedulerType",
      `there is no lr_scheduler_type "${type}"; there are ${Object.keys(schedules).join(", ")}`,
    );
  }
  const steps = settings.numTrainingSteps ?? (type === "constant" ? 0 : Number.NaN);
  if (!(steps >= 0)) {
    throw new TrainerInputError(
      "numTrainingSteps",
      `numTrainingSteps are missing, which ${type} needs`,
    );
  }
  const behind = schedule(settings, Math.max(0, steps - warmup), {
    least: ratioOf("minLrRatio", settings.minLrRatio ?? 0),
    cycles: settings.numCycles ?? 0.5,
  });
  const isCosine = type === "cosine";
  const initial = isCosine ? ratioOf("initLrRatio", settings.initLrRatio ?? 0) : 0;
  const first = isCosine && settings.zeroIndexedStep === false ? 1 : 0;
  return (given) => {
    const step = given + first;
    return step < warmup ? initial + ((1 - initial) * step) / warmup : behind(step - warmup);
  };
}

/** verl `lr_warmup_steps`, or, where that is below 0, `lr_warmup_steps_ratio` of all steps. */
export function warmupSteps(
  totalTrainingSteps: number,
  {
    lrWarmupSteps = -1,
    lrWarmupStepsRatio = 0,
  }: {
    readonly lrWarmupSteps?: number;
    readonly lrWarmupStepsRatio?: number;
  } = {},
): number {
  return lrWarmupSteps >= 0 ? lrWarmupSteps : Math.trunc(lrWarmupStepsRatio * totalTrainingSteps);
}

interface Decay {
  readonly least: number;
  readonly cycles: number;
}

/** Factor by schedule, from the number of steps after the warm-up and their total. */
const schedules: Readonly<
  Record<
    string,
    (settings: LearningRateSettings, steps: number, decay: Decay) => LearningRateSchedule
  >
> = {
  constant: () => () => 1,
  linear:
    (_settings, steps, { least }) =>
    (step) =>
      1 - (1 - least) * clamp(step / Math.max(1, steps), 0, 1),
  cosine:
    (_settings, steps, { least, cycles }) =>
    (step) =>
      Math.max(least, least + (1 - least) * waveAt(step / Math.max(1, steps), cycles)),
  wsd: ({ stableRatio = 0.9 }, steps, { least, cycles }) => {
    const stable = Math.trunc(steps * ratioOf("stableRatio", stableRatio));
    const decay = Math.max(1, steps - stable);
    return (step) => {
      if (step < stable) return 1;
      if (step >= steps) return least;
      return least + (1 - least) * waveAt((step - stable) / decay, cycles);
    };
  },
};

/** From 1 to 0 in half a cycle. */
function waveAt(progress: number, cycles: number): number {
  return 0.5 * (1 + Math.cos(2 * Math.PI * cycles * progress));
}

function ratioOf(name: string, ratio: number): number {
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new TrainerInputError(name, `${name} must be from 0 to 1; it is ${ratio}`);
}
