/**
 * A whole run of a configuration: prompts, actors, reward loop, tracking, training. Everything that
 * it makes it ends.
 */

import { join, resolve } from "node:path";
import * as ray from "@rayling/core";
import { rewardPathsOf } from "@rayling/reward-loop/config";
import { resolveRewardModule } from "@rayling/reward-manager-registry";
import { hasCheckpoint } from "../checkpoint/checkpoint-folder.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { verlTree } from "../config/print-config.ts";
import type { PromptLengthOptions } from "../data/prompt-dataset.ts";
import { answerOf } from "../policy/policy-answers.ts";
import { PPOTrainer } from "../ppo-trainer.ts";
import type { PPOTrainerOptions, TrainingReport } from "../ppo-trainer.ts";
import { runFolder } from "../tracking/run-folder.ts";
import { Tracking } from "../tracking/tracking.ts";
import type { TrackingLogger } from "../tracking/tracking-logger.ts";
import { workThenClose } from "../values/work-then-close.ts";
import { CheckpointRuns, runOfCheckpoint } from "./checkpoint-runs.ts";
import { checkAlgorithms } from "./check-algorithms.ts";
import { openPolicies } from "./configured-policies.ts";
import type { ConfiguredPolicies } from "./configured-policies.ts";
import { promptLimitsOf } from "./policy-kind.ts";
import { loaderOf, openPrompts } from "./prompt-files.ts";
import { checkLoggers } from "./rehearse-run.ts";
import type { ConfiguredPrompts } from "./prompt-files.ts";
import { RewardCounts } from "../tracking/reward-metrics.ts";
import type { RewardCount } from "../tracking/reward-metrics.ts";
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
 * Rejects with TrainerConfigError, DatasetError, CheckpointError, TrackingError, and as
 * `PPOTrainer.create` and `fit`.
 */
export async function runTraining(
  config: TrainerConfig,
  { baseDirectory = process.cwd(), onWarmStart, ...logging }: RunTrainingOptions = {},
): Promise<TrainingRun> {
  // Missing things and settings that do not fit are refused before anything takes time.
  checkAlgorithms(config);
  checkLoggers(config);
  for (const path of rewardPathsOf(config.reward)) resolveRewardModule(path, baseDirectory);
  const prompts = await openPrompts(config);
  const policies = await openPolicies(config, {
    baseDirectory,
    totalSteps: totalStepsOf(config, prompts),
    onWarmStart,
    ...prompts,
  });
  try {
    return await train(config, prompts, policies, { baseDirectory, ...logging });
  } finally {
    // One actor may have two roles.
    const actors = new Set(Object.values(policies).filter((actor) => actor !== undefined));
    await Promise.all([...actors].map((actor) => ray.kill(actor)));
  }
}

async function train(
  config: TrainerConfig,
  prompts: ConfiguredPrompts,
  policies: ConfiguredPolicies,
  { baseDirectory, loggers = [], verbose }: RunTrainingOptions & { readonly baseDirectory: string },
): Promise<TrainingRun> {
  const { trainer, rayling } = config;
  const lengths = lengthsOf(config, policies);
  const [own, validation] = await Promise.all([
    prompts.train.limited(lengths),
    prompts.validation?.limited(lengths),
  ]);
  const loader = loaderOf(own, config);
  const options = trainerOptionsOf(config, baseDirectory);
  const { totalTrainingSteps } = trainer;
  const rewards = new RewardCounts();
  await using tracking = await Tracking.open({
    logger: trainer.logger,
    loggers: [...loggers, new CheckpointRuns(trainer.defaultLocalDir), rewards],
    verbose,
    projectName: trainer.projectName,
    experimentName: trainer.experimentName,
    totalSteps: totalTrainingSteps ?? trainer.totalEpochs * loader.batchesPerEpoch,
    logValGenerations: trainer.logValGenerations,
    config: verlTree(config),
    directory: rayling.directory ?? (await folderOf(config)),
  });
  const report = await fitted({
    ...options,
    ...policies,
    prompts: loader,
    validationPrompts: validation,
    tracking,
  }).catch(async (error: unknown) => {
    await tracking.close({ error });
    throw error;
  });
  // Its loggers have all reports then.
  await tracking.close();
  return {
    report,
    rewards: rewards.count,
    directory: resolve(tracking.run.directory),
    checkpoints: resolve(trainer.defaultLocalDir),
  };
}

async function fitted(options: PPOTrainerOptions): Promise<TrainingReport> {
  const ppo = await PPOTrainer.create(options);
  return await workThenClose(ppo, () => ppo.fit());
}

/** Returns the folder of the run; a run that resumes continues in that of its checkpoint. */
async function folderOf({ trainer }: TrainerConfig): Promise<string> {
  const { defaultLocalDir: folder, resumeMode: mode, resumeFromPath: path } = trainer;
  const base = join("runs", trainer.projectName, trainer.experimentName);
  const resume = { folder, mode, path: path ?? undefined };
  const run = (await hasCheckpoint(resume)) ? await runOfCheckpoint(base, resume) : undefined;
  return run ?? (await runFolder(base));
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
