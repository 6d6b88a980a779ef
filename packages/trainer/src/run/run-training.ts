/**
 * A whole run of a configuration: prompts, actors, reward loop, tracking, training. Everything that
 * it makes it ends.
 */

import { resolve } from "node:path";
import * as ray from "@rayling/core";
import { rewardPathsOf } from "@rayling/reward-loop/config";
import { resolveRewardModule } from "@rayling/reward-manager-registry";
import type { TrainerConfig } from "../config/options/index.ts";
import { verlTree } from "../config/print-config.ts";
import { stepsOf } from "../config/options/run-length.ts";
import type { PromptLengthOptions } from "../data/prompt-dataset.ts";
import { answerOf } from "../policy/policy-answers.ts";
import { PPOTrainer } from "../ppo-trainer.ts";
import type { PPOTrainerOptions, TrainingReport } from "../ppo-trainer.ts";
import { OutputFolders } from "../record/output-folders.ts";
import { runFolder } from "../tracking/run-folder.ts";
import { Tracking } from "../tracking/tracking.ts";
import type { TrackingLogger } from "../tracking/tracking-logger.ts";
import { workThenClose } from "../values/work-then-close.ts";
import { CheckpointRuns } from "./checkpoint-runs.ts";
import { checkAlgorithms } from "./check-algorithms.ts";
import { openPolicies } from "./configured-policies.ts";
import type { ConfiguredPolicies } from "./configured-policies.ts";
import { promptLimitsOf } from "./policy-kind.ts";
import { loaderOf, openPrompts } from "./prompt-files.ts";
import { checkLoggers } from "./rehearse-run.ts";
import type { ConfiguredPrompts } from "./prompt-files.ts";
import { RewardCounts } from "../tracking/reward-metrics.ts";
import type { RewardCount } from "../tracking/reward-metrics.ts";
import {
  checkOutputs,
  checkRecordIsFree,
  folderOfRuns,
  knownFolderOf,
  outputFoldersOf,
  withAbsoluteFolders,
} from "./run-outputs.ts";
import { totalStepsOf } from "./total-steps.ts";
import { trainerOptionsOf } from "./trainer-options.ts";

export interface RunTrainingOptions {
  /** Base of relative module paths. Default: the current directory. */
  readonly baseDirectory?: string | undefined;
  /** Further loggers beside `trainer.logger`. */
  readonly loggers?: readonly TrackingLogger[] | undefined;
  /** Whether the console prints all metrics of each step, as verl does. Default false. */
  readonly verbose?: boolean | undefined;
  /** Receives the supervised steps before the training so far, and how many there will be. */
  readonly onWarmStart?: ((steps: number, of: number) => void) | undefined;
}

export interface TrainingRun {
  readonly report: TrainingReport;
  /** Folder of the run's files. */
  readonly directory: string;
  readonly checkpoints: string;
  /** Rewards of the steps that this call trained; a resumed run has more. */
  readonly rewards: RewardCount;
}

/**
 * Needs `ray.init` before it.
 *
 * Rejects with TrainerConfigError, DatasetError, FolderBusyError, CheckpointError, TrackingError,
 * and as `PPOTrainer.create` and `fit`.
 */
export async function runTraining(
  config: TrainerConfig,
  { baseDirectory = process.cwd(), onWarmStart, ...logging }: RunTrainingOptions = {},
): Promise<TrainingRun> {
  // Missing things and settings that do not fit are refused before anything takes time.
  checkAlgorithms(config);
  checkLoggers(config);
  for (const path of rewardPathsOf(config.reward)) resolveRewardModule(path, baseDirectory);
  await checkOutputs(config, baseDirectory);
  await checkRecordIsFree(config, baseDirectory);
  const prompts = await openPrompts(config);
  const placed = withAbsoluteFolders(config);
  const runs = resolve(folderOfRuns(config));
  // Before anything is paid for: another training there may be this one, started twice.
  const known = await knownFolderOf(placed);
  const directory = known === undefined ? undefined : resolve(known);
  const outputs = await OutputFolders.open(outputFoldersOf(placed, directory));
  return await workThenClose(outputs, async () => {
    const policies = await openPolicies(config, {
      baseDirectory,
      totalSteps: totalStepsOf(config, prompts),
      onWarmStart,
      ...prompts,
    });
    try {
      const places = { baseDirectory, directory, runs, outputs, given: config };
      return await train(placed, prompts, policies, { ...places, ...logging });
    } finally {
      // One actor may have two roles.
      const actors = new Set(Object.values(policies).filter((actor) => actor !== undefined));
      await Promise.all([...actors].map((actor) => ray.kill(actor)));
    }
  });
}

interface TrainingPlaces {
  readonly baseDirectory: string;
  /** The folder of the run's files, if it is known before the run has one of its own. */
  readonly directory: string | undefined;
  /** The folder below which a run without one gets one of its own. */
  readonly runs: string;
  readonly outputs: OutputFolders;
  /** The configuration as it was written, for those who look at the run. */
  readonly given: TrainerConfig;
}

async function train(
  config: TrainerConfig,
  prompts: ConfiguredPrompts,
  policies: ConfiguredPolicies,
  { given, loggers = [], verbose, ...places }: RunTrainingOptions & TrainingPlaces,
): Promise<TrainingRun> {
  const { trainer } = config;
  const lengths = lengthsOf(config, policies);
  const [own, validation] = await Promise.all([
    prompts.train.limited(lengths),
    prompts.validation?.limited(lengths),
  ]);
  const loader = loaderOf(own, config);
  const options = trainerOptionsOf(config, places.baseDirectory);
  const rewards = new RewardCounts();
  await using tracking = await Tracking.open({
    logger: trainer.logger,
    loggers: [...loggers, new CheckpointRuns(trainer.defaultLocalDir), rewards],
    verbose,
    projectName: trainer.projectName,
    experimentName: trainer.experimentName,
    totalSteps: stepsOf(trainer, loader.batchesPerEpoch),
    logValGenerations: trainer.logValGenerations,
    config: verlTree(given),
    directory: places.directory ?? (await runFolder(places.runs)),
  });
  const all = { ...options, ...policies, prompts: loader, validationPrompts: validation, tracking };
  const report = await fitted(all, places.outputs).catch(async (error: unknown) => {
    await tracking.close({ error });
    throw error;
  });
  // Its loggers have all reports then.
  await tracking.close();
  return {
    report,
    rewards: rewards.count,
    directory: tracking.run.directory,
    checkpoints: trainer.defaultLocalDir,
  };
}

async function fitted(options: PPOTrainerOptions, outputs: OutputFolders): Promise<TrainingReport> {
  const ppo = await PPOTrainer.create(options, outputs);
  return await workThenClose(ppo, () => ppo.fit());
}

function lengthsOf(config: TrainerConfig, { policy }: ConfiguredPolicies): PromptLengthOptions {
  return promptLimitsOf(config, (some) =>
    answerOf(
      "the policy, asked for lengths of prompts,",
      policy.promptLengths.remote(some),
      config.trainer,
    ),
  );
}
