/** The end of a training as data: what it left, and how good it is. */
import { stat } from "node:fs/promises";
import type { TrainingReport } from "@rayling/trainer";
import type { TrainerConfig } from "@rayling/trainer/config";
import type { TrainingRun } from "@rayling/trainer/run";
import { join } from "node:path";
import { mean } from "../../output/numbers.ts";

/** The end of a training, as programs get it. */
export interface TrainingEnd extends Pick<
  TrainingReport,
  "steps" | "validation" | "initialValidation" | "initialValidationStep" | "warnings"
> {
  readonly wallMs: number;
  /** Metrics of the last step. */
  readonly lastStep: Readonly<Record<string, number>> | null;
  /** Share of the rewards of all steps that failed; null: no step has rewards. */
  readonly invalidRate: number | null;
  /** Number of steps with rewards. */
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
  { report, directory, checkpoints }: TrainingRun,
  wallMs: number,
): Promise<TrainingEnd> {
  const { steps, validation, initialValidation, initialValidationStep, warnings, metrics } = report;
  const hasCheckpoints =
    trainer.saveFreq > 0 && (await stat(checkpoints).catch(() => undefined)) !== undefined;
  const rates = metrics.flatMap((one) => one["reward/invalid_rate"] ?? []);
  return {
    steps,
    wallMs,
    validation,
    initialValidation,
    initialValidationStep,
    warnings,
    lastStep: metrics.at(-1) ?? null,
    invalidRate: mean(rates) ?? null,
    rewardedSteps: rates.length,
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
