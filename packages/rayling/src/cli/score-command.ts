/**
 * `rayling score`: checks the input, scores everything with the reward loop, then a part of it one at a time, and reports.
 *
 * The baseline runs last and on samples that the loop could score: a reward function that hangs or exits then cannot take it along.
 * Whatever ends the run, every thread is ended and what was written stays.
 */

import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { outcomeOf, RewardLoopManager } from "@rayling/reward-loop";
import type { SampleOutcome } from "@rayling/reward-loop";
import { parseRewardSpec } from "@rayling/reward-manager-registry";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { BaselineActor } from "./baseline.ts";
import type { BaselineResult } from "./baseline.ts";
import { CliError } from "./cli-error.ts";
import { grouped } from "./numbers.ts";
import { ProgressView } from "./progress-view.ts";
import { reportText } from "./report.ts";
import { RewardsFile } from "./rewards-file.ts";
import { RunSummary } from "./run-summary.ts";
import type { ScoreOptions } from "./score-options.ts";
import { stopSignal } from "./stop-signal.ts";
import { simulatedJudgeUrl } from "./simulated-judge.ts";
import type { SimulatedJudge } from "./simulated-judge.ts";
import { openSolutions } from "./solutions.ts";
import type { Solutions, SolutionSample } from "./solutions.ts";

/** How long a reward module may take to load. */
const LOAD_TIMEOUT_MS = 60_000;

export async function runScore(options: ScoreOptions): Promise<void> {
  const stop = stopSignal();
  try {
    const solutions = await openSolutions(options.solutions, stop.signal);
    const reward = { ...readSpec(options.reward), rewardKwargs: options.rewardKwargs };
    await ray.init({ prewarm: 2 });
    const loop = await stop.race(openLoop(options, reward));
    await refuseInput(options, reward);
    const file = await RewardsFile.open(options.out, loop.version, options);
    const run = await scoreAll(loop, solutions, file, options, stop.signal);
    const spent = options.policy.spend === undefined ? undefined : loop.spent;
    await loop.close();
    const baseline = await stop.race(runBaseline(run.baselineSamples, options, reward));
    const words = `${options.workers} workers x ${options.concurrency}`;
    process.stdout.write(reportText({ ...run, loop: words, baseline, spent, out: file.path }));
  } finally {
    await ray.shutdown();
    stop.close();
  }
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
  options: ScoreOptions,
  signal: AbortSignal,
): Promise<Run> {
  const view = new ProgressView();
  const summary = new RunSummary();
  const baselineSamples: SolutionSample[] = [];
  const subset = spreadOver(total, options.baseline);
  const startedAt = performance.now();
  const onStop = (): void => {
    process.stderr.write("stopping: what is in flight is finished; Ctrl-C again stops at once\n");
  };
  signal.addEventListener("abort", onStop, { once: true });
  try {
    const rest = withoutScored(read(), file, (sample, outcome) => {
      summary.add({ index: sample.extraInfo.index, sample, outcome });
    });
    const scored = loop.scoreStream(rest, {
      total: total - file.kept,
      drain: signal,
      onProgress: (progress) => view.show(progress),
      progressEveryMs: view.everyMs,
    });
    for await (const one of scored) {
      await file.write(one);
      summary.add(one);
      const { index } = one.sample.extraInfo;
      if (one.outcome.valid && subset.has(index)) baselineSamples.push(one.sample);
    }
    signal.throwIfAborted();
    if (file.records !== total) {
      throw new CliError(1, `${options.solutions} changed while it was read`);
    }
    return { summary, wallMs: performance.now() - startedAt, baselineSamples };
  } catch (error) {
    const exitCode = error instanceof CliError ? error.exitCode : 1;
    const reason = error instanceof Error ? error.message : String(error);
    const written = `${grouped(file.records)} of ${grouped(total)} rewards are in ${file.path}`;
    const goOn = exitCode === 2 ? "" : " (--resume goes on)";
    throw new CliError(exitCode, `${reason.replace(/\.$/, "")}; ${written}${goOn}.`, {
      cause: error,
    });
  } finally {
    signal.removeEventListener("abort", onStop);
    view.close();
    await file.close();
  }
}

/** Those that have no score yet; the others are told. */
async function* withoutScored(
  samples: AsyncIterable<SolutionSample> | Iterable<SolutionSample>,
  file: RewardsFile,
  onScored: (sample: SolutionSample, outcome: SampleOutcome) => void,
): AsyncGenerator<SolutionSample> {
  for await (const sample of samples) {
    const record = file.recordOf(sample);
    if (record === undefined) yield sample;
    else onScored(sample, outcomeOf(record));
  }
}

