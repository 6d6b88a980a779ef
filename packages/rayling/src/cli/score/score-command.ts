/**
 * `rayling score`: checks the input, scores everything with the reward loop, then a part of it one
 * at a time on request, and reports.
 *
 * The baseline runs last and on samples that the loop could score: a reward function that hangs or
 * exits cannot spoil it. Whatever ends the run, every thread is ended and the written results stay.
 */

import * as ray from "@rayling/core";
import {
  givenOutcomeOf,
  outcomeOf,
  RewardFailuresError,
  RewardLogBusyError,
  WriterMark,
} from "@rayling/reward-loop";
import type { RewardLoopManager, SampleOutcome, StreamGroups } from "@rayling/reward-loop";
import { onFailureOptions, withDefaults } from "@rayling/reward-loop/options";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { askedFunctions } from "../functions/asked-functions.ts";
import type { AskedFunctions } from "../functions/asked-functions.ts";
import type { BaselineResult } from "./baseline.ts";
import { CliError, refusalOf } from "../cli-error.ts";
import { dashboardOption, showOnDashboard } from "../dashboard-flag.ts";
import { exitCodes } from "../exit-codes.ts";
import { adviceOn } from "./failure-advice.ts";
import { groupSizesOf } from "../inputs/sample-groups.ts";
import { grouped, span } from "../output/numbers.ts";
import { dataOutput, plain, say, tell } from "../output/output.ts";
import { readPast } from "../rewards/past-rewards.ts";
import { ProgressView } from "../output/progress-view.ts";
import { resumedPlaces } from "../rewards/resumed-places.ts";
import { reportText } from "./score-report.ts";
import { RewardsFile } from "../rewards/rewards-file.ts";
import { RunSummary } from "../train/run-summary.ts";
import { baselineOf, meantBy, openLoop, refuseInput } from "./score-loop.ts";
import type { ScoreOptions } from "./score-options.ts";
import { stopSignal } from "../stop-signal.ts";
import type { StopSignal } from "../stop-signal.ts";
import { openSolutions } from "../inputs/solutions.ts";
import type { Solutions, SolutionSample } from "../inputs/solutions.ts";

/** `--out -` */
const STDOUT = "-";

/** What is under way at Ctrl-C gets the time limit of one call, or as much as that is by default. */
const DRAIN_MS = 30_000;

export async function runScore(options: ScoreOptions): Promise<void> {
  const stop = stopSignal();
  // This precedes all other output, because stdout then carries only rewards.
  const data = options.out === STDOUT ? dataOutput() : undefined;
  let mark: WriterMark | undefined;
  try {
    const solutions = await openSolutions(options.solutions, stop.signal, options.input);
    const asked = await askedFunctions(options);
    await refuseInput(options, asked);
    mark = data === undefined ? await markOf(options) : undefined;
    const past = await readPast(options, meantBy(options, asked));
    const places = await resumedPlaces(past, solutions, options);
    await ray.init({ prewarm: 2, ...dashboardOption(options, "never") });
    const loop = await stop.race(openLoop(options, asked));
    const spentBefore = loop.spent;
    const file = await RewardsFile.open({ past, places }, loop.version, options, {
      mark,
      stream: data?.stream,
    });
    if (data === undefined && options.dashboard === true) showOnDashboard(file.path);
    const run = await scoreAll(loop, solutions, file, { ...options, stop });
    const { spent, spending } = loop;
    await loop.close();
    const baseline = await stop.race(runBaseline(run.baselineSamples, options, asked));
    const words = `${options.workers} workers x ${options.concurrency}`;
    const isCounted = options.policy.spend !== undefined || spent > 0;
    const money = isCounted ? { spent, spentBefore, spending } : undefined;
    const advice = adviceOn(run.summary.failures, options);
    const report = reportText({ ...run, loop: words, baseline, money, advice, out: file.path });
    if (data === undefined) say(report);
    else tell(report);
    checkFailures(run.summary, options);
  } finally {
    await ray.shutdown();
    await mark?.remove();
    data?.close();
    stop.close();
  }
}

/**
 * Marks the file before it is read or emptied. Rejects with CliError 2 while another run writes it.
 */
async function markOf({ out }: ScoreOptions): Promise<WriterMark> {
  try {
    return await WriterMark.put(out);
  } catch (error) {
    throw refusalOf(error, [RewardLogBusyError], "--out");
  }
}

/** All samples of a run are one batch. Throws CliError 3. */
function checkFailures(
  { invalid, invalidCount, done }: RunSummary,
  { policy }: ScoreOptions,
): void {
  const { failAbove } = withDefaults(onFailureOptions, policy.onFailure ?? {});
  const isNone = done > 0 && invalidCount === done;
  if (!isNone && invalidCount <= failAbove * done) return;
  const counts = Object.fromEntries([...invalid].map(([code, { count }]) => [code, count]));
  const cause = new RewardFailuresError(invalidCount, done, counts);
  const why = isNone ? "no sample has a score" : `--fail-above ${failAbove}`;
  throw new CliError(exitCodes.withoutScores, `${why}: ${cause.message}`, { cause });
}

interface Run {
  readonly summary: RunSummary;
  readonly wallMs: number;
  readonly baselineSamples: readonly SolutionSample[];
}

