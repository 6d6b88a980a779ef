/**
 * `rayling train`: reads the configuration, prints it or its plan, or trains. Whatever ends the
 * run, every thread is ended and its checkpoints stay.
 */

import { treeOf, yamlValue } from "@rayling/config-tree";
import * as ray from "@rayling/core";
import {
  drawsValidation,
  epochsOf,
  loadTrainerConfig,
  planText,
  printConfig,
  trainingPlanOf,
} from "@rayling/trainer/config";
import type { TrainerConfig } from "@rayling/trainer/config";
import type { TrainingRun } from "@rayling/trainer/run";
import { dashboardOption } from "../dashboard-flag.ts";
import { openAnswer, print } from "../output/formats.ts";
import { span } from "../output/numbers.ts";
import { plain, sayData, tell } from "../output/output.ts";
import type { PhaseLine } from "../output/phase-line.ts";
import { shownSession } from "../shown-session.ts";
import { stopSignal } from "../stop-signal.ts";
import { endLines } from "./end/end-lines.ts";
import { endOf } from "./end/training-end.ts";
import { RunPlace } from "./run-place.ts";
import type { TrainOptions } from "./train-options.ts";
import { introduceTraining, stepWords } from "./training-introduction.ts";

/**
 * @param line says what is done now @param args arguments of the command, for those that go on from
 * it
 */
export async function runTrain(
  options: TrainOptions,
  line: PhaseLine,
  args: readonly string[],
): Promise<void> {
  const { configName: name, configDir: folder, overrides } = options;
  const config = loadTrainerConfig({ name, folder, overrides });
  if (options.printConfig || options.dryRun) line.pause();
  if (options.printConfig) await showConfig(config, options);
  else if (options.dryRun) await dryRun(config, options);
  else await train(config, options, line, args);
}

async function showConfig(config: TrainerConfig, { format }: TrainOptions): Promise<void> {
  const text = printConfig(config);
  if (format !== "json") return sayData(text);
  await print(treeOf(yamlValue(text)), format, () => []);
}

async function dryRun(config: TrainerConfig, { format }: TrainOptions): Promise<void> {
  const { rehearseRun } = await import("@rayling/trainer/run");
  const { train: own, validation } = await rehearseRun(config);
  const plan = trainingPlanOf(config, { train: own.length, validation: validation?.length ?? 0 });
  await print(plan, format, () => {
    const shapes = { train: own.shapes, validation: validation?.shapes };
    return [planText(config, plan, shapes).trimEnd()];
  });
}

async function train(
  config: TrainerConfig,
  options: TrainOptions,
  line: PhaseLine,
  args: readonly string[],
): Promise<void> {
  const { metricsPort } = config.rayling;
  tellUnused(config);
  introduceTraining(config, epochsOf(config.trainer));
  const { warmStartSteps, task } = config.rayling;
  if (warmStartSteps > 0 && task === null) {
    tell(
      `warm start: ${warmStartSteps} steps on the answers of ${plain(config.data.trainFiles.join(", "))}\n`,
    );
  }
  explainSteps(config, options);
  const stop = stopSignal();
  const answer = openAnswer(options.format);
  const startedAt = performance.now();
  const { runTraining } = await import("@rayling/trainer/run");
  const place = new RunPlace(line, hasView(config, options), hasFirstValidation(config));
  let training: Promise<TrainingRun> | undefined;
  try {
    line.begin(firstPhase);
    await startSession(metricsPort, dashboardOption(options, "on a terminal"));
    training = runTraining(config, {
      loggers: [place],
      verbose: options.verbose,
      onWarmStart: warmStartView(line),
    });
    const run = await stop.race(training);
    const end = await endOf(config, run, performance.now() - startedAt);
    line.pause();
    await answer.print(end, () => endLines(end, config, args));
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    await ray.shutdown();
    // Its loggers leave the terminal and the files in order.
    await training?.catch(() => undefined);
    throw place.stopped(stop.signal.reason, config.trainer.defaultLocalDir);
  } finally {
    line.pause();
    await ray.shutdown();
    answer.close();
    stop.close();
  }
}

function explainSteps(
  { trainer, actorRolloutRef: { rollout } }: TrainerConfig,
  { verbose }: TrainOptions,
): void {
  if (verbose === true || !trainer.logger.includes("console")) return;
  tell(`${stepWords(process.stderr, !drawsValidation(rollout.valKwargs)).join("\n")}\n`);
}

/** Whether the console draws a view of the current step. */
function hasView({ trainer }: TrainerConfig, { verbose }: TrainOptions): boolean {
  return process.stdout.isTTY && verbose !== true && trainer.logger.includes("console");
}

/** Whether a validation precedes the first step: not where there is nothing to validate. */
function hasFirstValidation({ trainer, data, rayling }: TrainerConfig): boolean {
  const hasPrompts = data.valFiles.length > 0 || rayling.task !== null;
  return hasPrompts && (trainer.valBeforeTrain || trainer.valOnly);
}

const firstPhase = "starting the policy and the reward loop";

/**
 * The time left is that of the supervised steps. Their first part is left out of it: the policy
 * starts and compiles in it.
 */
function warmStartView(line: PhaseLine): (steps: number, of: number) => void {
  let startedMs = performance.now();
  let first: { readonly steps: number; readonly ms: number } | undefined;
  return (steps, of) => {
    const ms = performance.now();
    if (steps === 0) startedMs = ms;
    else first ??= { steps, ms };
    const eachMs = first === undefined ? 0 : (ms - first.ms) / (steps - first.steps);
    const left = eachMs > 0 ? `, ${span(eachMs * (of - steps))} left` : "";
    const text = `supervised warm-up, ${steps} of ${of} steps${left}`;
    if (steps === 0) line.begin(text);
    else if (steps < of) line.goOn(text);
    else {
      line.say(`supervised warm-up: ${of} steps took ${span(ms - startedMs)}`);
      line.begin("preparing the first step");
    }
  };
}

type Shown = Pick<ray.InitOptions, "dashboard">;

async function startSession(metricsPort: number | null, shown: Shown): Promise<void> {
  if (metricsPort === null) {
    await ray.init({ ...shownSession, ...shown });
    return;
  }
  const given = process.env["RAYLING_METRICS_TOKEN"];
  const token = given === undefined ? {} : { metricsToken: given };
  const session = await ray.init({ metricsPort, ...token, ...shownSession, ...shown });
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
