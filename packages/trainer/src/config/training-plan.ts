/**
 * The plan of a configuration, without running it: steps and batch sizes in order and, where the
 * times of phases are known, the expected time.
 */

import { asksScorers, rewardLoopOptionsOf, rewardModelsIn } from "@rayling/reward-loop/config";
import type { RewardModelUse } from "@rayling/reward-loop";
import type { RewardConfig } from "@rayling/reward-loop/config";
import { expectedStepSeconds, rewardMakespan } from "./expected-time.ts";
import type { TrainerConfig } from "./options/index.ts";
import { promptLines } from "./prompts-text.ts";
import type { PromptShapes } from "./prompts-text.ts";
import { stepsOf } from "./options/run-length.ts";
import { sumOf } from "../values/sums.ts";

export interface DatasetSizes {
  /** Rows to train on; undefined where the files were not read. */
  readonly train: number | undefined;
  readonly validation: number | undefined;
}

export interface TrainingPlan {
  /** Undefined where the data set's size is not known. */
  readonly stepsPerEpoch: number | undefined;
  readonly totalSteps: number | undefined;
  readonly promptsPerStep: number;
  readonly samplesPerStep: number;
  /** Updates of the policy in a step. */
  readonly updatesPerStep: number;
  readonly samplesPerUpdate: number;
  /** Rewards at once. */
  readonly rewardSlots: number;
  /** In all. */
  readonly validations: number | undefined;
  readonly samplesPerValidation: number | undefined;
  readonly checkpoints: number | undefined;
  /** Undefined where no times are known. */
  readonly expected: ExpectedRun | undefined;
}

export interface ExpectedRun {
  /** M: of all rewards of a step. */
  readonly makespanSeconds: number;
  readonly stepSeconds: number;
  /** Seconds of a step with the schedule sync. */
  readonly baselineStepSeconds: number;
  /** Seconds of the whole run, with validation and checkpoints. */
  readonly totalSeconds: number | undefined;
}

/** Slots of a worker without `max_concurrency` (RewardLoopOptions.concurrency). */
const SLOTS_PER_WORKER = 16;

export function trainingPlanOf(config: TrainerConfig, sizes: DatasetSizes): TrainingPlan {
  const { data, trainer, maxConcurrency, reward } = config;
  const { actor, rollout } = config.actorRolloutRef;
  const stepsPerEpoch =
    sizes.train === undefined ? undefined : Math.floor(sizes.train / data.trainBatchSize);
  const totalSteps =
    stepsPerEpoch === undefined
      ? (trainer.totalTrainingSteps ?? undefined)
      : stepsOf(trainer, stepsPerEpoch);
  const hasValidation = (sizes.validation ?? data.valFiles.length) > 0;
  const before = hasValidation && (trainer.valBeforeTrain || trainer.valOnly) ? 1 : 0;
  const steps = trainer.valOnly ? 0 : totalSteps;
  const tests = hasValidation ? times(trainer.testFreq, steps) : 0;
  const validations = tests === undefined ? undefined : before + tests;
  const plan = {
    stepsPerEpoch,
    totalSteps: steps,
    promptsPerStep: data.trainBatchSize,
    samplesPerStep: data.trainBatchSize * rollout.n,
    updatesPerStep: (data.trainBatchSize / actor.ppoMiniBatchSize) * actor.ppoEpochs,
    samplesPerUpdate: actor.ppoMiniBatchSize * rollout.n,
    rewardSlots: Math.min(maxConcurrency ?? slotsOf(reward), rewardBoundOf(reward)),
    validations,
    samplesPerValidation:
      sizes.validation === undefined ? undefined : sizes.validation * rollout.valKwargs.n,
    checkpoints: times(trainer.saveFreq, steps),
  };
  return { ...plan, expected: expectedOf(config, plan) };
}

/**
 * Returns the slots of all workers. Several rewards share them, and each sample takes a slot of
 * each.
 */
function slotsOf({ num_workers: workers, rewards }: RewardConfig): number {
  const functions = Object.values(rewards).map(({ cascade }) =>
    Math.max(1, Object.keys(cascade).length),
  );
  const share = functions.length === 0 ? 1 : Math.min(...functions) / sumOf(functions);
  return Math.max(1, Math.floor(workers * share)) * SLOTS_PER_WORKER;
}

/**
 * Returns how many rewards the limits allow at once, over all workers; without limits, those of the
 * manager rate_limited count. For several rewards, the smallest bound counts; a cascade adds its
 * stages.
 */
export function rewardBoundOf(reward: RewardConfig): number {
  const bound = ({ limits }: Pick<RewardConfig, "limits">): number => boundOf(reward, limits);
  const all = (stages: RewardConfig["cascade"]): number => sumOf(Object.values(stages).map(bound));
  const bounds = Object.values(reward.rewards).map((one) =>
    Object.keys(one.cascade).length === 0 ? bound(one) : all(one.cascade),
  );
  if (bounds.length > 0) return Math.min(...bounds);
  return Object.keys(reward.cascade).length === 0 ? bound(reward) : all(reward.cascade);
}