async function scoreAll(
  loop: RewardLoopManager,
  { total, read }: Solutions,
  file: RewardsFile,
  { stop, ...options }: ScoreOptions & { readonly stop: StopSignal },
): Promise<Run> {
  const view = new ProgressView();
  const summary = new RunSummary();
  const baselineSamples: SolutionSample[] = [];
  const subset = spreadOver(total, options.baseline);
  const startedAt = performance.now();
  const { signal } = stop;
  const { timeoutMs: leftMs = DRAIN_MS } = options;
  const onStop = (): void => {
    const time = span(leftMs);
    tell(`stopping: samples in flight have ${time} to finish; Ctrl-C again stops at once\n`);
  };
  signal.addEventListener("abort", onStop, { once: true });
  try {
    const groups = await groupsOf(loop, read, file, options);
    const rest = withoutScored(read(), file, options.onlyRecorded, (sample, outcome) => {
      // In a group it counts with the others, and comes back with them.
      if (groups !== undefined) return true;
      summary.keep({ index: sample.place.index, sample, outcome });
      return false;
    });
    const scored = loop.scoreStream(rest, {
      groups,
      total: (options.onlyRecorded ? file.known : total) - file.kept,
      drain: signal,
      signal: stop.after(leftMs),
      onProgress: (progress) => view.show(progress),
      progressEveryMs: view.everyMs,
      onOutcome: (one) => file.write(one),
    });
    for await (const one of scored) {
      if (file.stateOf(one.sample).kept === undefined) summary.add(one);
      else summary.keep(one);
      const { index } = one.sample.place;
      if (one.outcome.valid && subset.has(index)) baselineSamples.push(one.sample);
    }
    signal.throwIfAborted();
    if (file.records !== (options.onlyRecorded ? file.known : total)) {
      throw new CliError(1, `${options.solutions} changed while it was read`);
    }
    await file.close();
    return { summary, wallMs: performance.now() - startedAt, baselineSamples };
  } catch (error) {
    const exitCode = error instanceof CliError ? error.exitCode : 1;
    const reason = messageOf(error);
    const written = `${grouped(await file.count())} of ${grouped(total)} rewards are in ${file.path}`;
    const goOn = exitCode === 2 || options.out === STDOUT ? "" : " (--resume goes on)";
    throw new CliError(exitCode, `${reason.replace(/\.$/, "")}; ${written}${goOn}.`, {
      cause: error,
    });
  } finally {
    signal.removeEventListener("abort", onStop);
    view.close();
    // A failed write was already reported: closing again fails with that error.
    await file.close().catch(() => undefined);
  }
}

/**
 * How the answers to one prompt are scored together, where the function takes them so or something
 * is done to them together. Throws CliError 2.
 */
async function groupsOf(
  loop: RewardLoopManager,
  read: Solutions["read"],
  file: RewardsFile,
  { solutions, onlyRecorded }: ScoreOptions,
): Promise<StreamGroups<SolutionSample> | undefined> {
  if (!loop.traits.scoresGroups && !loop.putsGroupsRight) return undefined;
  const all = withoutScored(read(), file, onlyRecorded, () => true);
  const size = await groupSizesOf(solutions, all);
  const known = (sample: SolutionSample): SampleOutcome | undefined => {
    const { kept } = file.stateOf(sample);
    return kept && givenOutcomeOf(kept);
  };
  return { size, known };
}

/**
 * Yields the samples without a score; `onScored` says of each other one whether it is yielded, too.
 *
 * @param onlyRecorded whether samples without a line in the file are skipped
 */
async function* withoutScored(
  samples: AsyncIterable<SolutionSample> | Iterable<SolutionSample>,
  file: RewardsFile,
  onlyRecorded: boolean,
  onScored: (sample: SolutionSample, outcome: SampleOutcome) => boolean,
): AsyncGenerator<SolutionSample> {
  for await (const sample of samples) {
    const { isKnown, kept } = file.stateOf(sample);
    const isAsked = kept === undefined && (isKnown || !onlyRecorded);
    if (isAsked || (kept !== undefined && onScored(sample, outcomeOf(kept)))) yield sample;
  }
}

/**
 * Returns multiples of the golden ratio: evenly over the file, and never in step with the number of
 * solutions per question.
 */
function spreadOver(total: number, count: number): ReadonlySet<number> {
  if (count >= total) return new Set(Array(total).keys());
  const golden = (Math.sqrt(5) - 1) / 2;
  return new Set(Array.from({ length: count }, (_, i) => Math.floor(((i * golden) % 1) * total)));
}

async function runBaseline(
  samples: readonly SolutionSample[],
  options: ScoreOptions,
  { single }: AskedFunctions,
): Promise<BaselineResult | undefined> {
  if (samples.length === 0 || single === undefined) return undefined;
  tell(`baseline: ${grouped(samples.length)} samples, one at a time\n`);
  const baseline = baselineOf(options);
  // They were scored once; a function that now hangs must not delay the report.
  const limit =
    options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs * samples.length };
  try {
    return await ray.get(baseline.run.remote(single.asked, single.named, [...samples]), limit);
  } catch (error) {
    const reason = messageOf(error);
    tell(`baseline: given up, ${plain(reason.split("\n", 1)[0] ?? "")}\n`);
    return undefined;
  }
}
