/**
 * `rayling score`: checks the input, scores everything with the reward loop, then a part of it one
 * at a time on request, and reports.
 *
 * The baseline runs last and on samples that the loop could score: a reward function that hangs or
 * exits cannot spoil it. Whatever ends the run, every thread is ended and the written results stay.
 */

import * as ray from "@rayling/core";
import { wrapped } from "@rayling/core/terminal";
import { RewardFailuresError } from "@rayling/reward-loop";
import type { JudgesReport, RewardLoopManager } from "@rayling/reward-loop";
import { onFailureOptions, withDefaults } from "@rayling/reward-loop/options";
import { messageOf } from "@rayling/reward-manager-registry/values";
import type { BaselineResult } from "./baseline.ts";
import { CliError } from "../cli-error.ts";
import { dashboardOption, showOnDashboard } from "../dashboard-flag.ts";
import { exitCodes } from "../exit-codes.ts";
import { onRayOption } from "../on-ray-flag.ts";
import { adviceOn, argsAgain } from "./failure-advice.ts";
import { labelsOfInput } from "../inputs/labels-of-input.ts";
import { openSolutions } from "../inputs/solutions.ts";
import type { Solutions, SolutionSample } from "../inputs/solutions.ts";
import { standardLabelKey } from "../inputs/sample-label.ts";
import { comparisonOf } from "../judges/compared.ts";
import { judgesLines } from "../judges/judges-text.ts";
import { refuseIdle } from "../judges/compare-flags.ts";
import type { CompareOptions } from "../judges/compare-flags.ts";
import { openRunFile, openRunLoop, prepareRun } from "./opened-run.ts";
import type { PreparedRun } from "./opened-run.ts";
import { grouped, span } from "../output/numbers.ts";
import { openAnswer } from "../output/formats.ts";
import type { Answer } from "../output/formats.ts";
import { dataOutput, jsonText, plain, tell } from "../output/output.ts";
import type { PhaseLine } from "../output/phase-line.ts";
import { ProgressView } from "../output/progress-view.ts";
import { introduceScoring } from "../judges/judges-introduction.ts";
import type { RunSummary } from "./run-summary.ts";
import { drainMsOf, scoreAll } from "./score-all.ts";
import { baselineOf } from "./score-loop.ts";
import { STDOUT } from "./score-options.ts";
import type { ScoreOptions } from "./score-options.ts";
import { nextLines, reportData, reportText } from "./score-report.ts";
import type { Report } from "./score-report.ts";
import { shownSession } from "../shown-session.ts";
import { stopSignal } from "../stop-signal.ts";
import type { StopSignal } from "../stop-signal.ts";

/**
 * @param phase says what is done now
 *
 * @param comparison with the labels of the data, in tables where a flag names their key
 *
 * @param args arguments of the command, for one that goes on from it; none: unknown
 */
export async function runScore(
  options: ScoreOptions,
  phase: PhaseLine,
  comparison: CompareOptions = {},
  args: readonly string[] = [],
): Promise<void> {
  const stop = stopSignal();
  // This precedes all other output, because stdout then carries only rewards.
  const data = options.out === STDOUT ? dataOutput() : undefined;
  const answer = openAnswer(data === undefined ? options.format : "table");
  let prepared: PreparedRun | undefined;
  try {
    phase.touch("reading the samples");
    const solutions = await openSolutions(options.solutions, stop.signal, options.input);
    const { labelled } = solutions;
    refuseIdle(comparison, { judges: 1, labelled, without: "no sample has one" });
    prepared = await prepareRun(options, solutions);
    introduceScoring([introducedOptions(options, prepared)], solutions.total);
    phase.touch("starting the workers");
    const shown = { ...shownSession, ...dashboardOption(options, "never") };
    await ray.init({ ...onRayOption(options), ...shown });
    const loop = await openRunLoop(prepared, stop);
    const spentBefore = loop.spent;
    const file = await openRunFile(prepared, loop, data?.stream);
    if (data === undefined && options.dashboard === true) showOnDashboard(file.path);
    const tellsNoMore = tellStopping(stop, options);
    phase.pause("scoring");
    const more = { stop, view: new ProgressView(), scoreThreshold: comparison.scoreThreshold };
    const run = await scoreAll(loop, solutions, file, { ...options, ...more });
    tellsNoMore();
    const money = moneyOf(options, loop, spentBefore);
    phase.touch("ending the workers");
    await loop.close();
    phase.touch("scoring one at a time");
    const baseline = await stop.race(runBaseline(run.baselineSamples, prepared, phase));
    phase.touch("putting the report together");
    const report: Report = {
      ...run,
      loop: `${options.workers} workers x ${options.concurrency}`,
      baseline,
      money,
      advice: adviceOn(run.summary.failures, options),
      again: argsAgain(args, run.summary.failures, options),
      labelKey: options.input.labelKey ?? standardLabelKey,
      out: file.path,
      isFile: data === undefined,
    };
    const compared = await comparedWithLabels(file.path, solutions, options, comparison);
    phase.pause();
    await printReport(report, compared, { ...options, answer });
    checkFailures(run.summary, options);
  } finally {
    phase.pause();
    await ray.shutdown();
    await prepared?.mark?.remove();
    answer.close();
    data?.close();
    stop.close();
  }
}