function boundOf(reward: RewardConfig, limits: RewardConfig["limits"]): number {
  const { max_concurrent: most, adaptive } = limits;
  if (most === "auto") return adaptive.max ?? Infinity;
  if (most !== null) return most;
  const { source, name } = reward.reward_manager;
  const isRateLimited = source === "register" && ["rate_limited", "limited"].includes(name);
  return isRateLimited ? reward.max_concurrent : Infinity;
}

/** At every so many steps, and at the last. */
function times(every: number, steps: number | undefined): number | undefined {
  if (every <= 0) return 0;
  return steps === undefined ? undefined : Math.ceil(steps / every);
}

function expectedOf(
  config: TrainerConfig,
  plan: Omit<TrainingPlan, "expected">,
): ExpectedRun | undefined {
  const { rayling, data, algorithm } = config;
  const { actor } = config.actorRolloutRef;
  if (Object.keys(rayling.expectedSeconds).length === 0) return undefined;
  // The bypass does not ask the policy for log-probabilities before the update.
  const { bypassMode } = algorithm.rolloutCorrection;
  const seconds = { ...rayling.expectedSeconds, ...(bypassMode ? { oldLogProb: 0 } : {}) };
  const makespanSeconds = rewardMakespan({
    samples: plan.samplesPerStep,
    slots: plan.rewardSlots,
    seconds: seconds.reward ?? 0,
  });
  const timing = {
    seconds,
    makespan: makespanSeconds,
    miniBatches: data.trainBatchSize / actor.ppoMiniBatchSize,
    isStale: (rayling.staleness.numWarmupBatches ?? rayling.staleness.limit) > 0,
  };
  const stepSeconds = (also: number): number =>
    expectedStepSeconds({ ...timing, schedule: rayling.schedule, also });
  return {
    makespanSeconds,
    stepSeconds: stepSeconds(0),
    baselineStepSeconds: expectedStepSeconds({ ...timing, schedule: "sync", also: 0 }),
    totalSeconds: totalOf(config, stepSeconds, plan),
  };
}

/**
 * Validation and checkpoints are a part of their steps: where the rewards of the next one are what
 * takes long, they take no time of their own.
 */
function totalOf(
  { rayling, trainer }: TrainerConfig,
  stepSeconds: (also: number) => number,
  { totalSteps, validations, checkpoints }: Omit<TrainingPlan, "expected">,
): number | undefined {
  if (totalSteps === undefined || validations === undefined || checkpoints === undefined) {
    return undefined;
  }
  const { testing = 0, saveCheckpoint = 0 } = rayling.expectedSeconds;
  const tests = times(trainer.testFreq, totalSteps) ?? 0;
  const inSteps = Math.min(tests, validations);
  const plain = stepSeconds(0);
  return (
    totalSteps * plain +
    inSteps * (stepSeconds(testing) - plain) +
    (validations - inSteps) * testing +
    checkpoints * (stepSeconds(saveCheckpoint) - plain)
  );
}

