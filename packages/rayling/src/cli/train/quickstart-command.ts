/**
 * `rayling quickstart`: trains, shows its progress, and ends with one comparison, one page, and
 * what to do next.
 */
import { join } from "node:path";
import * as ray from "@rayling/core";
import { Tracking, writeReport } from "@rayling/trainer";
import type { ScheduleName, TrackingLogger } from "@rayling/trainer";
import { quickstart } from "@rayling/trainer/quickstart";
import type {
  QuickstartProgress,
  QuickstartResult,
  QuickstartTracking,
} from "@rayling/trainer/quickstart";
import { dashboardOption } from "../dashboard-flag.ts";
import { shownSession } from "../shown-session.ts";
import { stopSignal } from "../stop-signal.ts";
import { openAnswer } from "../output/formats.ts";
import { span } from "../output/numbers.ts";
import { tell } from "../output/output.ts";
import type { PhaseLine } from "../output/phase-line.ts";
import { slowness, standardSchedules } from "./quickstart-introduction.ts";
import type { QuickstartFlags } from "./quickstart-introduction.ts";
import { percent, summaryLines } from "./quickstart-summary.ts";
import { scheduleWords, stepWords } from "./training-introduction.ts";

/** Seconds that all of it may take, from the start of the process. */
const allSeconds = 78;

/** @param line says what is done now */
export async function runQuickstart(flags: QuickstartFlags, line: PhaseLine): Promise<void> {
  const out = flags.out ?? (await newFolder());
  const stop = stopSignal();
  const answer = openAnswer(flags.format);
  let training: Promise<QuickstartResult> | undefined;
  try {
    // The judge, its reward loop and the policy are threads that mostly wait.
    const shown = { ...shownSession, ...dashboardOption(flags, "on a terminal") };
    await ray.init({ numCpus: 8, ...shown });
    line.show("Starting the policy");
    training = trained(flags, { out, line });
    const result = await stop.race(training);
    line.show("Writing the page");
    const page = await writeReport({ directory: out, title: "quickstart" });
    line.pause();
    const wallMs = performance.now();
    await answer.print({ ...result, wallMs, page, directory: out }, () =>
      summaryLines(result, { page, seconds: wallMs / 1000 }),
    );
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    line.show("Stopping");
    await ray.shutdown();
    // The loggers leave the terminal and the files in order.
    await training?.catch(() => undefined);
    line.pause();
    await tellPartial(out);
    throw error;
  } finally {
    stop.close();
    await ray.shutdown();
    answer.close();
  }
}

async function trained(flags: QuickstartFlags, { out, line }: Run): Promise<QuickstartResult> {
  const { schedule: chosen = standardSchedules, steps, seed, latency, warmSteps, verbose } = flags;
  return await quickstart({
    schedules: chosen,
    steps,
    seconds: allSeconds - performance.now() / 1000,
    seed,
    latencyMs: latency,
    warmSteps,
    onProgress: (progress) => showProgress(progress, line, flags),
    trackingOf: (schedule, totalSteps) => trackingOf({ schedule, totalSteps, out, line, verbose }),
  });
}

interface Run {
  readonly out: string;
  readonly line: PhaseLine;
}

async function newFolder(): Promise<string> {
  const { runFolder } = await import("@rayling/trainer/run");
  return await runFolder(join("runs", "quickstart"));
}

async function trackingOf(run: {
  readonly schedule: ScheduleName;
  readonly totalSteps: number;
  readonly out: string;
  readonly line: PhaseLine;
  readonly verbose: boolean | undefined;
}): Promise<QuickstartTracking> {
  const { schedule, totalSteps, out, line, verbose } = run;
  return await Tracking.open({
    logger: ["console", "file", "trace"],
    loggers: [new Heartbeat(line, schedule, totalSteps)],
    projectName: "quickstart",
    experimentName: schedule,
    directory: join(out, schedule),
    totalSteps,
    verbose,
  });
}

/** A step that takes long is no reason for silence; on a terminal the console shows each. */
class Heartbeat implements TrackingLogger {
  readonly name = "heartbeat";
  readonly #line: PhaseLine;
  readonly #schedule: string;
  readonly #totalSteps: number;

  constructor(line: PhaseLine, schedule: string, totalSteps: number) {
    this.#line = line;
    this.#schedule = schedule;
    this.#totalSteps = totalSteps;
  }

  log(_metrics: unknown, step: number): void {
    const isLast = step === this.#totalSteps;
    const next = `${this.#schedule}, ${isLast ? "test on new problems" : `step ${step + 1}`}`;
    if (process.stdout.isTTY) this.#line.pause(next);
    else this.#line.touch(next);
  }

  close(): void {
    this.#line.begin(`${this.#schedule}, writing its files`);
  }
}

function showProgress(progress: QuickstartProgress, line: PhaseLine, flags: QuickstartFlags): void {
  switch (progress.phase) {
    case "warm start":
      return line.show(
        `Warm-up: ${progress.steps} supervised steps, ${percent(progress.accuracy)} of some new problems right`,
      );
    case "probe":
      line.say(
        `Warm-up: done, accuracy ${percent(progress.accuracy)} on new problems (${percent(progress.greedyAccuracy)} by the likeliest answers)`,
      );
      return line.show("Probe: how long a step computes on this machine");
    case "plan": {
      const { computeMs, latencyMs, steps, seconds } = progress;
      line.say(
        `Probe: a step computes for ${computeMs.toFixed(0)} ms; the judge takes up to ${latencyMs.toFixed(0)} ms.`,
      );
      line.say(`Training: ${steps} steps under each schedule, about ${span(1000 * seconds)} more.`);
      const slow = slowness(flags, performance.now() / 1000 + seconds);
      if (slow !== undefined) line.say(slow);
      if (flags.verbose !== true) for (const one of stepWords(process.stdout, false)) line.say(one);
      return;
    }
    default: {
      const { schedule } = progress;
      const { schedule: all = standardSchedules } = flags;
      const place = `${all.indexOf(schedule) + 1} of ${all.length}`;
      line.say("");
      line.say(`GRPO, ${schedule} (${place}): ${scheduleWords[schedule]}`);
      if (process.stdout.isTTY) line.pause();
    }
  }
}

/** Says what is left of a run that was stopped. */
async function tellPartial(out: string): Promise<void> {
  const page = await writeReport({ directory: out, title: "quickstart" }).catch(() => undefined);
  if (page !== undefined) tell(`The steps so far are in ${out}; their page is ${page}\n`);
}
