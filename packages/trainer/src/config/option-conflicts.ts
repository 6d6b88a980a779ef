/**
 * Checks between options: each value is allowed, and together they are not. Contains verl's own
 * checks (`validate_config`) that have a meaning here, and ours. A program and a configuration
 * share them; each calls options by its own names.
 */

import { ConfigError, nearestOf } from "@rayling/config-tree";
import type { TrainingValues } from "./options/training-options.ts";

export interface Whole {
  readonly values: TrainingValues;
  /** Prompts of a batch. */
  readonly trainBatchSize: number;
  readonly hasCritic: boolean;
  /** Whether the schedule is the user's own, which these checks do not know. */
  readonly hasOwnSchedule: boolean;
  /** Names that there are. */
  readonly estimators: readonly string[];
  readonly losses: readonly string[];
}

/**
 * How an option is called, by its name in a program; `critic` and `prompts.batchSize` are no
 * options there.
 */
export type Naming = (option: string) => string;

interface Misfit {
  readonly option: string;
  readonly value: unknown;
  /** Stands behind the option's name. */
  readonly problem: string;
  /** A way out: a value, or an option with its value. */
  readonly nearest?: string | undefined;
}

/** Throws ConfigError at the first that does not fit, by its name. */
export function checkFit(whole: Whole, name: Naming): void {
  for (const rule of rules) {
    const misfit = rule(whole, name);
    if (misfit === undefined) continue;
    const { option, problem, value, nearest } = misfit;
    throw new ConfigError(name(option), problem, value, nearest);
  }
}

type Rule = (whole: Whole, name: Naming) => Misfit | undefined;
type Schedule = TrainingValues["schedule"];

const miniBatches: Rule = ({ values, trainBatchSize }, name) => {
  const batch = `${name("prompts.batchSize")}, ${trainBatchSize}`;
  const sizes = {
    "actor.ppoMiniBatchSize": values.actor.ppoMiniBatchSize,
    "criticOptions.ppoMiniBatchSize": values.criticOptions.ppoMiniBatchSize,
  };
  for (const [option, value] of Object.entries(sizes)) {
    if (value > trainBatchSize) {
      return { option, value, problem: `is ${value}, more than ${batch}` };
    }
    if (trainBatchSize % value !== 0) {
      return { option, value, problem: `is ${value}, which does not divide ${batch}` };
    }
  }
  return undefined;
};

const critic: Rule = ({ values, hasCritic }, name) => {
  if (values.algorithm.advEstimator !== "gae" || hasCritic) return undefined;
  const problem = `${name("algorithm.advEstimator")} gae needs a critic, and there is none`;
  return { option: "critic", value: false, problem };
};

/** verl trains nothing in these steps where there is no critic. */
const criticAlone: Rule = ({ values, hasCritic }, name) => {
  const { criticWarmup: value } = values.run;
  if (value <= 1 || hasCritic) return undefined;
  const option = "run.criticWarmup";
  const problem = `is ${value}, and there is no critic (${name("critic")}) that the steps before step ${value} could train: they would train nothing`;
  return { option, value, problem, nearest: `${name(option)}=0` };
};

