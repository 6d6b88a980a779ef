/** The end of a training as data: what it left, and how good it is. */
import { stat } from "node:fs/promises";
import type { TrainingReport } from "@rayling/trainer";
import type { TrainerConfig } from "@rayling/trainer/config";
import type { RewardCount, TrainingRun } from "@rayling/trainer/run";
import { join } from "node:path";
import { hasCheckpoint } from "./left-files.ts";

/** The end of a training, as programs get it. */
export interface TrainingEnd extends Pick<
  TrainingReport,
  "steps" | "validation" | "initialValidation" | "initialValidationStep" | "warnings"
> {
  readonly wallMs: number;
  /** Metrics of the last step. */
  readonly lastStep: Readonly<Record<string, number>> | null;
  /** Rewards of the steps of this process. */
  readonly rewards: RewardCount;
  /** Share of them that failed; null: there are none. */
  readonly invalidRate: number | null;
  /** Number of steps with rewards of this process; `steps` counts those of the whole run. */
  readonly rewardedSteps: number;
  /** Folder of the run's files. */
  readonly directory: string;
  /** The page that the logger `report` made of this run; null: there is none. */
  readonly page: string | null;
  /** Null: there are none. */
  readonly checkpoints: string | null;
}

export async function endOf(
  { trainer }: TrainerConfig,
  { report, directory, checkpoints, rewards }: TrainingRun,
  wallMs: number,
): Promise<TrainingEnd> {
  const { steps, validation, initialValidation, initialValidationStep, warnings, metrics } = report;
  const hasCheckpoints = trainer.saveFreq > 0 && hasCheckpoint(checkpoints);
  const rewarded = metrics.filter((one) => "reward/invalid_rate" in one);
  return {
    steps,
    wallMs,
    validation,
    initialValidation,
    initialValidationStep,
    warnings,
    lastStep: metrics.at(-1) ?? null,
    rewards,
    invalidRate: rewards.answers === 0 ? null : rewards.failed / rewards.answers,
    rewardedSteps: rewarded.length,
    directory,
    page: await pageIn(directory, trainer.logger, wallMs),
    checkpoints: hasCheckpoints ? checkpoints : null,
  };
}

/** A page of an earlier process of the run is not the one of this: the report may have failed. */
async function pageIn(
  directory: string,
  loggers: readonly string[],
  wallMs: number,
): Promise<string | null> {
  if (!loggers.includes("report")) return null;
  const path = join(directory, "report.html");
  const made = await stat(path).catch(() => undefined);
  const beganMs = Date.now() - wallMs;
  // Some file systems have whole seconds only.
  return made !== undefined && made.mtimeMs >= beganMs - 1000 ? path : null;
}
