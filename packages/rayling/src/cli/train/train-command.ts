/**
 * `rayling train`: reads the configuration, prints it or its plan, or trains. Whatever ends the
 * run, every thread is ended and its checkpoints stay.
 */

import { stat } from "node:fs/promises";
import * as ray from "@rayling/core";
import { loadTrainerConfig, planText, printConfig, trainingPlanOf } from "@rayling/trainer/config";
import type { TrainerConfig } from "@rayling/trainer/config";
import type { TrainingReport } from "@rayling/trainer";
import type { TrainingRun } from "@rayling/trainer/run";
import { dashboardOption } from "../dashboard-flag.ts";
import { plain, say, sayData, tell } from "../output/output.ts";
import { stopSignal } from "../stop-signal.ts";
import { RunPlace } from "./run-place.ts";
import type { TrainOptions } from "./train-options.ts";

export async function runTrain(options: TrainOptions): Promise<void> {
  const { configName: name, configDir: folder, overrides } = options;
  const config = loadTrainerConfig({ name, folder, overrides });
  if (options.printConfig) await sayData(printConfig(config));
  else if (options.dryRun) say(await dryRun(config));
  else await train(config, options);
}

async function dryRun(config: TrainerConfig): Promise<string> {
  const { rehearseRun } = await import("@rayling/trainer/run");
  const { train: own, validation } = await rehearseRun(config);
  const plan = trainingPlanOf(config, { train: own.length, validation: validation?.length ?? 0 });
  return planText(config, plan, { train: own.shapes, validation: validation?.shapes });
}

async function train(config: TrainerConfig, options: TrainOptions): Promise<void> {
  const { metricsPort } = config.rayling;
  tellUnused(config);
  const { warmStartSteps, task } = config.rayling;
  if (warmStartSteps > 0 && task === null) {
    tell(
      `warm start: ${warmStartSteps} steps on the answers of ${plain(config.data.trainFiles.join(", "))}\n`,
    );
  }
  const stop = stopSignal();
  const startedAt = performance.now();
  const { runTraining } = await import("@rayling/trainer/run");
  const place = new RunPlace();
  let training: Promise<TrainingRun> | undefined;
  try {
    await startSession(metricsPort, dashboardOption(options, "on a terminal"));
    training = runTraining(config, { loggers: [place], verbose: options.verbose });
    const run = await stop.race(training);
    const seconds = (performance.now() - startedAt) / 1000;
    say(await endText(config, run, seconds));
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    await ray.shutdown();
    // Its loggers leave the terminal and the files in order.
    await training?.catch(() => undefined);
    throw place.stopped(stop.signal.reason, config.trainer.defaultLocalDir);
  } finally {
    await ray.shutdown();
    stop.close();
  }
}

type Shown = Pick<ray.InitOptions, "dashboard">;

async function startSession(metricsPort: number | null, shown: Shown): Promise<void> {
  if (metricsPort === null) {
    await ray.init({ prewarm: 2, ...shown });
    return;
  }
  const given = process.env["RAYLING_METRICS_TOKEN"];
  const token = given === undefined ? {} : { metricsToken: given };
  const session = await ray.init({ prewarm: 2, metricsPort, ...token, ...shown });
  // A generated token is unknown to the user.
  const secret = given === undefined ? ` with Authorization: Bearer ${session.metricsToken}` : "";
  tell(`metrics: http://127.0.0.1:${session.metricsPort}/metrics${secret}\n`);
}

/** Reports deviations from the configuration that do not change the training. */
function tellUnused({ ignored, notes }: TrainerConfig): void {
  for (const note of notes) tell(`note: ${plain(note)}\n`);
  if (ignored.length === 0) return;
  const shown = ignored.slice(0, 8).join(", ");
  const more = ignored.length > 8 ? ` and ${ignored.length - 8} more` : "";
  tell(`not used: ${plain(shown)}${more} (they are about verl's engines)\n`);
}

async function endText(
  { trainer }: TrainerConfig,
  { report, directory, checkpoints }: TrainingRun,
  seconds: number,
): Promise<string> {
  const hasCheckpoints = await stat(checkpoints).catch(() => undefined);
  const lines: [string, string][] = [
    ["steps", String(report.steps)],
    ["time", `${seconds.toFixed(1)} s`],
    ...validationLines(report),
    ...report.warnings.map((warning): [string, string] => ["warning", warning]),
    ["files", directory],
    ...(trainer.saveFreq > 0 && hasCheckpoints !== undefined
      ? [["checkpoints", checkpoints] satisfies [string, string]]
      : []),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  return `${lines.map(([name, value]) => `${plain(name).padEnd(width)}  ${plain(value)}`).join("\n")}\n`;
}

/** The scores of the last validation beside those of the one before training. */
function validationLines({ validation, initialValidation }: TrainingReport): [string, string][] {
  const core = Object.entries(validation ?? {}).filter(([name]) => name.startsWith("val-core/"));
  return core.map(([name, value]) => {
    const before = validation === initialValidation ? undefined : initialValidation?.[name];
    const beside = before === undefined ? "" : ` (${before.toFixed(4)} before training)`;
    return [name, `${value.toFixed(4)}${beside}`];
  });
}
