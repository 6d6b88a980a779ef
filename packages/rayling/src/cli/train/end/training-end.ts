/** The end of a training as data: what it left, and how good it is. */
import { stat } from "node:fs/promises";
import type { TrainingReport } from "@rayling/trainer";
import type { TrainerConfig } from "@rayling/trainer/config";
import type { TrainingRun } from "@rayling/trainer/run";
import { mean } from "../../output/numbers.ts";

/** The end of a training, as programs get it. */
export interface TrainingEnd extends Pick<
  TrainingReport,
  "steps" | "validation" | "initialValidation" | "warnings"
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
  /** Null: there are none. */
  readonly checkpoints: string | null;
}

export async function endOf(
  { trainer }: TrainerConfig,
  { report, directory, checkpoints }: TrainingRun,
  wallMs: number,
): Promise<TrainingEnd> {
  const { steps, validation, initialValidation, warnings, metrics } = report;
  const hasCheckpoints =
    trainer.saveFreq > 0 && (await stat(checkpoints).catch(() => undefined)) !== undefined;
  const rates = metrics.flatMap((one) => one["reward/invalid_rate"] ?? []);
  return {
    steps,
    wallMs,
    validation,
    initialValidation,
    warnings,
    lastStep: metrics.at(-1) ?? null,
    invalidRate: mean(rates) ?? null,
    rewardedSteps: rates.length,
    directory,
    checkpoints: hasCheckpoints ? checkpoints : null,
  };
}