/** For people. @param shapes of the prompts, where they were read */
export function planText(config: TrainerConfig, plan: TrainingPlan, shapes?: PromptShapes): string {
  const { rayling, trainer, data, algorithm, ignored, notes, reward } = config;
  const { rollout } = config.actorRolloutRef;
  const source = rayling.task ?? data.trainFiles.join(", ");
  const lines: [string, string][] = [
    ["policy", rayling.policy],
    ["algorithm", `${algorithm.advEstimator}, loss ${lossOf(config)}`],
    ["schedule", `${rayling.schedule}${stalenessText(config)}`],
    ["data", source],
    ...(shapes === undefined || rayling.task !== null ? [] : promptLines(shapes)),
    ["steps", stepsText(plan, trainer)],
    ["step", `${plan.promptsPerStep} prompts x ${rollout.n} = ${plan.samplesPerStep} samples`],
    ["updates", `${plan.updatesPerStep} in a step, of ${plan.samplesPerUpdate} samples`],
    ["rewards", `${rewardText(reward, rayling)}, ${plan.rewardSlots} at once`],
    ...serversOf(reward),
    ...(rayling.warmStartSteps === 0
      ? []
      : [pair("warm start", `${rayling.warmStartSteps} steps on the answers of ${source}`)]),
    ["validation", validationText(plan)],
    ["checkpoints", checkpointText(plan, trainer.defaultLocalDir)],
    ...expectedLines(plan.expected),
    ...notes.map((note) => pair("note", note)),
    ...(ignored.length === 0 ? [] : [pair("not used", ignored.join(", "))]),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  return `${lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n")}\n`;
}

/** Says which of the two ends a run that was given both its steps and its epochs. */
function stepsText(
  { totalSteps, stepsPerEpoch }: TrainingPlan,
  { totalTrainingSteps, totalEpochs, valOnly }: TrainerConfig["trainer"],
): string {
  if (totalSteps === undefined) return "as many as the data have";
  const steps = String(totalSteps);
  if (stepsPerEpoch === undefined) {
    return totalEpochs === null
      ? steps
      : `${steps}, or fewer where trainer.total_epochs, ${totalEpochs}, are over before`;
  }
  const epochs = `${steps} (${stepsPerEpoch} in an epoch)`;
  const isShorter = !valOnly && totalTrainingSteps !== null && totalSteps < totalTrainingSteps;
  return isShorter
    ? `${epochs}: trainer.total_epochs, ${totalEpochs}, are over before trainer.total_training_steps, ${totalTrainingSteps}`
    : epochs;
}

/** Who scores. */
function rewardText(reward: RewardConfig, { task }: TrainerConfig["rayling"]): string {
  const { custom_reward_function: custom, reward_manager: manager, rewards, cascade } = reward;
  const several = { ...rewards, ...cascade };
  if (Object.keys(several).length > 0) return Object.keys(several).join(", ");
  const byData = task === null ? "the scorers by data source" : `the task ${task}`;
  const scorer = asksScorers(reward) ? byData : modelText(reward);
  return `${custom.path ?? scorer} by ${manager.name}`;
}

/** Returns the reward model that scores where there is no function. */
function modelText(reward: RewardConfig): string {
  const scoring = rewardModelsIn(reward).find(
    ({ name }) => reward.asked_models?.includes(name) ?? true,
  );
  return `the reward model ${scoring?.model.model_path}`;
}

/**
 * Returns a line for each reward model, with its servers and their GPUs. Throws RewardConfigError
 * where they cannot be had.
 */
function serversOf(reward: RewardConfig): [string, string][] {
  const { rewardModel, rewardModels = {} } = rewardLoopOptionsOf(reward);
  return [
    ...(rewardModel === undefined ? [] : [["servers", serversText(rewardModel)] as const]),
    ...Object.entries(rewardModels).map(
      ([name, use]) => [`servers of ${name}`, serversText(use)] as const,
    ),
  ].map(([name, text]) => [name, text]);
}

function serversText({ engine, servers, launch }: RewardModelUse): string {
  if (launch === undefined) return `${servers?.join(", ")} (${engine})`;
  const { replicas = 1, gpusPerReplica = 1, firstGpu = 0, command } = launch;
  const gpus = `${gpusPerReplica} GPU${gpusPerReplica === 1 ? "" : "s"} each`;
  const last = firstGpu + replicas * gpusPerReplica - 1;
  const which = firstGpu === last ? `GPU ${last}` : `GPUs ${firstGpu} to ${last}`;
  return `${replicas} x ${engine}, ${gpus} (${which}), started by ${command}`;
}

/** The bypass has its own. */
function lossOf({ algorithm, actorRolloutRef }: TrainerConfig): string {
  const { bypassMode, lossType } = algorithm.rolloutCorrection;
  if (bypassMode) return `bypass_mode (${lossType})`;
  return actorRolloutRef.actor.policyLoss.lossMode;
}

function stalenessText({ rayling }: TrainerConfig): string {
  const { limit, strategy } = rayling.staleness;
  return limit === 0 ? "" : `, at most ${limit} steps stale (${strategy})`;
}

function validationText({ validations, samplesPerValidation }: TrainingPlan): string {
  if (validations === 0) return "none";
  const often = validations === undefined ? "yes" : `${validations} times`;
  return samplesPerValidation === undefined ? often : `${often}, ${samplesPerValidation} samples`;
}

function checkpointText({ checkpoints }: TrainingPlan, folder: string): string {
  if (checkpoints === 0) return "none";
  return `${checkpoints === undefined ? "" : `${checkpoints} `}in ${folder}`;
}

function expectedLines(expected: ExpectedRun | undefined): [string, string][] {
  if (expected === undefined) {
    return [["expected", "not known: rayling.expected_seconds says how long phases take"]];
  }
  const { makespanSeconds, stepSeconds, baselineStepSeconds, totalSeconds } = expected;
  const less = 1 - stepSeconds / baselineStepSeconds;
  const compared =
    less === 0
      ? ""
      : `, ${(100 * less).toFixed(1)} % less than sync (${inWords(baselineStepSeconds)})`;
  return [
    ["rewards of a step", inWords(makespanSeconds)],
    ["expected step", `${inWords(stepSeconds)}${compared}`],
    ...(totalSeconds === undefined ? [] : [pair("expected in all", inWords(totalSeconds))]),
  ];
}

function inWords(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${seconds.toFixed(0)} s`;
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}`;
}

function pair(name: string, value: string): [string, string] {
  return [name, value];
}