const resuming: Rule = ({ values: { checkpoints } }, name) => {
  const { resumeMode, resumePath: value = null } = checkpoints ?? {};
  const option = "checkpoints.resumePath";
  if (value === null) {
    if (resumeMode !== "resume_path") return undefined;
    const problem = `is needed where ${name("checkpoints.resumeMode")} is resume_path`;
    return { option, value, problem };
  }
  if (/global_step_\d+\/*$/.test(value)) return undefined;
  return { option, value, problem: `is ${value}: must be the path of a folder global_step_N` };
};

const names: Rule = ({ values: { algorithm, actor }, estimators, losses }) => {
  const named = [
    ["algorithm.advEstimator", algorithm.advEstimator, estimators],
    ["actor.lossMode", actor.lossMode, losses],
  ] as const;
  for (const [option, value, known] of named) {
    if (known.includes(value)) continue;
    const problem = `is "${value}": there is none of that name; there are ${known.join(", ")}`;
    return { option, value, problem, nearest: nearestOf(value, known) };
  }
  return undefined;
};

const components: Rule = ({ values: { algorithm } }, name) => {
  const { gdpoRewardKeys: value } = algorithm;
  if (algorithm.advEstimator !== "gdpo" || (value ?? []).length > 0) return undefined;
  const problem = `is ${value === null ? "null" : "empty"}, and ${name("algorithm.advEstimator")} gdpo needs the rewards that it is made of`;
  return { option: "algorithm.gdpoRewardKeys", value, problem };
};

/** In the bypass the loss is the bypass's. */
const bypass: Rule = ({ values: { algorithm, actor } }, name) => {
  const { lossMode: value } = actor;
  const isBypassed = algorithm.rolloutCorrection?.bypassMode === true;
  const option = "algorithm.rolloutCorrection.bypassMode";
  if (value === "bypass_mode" && !isBypassed) {
    const problem = `must be true, which ${name("actor.lossMode")} bypass_mode needs`;
    return { option, value: algorithm.rolloutCorrection?.bypassMode, problem };
  }
  if (!isBypassed || value === "bypass_mode" || value === "vanilla") return undefined;
  const problem = `is ${value}, and must be left out where ${name(option)} is true, whose loss it is`;
  return { option: "actor.lossMode", value, problem };
};

/** Estimators that whiten or count over the whole batch: a part of it would give another result. */
const perBatch = ["gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gdpo", "gpg"];

/** Schedules that train on parts of a batch as their rewards come. */
const splitting: readonly Schedule[] = ["mini-batch-pipeline", "one-step-pipeline", "streaming"];

/** Refuses algorithms that the schedule cannot run. */
const schedules: Rule = ({ values, hasOwnSchedule }, name) => {
  const { schedule, algorithm, staleness, adaptiveMiniBatch } = values;
  if (hasOwnSchedule) return undefined;
  const misfit = (
    option: string,
    value: unknown,
    able: readonly Schedule[],
    why: string,
  ): Misfit => {
    const problem = `is ${String(value)}, which needs ${name("schedule")} ${able.join(" or ")}, ${why}; it is ${schedule}`;
    return { option, value, problem, nearest: `${name("schedule")}=${able[0]}` };
  };
  if (staleness.limit > 0 && schedule !== "streaming") {
    const why =
      "which alone generates further ahead than others, whose rollouts are as old as they are";
    return misfit("staleness.limit", staleness.limit, ["streaming"], why);
  }
  const splits = splitting.includes(schedule);
  const whole: readonly Schedule[] =
    schedule === "mini-batch-pipeline"
      ? ["sync", "one-step-off-policy"]
      : ["one-step-off-policy", "sync"];
  const why = "which train on all of a batch at once";
  const { advEstimator, rolloutCorrection } = algorithm;
  if (splits && perBatch.includes(advEstimator)) {
    const found = misfit("algorithm.advEstimator", advEstimator, whole, why);
    // gae is the default; a pipeline was chosen.
    return advEstimator === "gae" ? { ...found, nearest: `${name(found.option)}=grpo` } : found;
  }
  // Without weights there is nothing to divide.
  if (
    splits &&
    rolloutCorrection?.rolloutIsBatchNormalize === true &&
    rolloutCorrection.rolloutIs !== null
  ) {
    return misfit("algorithm.rolloutCorrection.rolloutIsBatchNormalize", true, whole, why);
  }
  if (!adaptiveMiniBatch || splits) return undefined;
  const nearest = schedule === "sync" ? "mini-batch-pipeline" : "one-step-pipeline";
  const able = [nearest, ...splitting.filter((one) => one !== nearest)] as const;
  return misfit("adaptiveMiniBatch", true, able, "which train on parts of a batch");
};

const warmup: Rule = ({ values: { staleness } }, name) => {
  const { limit, numWarmupBatches: value } = staleness;
  const option = "staleness.numWarmupBatches";
  if (value === null || value <= limit) return undefined;
  const problem = `is ${value}, more than ${name("staleness.limit")}, ${limit}`;
  return { option, value, problem, nearest: `${name(option)}=${limit}` };
};

const rules: readonly Rule[] = [
  miniBatches,
  critic,
  criticAlone,
  resuming,
  names,
  bypass,
  schedules,
  components,
  warmup,
];