/** Undefined where no flag names the labels. */
async function comparedWithLabels(
  path: string,
  solutions: Solutions,
  { input }: ScoreOptions,
  comparison: CompareOptions,
): Promise<JudgesReport | undefined> {
  if (input.labelKey === undefined) return undefined;
  const labelOf = await labelsOfInput(solutions);
  return comparisonOf([{ name: "score", path }], { ...comparison, labelOf });
}

/** Returns the options with a baseline only where there is one function, which it can call. */
function introducedOptions(options: ScoreOptions, { asked }: PreparedRun): ScoreOptions {
  return asked.single === undefined ? { ...options, baseline: 0 } : options;
}

/** Returns undefined when nobody counts. */
function moneyOf(
  { policy }: ScoreOptions,
  { spent, spending }: RewardLoopManager,
  spentBefore: number,
): Report["money"] {
  const isCounted = policy.spend !== undefined || spent > 0;
  return isCounted ? { spent, spentBefore, spending } : undefined;
}

/** Prints a report to stdout, or to stderr where stdout carries rewards. */
async function printReport(
  report: Report,
  comparison: JudgesReport | undefined,
  { format, out, answer }: ScoreOptions & { readonly answer: Answer },
): Promise<void> {
  const text = reportText(report).replace(/\n$/, "");
  const value = { ...reportData(report), ...(comparison === undefined ? {} : { comparison }) };
  if (out === STDOUT) return tell(format === "table" ? `${text}\n` : `${jsonText(value)}\n`);
  await answer.print(value, () => [
    ...text.split("\n").flatMap((line) => wrapped(line, process.stdout, "  ")),
    ...(comparison === undefined ? [] : ["", ...judgesLines(comparison, [])]),
    "",
    // A command is one line, which can be copied.
    ...nextLines(report),
  ]);
}

/** Tells at a stop how long it may take. Returns what ends that. */
export function tellStopping({ signal }: StopSignal, options: ScoreOptions): () => void {
  const onStop = (): void => {
    const time = span(drainMsOf(options));
    tell(`stopping: samples in flight have ${time} to finish; Ctrl-C again stops at once\n`);
  };
  signal.addEventListener("abort", onStop, { once: true });
  return () => signal.removeEventListener("abort", onStop);
}

/** All samples of a run are one batch. Throws CliError 3. */
export function checkFailures(
  { invalid, invalidCount, done }: RunSummary,
  { policy }: ScoreOptions,
): void {
  const { failAbove } = withDefaults(onFailureOptions, policy.onFailure ?? {});
  const isNone = done > 0 && invalidCount === done;
  // Not `failAbove * done`: 0.29 * 100 is below 29, and 29 / 100 is 0.29.
  if (invalidCount === 0 || (!isNone && invalidCount / done <= failAbove)) return;
  const counts = Object.fromEntries([...invalid].map(([code, { count }]) => [code, count]));
  const cause = new RewardFailuresError(invalidCount, done, counts);
  const why = isNone ? "no sample has a score" : `--fail-above ${failAbove}`;
  throw new CliError(exitCodes.withoutScores, `${why}: ${cause.message}`, { cause });
}

async function runBaseline(
  samples: readonly SolutionSample[],
  { options, asked: { single } }: PreparedRun,
  phase: PhaseLine,
): Promise<BaselineResult | undefined> {
  if (samples.length === 0 || single === undefined) return undefined;
  tell(`baseline: scores ${grouped(samples.length)} of them again, one at a time\n`);
  const baseline = baselineOf(options);
  const { timeoutMs } = options;
  const parts: BaselineResult[] = [];
  const size = Math.ceil(samples.length / baselineParts);
  try {
    for (let at = 0; at < samples.length; at += size) {
      const part = samples.slice(at, at + size);
      // They were scored once; a function that now hangs must not delay the report.
      const limit = timeoutMs === undefined ? {} : { timeoutMs: timeoutMs * part.length };
      const answer = baseline.run.remote(single.asked, single.named, part);
      parts.push(await ray.get(answer, limit));
      phase.goOn(baselineText(joined(parts), samples.length));
    }
    return joined(parts);
  } catch (error) {
    const reason = messageOf(error);
    tell(`baseline: given up, ${plain(reason.split("\n", 1)[0] ?? "")}\n`);
    return undefined;
  }
}

/** The parts that are asked for one after the other: between them is said how far it is. */
const baselineParts = 20;

function joined(parts: readonly BaselineResult[]): BaselineResult {
  return {
    wallMs: parts.reduce((sum, { wallMs }) => sum + wallMs, 0),
    scores: parts.flatMap(({ scores }) => scores),
    latenciesMs: parts.flatMap(({ latenciesMs }) => latenciesMs),
  };
}

function baselineText({ wallMs, scores }: BaselineResult, total: number): string {
  const leftMs = (wallMs / scores.length) * (total - scores.length);
  const left = leftMs === 0 ? "" : `, ${span(leftMs)} left`;
  return `scoring one at a time, ${grouped(scores.length)} of ${grouped(total)}${left}`;
}
