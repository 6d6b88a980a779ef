/**
 * `rayling score` with several judges: each scores every sample, all at once, with a loop, limits
 * and a reward log of its own; then their logs are compared. Where one of them cannot go on, the
 * others finish what is in flight, and all logs can be continued.
 */

import * as ray from "@rayling/core";
import type { RewardLoopManager } from "@rayling/reward-loop";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { dashboardOption, showOnDashboard } from "../dashboard-flag.ts";
import { onRayOption } from "../on-ray-flag.ts";
import { labelsOfInput } from "../inputs/labels-of-input.ts";
import { openSolutions } from "../inputs/solutions.ts";
import type { Solutions } from "../inputs/solutions.ts";
import { standardLabelKey } from "../inputs/sample-label.ts";
import { heading, openAnswer } from "../output/formats.ts";
import { duration, grouped, quantile } from "../output/numbers.ts";
import type { PhaseLine } from "../output/phase-line.ts";
import { plain, tell } from "../output/output.ts";
import { columnsOf, tableLines } from "../output/table.ts";
import type { RewardsFile } from "../rewards/rewards-file.ts";
import { adviceOn, failureLines } from "../score/failure-advice.ts";
import { openRunFile, openRunLoop, prepareRun } from "../score/opened-run.ts";
import type { PreparedRun } from "../score/opened-run.ts";
import { drainMsOf, scoreAll } from "../score/score-all.ts";
import type { Run } from "../score/score-all.ts";
import { checkFailures, tellStopping } from "../score/score-command.ts";
import { reportData } from "../score/score-report.ts";
import { shownSession } from "../shown-session.ts";
import { stopSignal } from "../stop-signal.ts";
import { introduceScoring } from "./judges-introduction.ts";
import type { StopSignal } from "../stop-signal.ts";
import { comparisonOf } from "./compared.ts";
import { refuseIdle } from "./compare-flags.ts";
import type { CompareOptions } from "./compare-flags.ts";
import type { Judge } from "./judge-runs.ts";
import { judgesLines } from "./judges-text.ts";
import { JudgesView } from "./judges-view.ts";

interface OpenJudge extends Judge {
  readonly loop: RewardLoopManager;
  readonly file: RewardsFile;
  /** The spending of the run that is continued. */
  readonly spentBefore: number;
}

/** @param phase says what is done now */
export async function runJudges(
  judges: readonly Judge[],
  phase: PhaseLine,
  comparison: CompareOptions,
): Promise<void> {
  const [{ options } = noJudge()] = judges;
  const stop = stopSignal();
  const answer = openAnswer(options.format);
  const prepared: PreparedRun[] = [];
  try {
    phase.touch("reading the samples");
    const solutions = await openSolutions(options.solutions, stop.signal, options.input);
    const { labelled } = solutions;
    refuseIdle(comparison, { judges: judges.length, labelled, without: "no sample has one" });
    for (const one of judges) prepared.push(await prepareRun(one.options, solutions));
    introduceScoring(
      judges.map((one) => one.options),
      solutions.total,
    );
    phase.touch("starting the workers");
    await ray.init({
      ...onRayOption(options),
      ...shownSession,
      ...dashboardOption(options, "never"),
    });
    const open = await openJudges(judges, prepared, stop);
    if (options.dashboard === true) for (const { file } of open) showOnDashboard(file.path);
    phase.pause("scoring");
    const runs = await scoreTogether(open, solutions, { stop, ...comparison });
    phase.touch("comparing the judges");
    await Promise.all(open.map(({ loop }) => loop.close()));
    const logs = open.map(({ name, file }) => ({ name, path: file.path }));
    const labelOf = await labelsOfInput(solutions);
    const compared = await comparisonOf(logs, { ...comparison, labelOf });
    const runData = open.map((judge, at) => ({ name: judge.name, ...dataOf(judge, runs[at]) }));
    phase.pause();
    const files = logs.map(({ path }) => path);
    await answer.print({ runs: runData, comparison: compared }, () => [
      ...runLines(open, runs),
      "",
      ...judgesLines(compared, files),
    ]);
    for (const [at, { name, options: own }] of judges.entries()) checkJudge(name, own, runs[at]);
  } finally {
    phase.pause();
    await ray.shutdown();
    for (const { mark } of prepared) await mark?.remove();
    answer.close();
    stop.close();
  }
}