/** Multiples of the golden ratio: evenly over the file, and never in step with the number of solutions of a question. */
function spreadOver(total: number, count: number): ReadonlySet<number> {
  if (count >= total) return new Set(Array(total).keys());
  const golden = (Math.sqrt(5) - 1) / 2;
  return new Set(Array.from({ length: count }, (_, i) => Math.floor(((i * golden) % 1) * total)));
}

async function openLoop(options: ScoreOptions, reward: RewardSpec): Promise<RewardLoopManager> {
  const { workers, concurrency, executors, timeoutMs, manager, managerOptions, policy } = options;
  const spec = options.latencyMs === undefined ? reward : judged(reward, options);
  // The judge would find a bad reward module only at its first sample.
  const checking = baselineOf(options);
  const opening = RewardLoopManager.create({
    workers,
    concurrency,
    executors,
    timeoutMs,
    startTimeoutMs: LOAD_TIMEOUT_MS,
    reward: spec,
    manager: managerOf(manager),
    managerOptions,
    ...policy,
  });
  try {
    const [loop] = await Promise.all([
      opening,
      ray.get(checking.load.remote(reward), { timeoutMs: LOAD_TIMEOUT_MS }),
    ]);
    return loop;
  } catch (error) {
    const reason = loadFailure(error);
    const isOfManager = managerCodes.has((error as { readonly code?: unknown }).code);
    const flag = isOfManager ? `--manager ${manager}` : `--reward ${options.reward}`;
    throw new CliError(2, `${flag}: ${reason}`, { cause: error });
  } finally {
    await ray.kill(checking);
  }
}

const managerCodes: ReadonlySet<unknown> = new Set([
  "UNKNOWN_REWARD_MANAGER",
  "INVALID_REWARD_MANAGER",
  "INVALID_MANAGER_OPTION",
]);

/** In the user's words, not in those of the actors behind it. */
function loadFailure(error: unknown): string {
  if (error instanceof ray.GetTimeoutError) {
    return `the module did not finish loading within ${LOAD_TIMEOUT_MS / 1000} s`;
  }
  if (error instanceof ray.ActorDiedError) {
    return `the module ended its thread while it loaded: ${error.deathCause.message}`;
  }
  return error instanceof Error ? error.message : String(error);
}

/** Rewards written over the solutions or the reward function would destroy them. */
async function refuseInput(options: ScoreOptions, reward: RewardSpec): Promise<void> {
  const inputs = { "--solutions": options.solutions, "--reward": reward.path };
  const out = await stat(options.out).catch(() => undefined);
  if (out?.isFile() !== true) return;
  for (const [flag, path] of Object.entries(inputs)) {
    const file = path.startsWith("file:") ? fileURLToPath(path) : path;
    const input = await stat(file).catch(() => undefined);
    if (input?.dev === out.dev && input.ino === out.ino) {
      throw new CliError(2, `--out ${options.out} is the file of ${flag}`);
    }
  }
}

async function runBaseline(
  samples: readonly SolutionSample[],
  options: ScoreOptions,
  reward: RewardSpec,
): Promise<BaselineResult | undefined> {
  if (samples.length === 0) return undefined;
  process.stderr.write(`baseline: ${grouped(samples.length)} samples, one at a time\n`);
  const spec = options.latencyMs === undefined ? reward : judged(reward, options);
  const baseline = baselineOf(options);
  // They were scored once; a function that now hangs must not hold the report back.
  const limit =
    options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs * samples.length };
  try {
    return await ray.get(baseline.run.remote(spec, reward, [...samples]), limit);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`baseline: given up, ${reason.split("\n", 1)[0]}\n`);
    return undefined;
  }
}

/** What is to crash in a process only must not do so in this one. */
function baselineOf({ manager }: ScoreOptions): ReturnType<typeof BaselineActor.remote> {
  return BaselineActor.options(manager === "remote" ? { isolation: "process" } : {}).remote();
}

function judged(reward: RewardSpec, options: ScoreOptions): RewardSpec {
  const { latencyMs = [0, 0], seed } = options;
  const judge: SimulatedJudge = { reward, latencyMs, seed, baseDirectory: process.cwd() };
  return { path: simulatedJudgeUrl, rewardKwargs: { judge } };
}

/** A name of the registry, or a path as a reward's. */
function managerOf(text: string): string | RewardSpec {
  return /^[\w-]+$/.test(text) ? text : readSpec(text);
}

function readSpec(text: string): RewardSpec {
  try {
    return parseRewardSpec(text);
  } catch (error) {
    throw new CliError(2, `--reward: ${(error as Error).message}`, { cause: error });
  }
}