function noJudge(): never {
  throw new CliError(2, "--reward is missing");
}

/** Opens all loops before any file: nothing is written where one judge cannot be loaded. */
async function openJudges(
  judges: readonly Judge[],
  prepared: readonly PreparedRun[],
  stop: StopSignal,
): Promise<OpenJudge[]> {
  const loops: { readonly run: PreparedRun; readonly loop: RewardLoopManager }[] = [];
  for (const run of prepared) loops.push({ run, loop: await openRunLoop(run, stop) });
  const open: OpenJudge[] = [];
  for (const [at, { run, loop }] of loops.entries()) {
    const judge = judges[at];
    if (judge !== undefined) {
      const spentBefore = loop.spent;
      open.push({ ...judge, loop, spentBefore, file: await openRunFile(run, loop) });
    }
  }
  return open;
}

/** Rejects with the failure of the first judge that fails, when all have stopped. */
async function scoreTogether(
  judges: readonly OpenJudge[],
  solutions: Solutions,
  { stop, scoreThreshold }: { readonly stop: StopSignal } & CompareOptions,
): Promise<Run[]> {
  const { signal: stopped } = stop;
  const failure = new AbortController();
  const signal = AbortSignal.any([stopped, failure.signal]);
  const view = new JudgesView(judges.map(({ name }) => name));
  const [longest] = judges
    .map(({ options }) => options)
    .toSorted((a, b) => drainMsOf(b) - drainMsOf(a));
  const tellsNoMore = longest && tellStopping(stop, longest);
  let first: unknown;
  const ends = await Promise.all(
    judges.map(async ({ name, options, loop, file }) => {
      try {
        const own = { signal, after: (ms: number) => stop.after(ms) };
        const more = { stop: own, view: view.of(name), scoreThreshold };
        return await scoreAll(loop, solutions, file, { ...options, ...more });
      } catch (error) {
        if (failure.signal.aborted || stopped.aborted) {
          tell(`${plain(name)}: ${plain(messageOf(error))}\n`);
        }
        first ??= error;
        failure.abort(new CliError(1, "stopped, because another judge failed"));
        return undefined;
      }
    }),
  );
  view.close();
  tellsNoMore?.();
  if (first !== undefined) throw first;
  return ends.filter((run) => run !== undefined);
}

function dataOf(
  { loop, file, options, spentBefore }: OpenJudge,
  run: Run | undefined,
): Readonly<Record<string, unknown>> {
  if (run === undefined) return {};
  const { spent, spending } = loop;
  const labelKey = options.input.labelKey ?? standardLabelKey;
  const money = { spent, spentBefore, spending };
  const about = {
    loop: "",
    baseline: undefined,
    advice: [],
    money,
    labelKey,
    out: file.path,
    isFile: true,
  };
  return reportData({ ...run, ...about });
}

function runLines(judges: readonly OpenJudge[], runs: readonly Run[]): string[] {
  const rows = judges.flatMap(({ name, loop, file }, at) => {
    const run = runs[at];
    if (run === undefined) return [];
    const { summary, wallMs } = run;
    const latency = (share: number): string => {
      const value = quantile(summary.latenciesMs, share);
      return value === undefined ? "-" : duration(value);
    };
    return {
      judge: name,
      scored: grouped(summary.scored),
      "of before": grouped(summary.kept),
      "wall time": duration(wallMs),
      "latency p50": latency(0.5),
      "latency p95": latency(0.95),
      ...(loop.spent > 0 ? { spent: loop.spent.toFixed(4) } : {}),
      log: file.path,
    };
  });
  const failures = judges.flatMap(({ name, options }, at) =>
    judgeFailures(name, options, runs[at]),
  );
  return [heading("runs"), ...tableLines(rows, columnsOf(rows)), ...failures];
}

function judgeFailures(name: string, options: Judge["options"], run: Run | undefined): string[] {
  if (run === undefined) return [];
  const { summary } = run;
  return [...failureLines(summary), ...adviceOn(summary.failures, options)].map(
    (line) => `${plain(name)}: ${line}`,
  );
}

/** Throws CliError 3 that names the judge. */
function checkJudge(name: string, options: Judge["options"], run: Run | undefined): void {
  try {
    if (run !== undefined) checkFailures(run.summary, options);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(error.exitCode, `${name}: ${error.message}`, { cause: error });
  }
}
