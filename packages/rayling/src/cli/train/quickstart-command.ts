/**
 * `rayling quickstart`: trains, shows its progress, and ends with one table.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { schedules, Tracking } from "@rayling/trainer";
import type { ScheduleName } from "@rayling/trainer";
import { quickstart } from "@rayling/trainer/quickstart";
import type {
  QuickstartProgress,
  QuickstartResult,
  QuickstartTracking,
} from "@rayling/trainer/quickstart";
import { CliError } from "../cli-error.ts";
import { dashboardOption, type DashboardFlag } from "../dashboard-flag.ts";
import { stopSignal } from "../stop-signal.ts";
import { sayStyled } from "../output/output.ts";
import { tableLines } from "../output/table.ts";

export interface QuickstartFlags extends DashboardFlag {
  readonly steps: number;
  readonly seed: number;
  readonly schedule?: readonly string[];
  readonly latency?: number;
  readonly warmSteps: number;
  /** Undefined: a new folder. */
  readonly out?: string;
}

export async function runQuickstart(flags: QuickstartFlags): Promise<void> {
  const { steps, seed, latency } = flags;
  const chosen = (flags.schedule ?? ["sync", "one-step-off-policy"]).map(scheduleOf);
  const out = flags.out === undefined ? await newFolder() : await emptyFolder(flags.out);
  const stop = stopSignal();
  const startMs = performance.now();
  say(
    "A tiny transformer learns to add: 37+85 is 122. First by supervised warm-up, until it knows a third.",
  );
  try {
    // The judge, its reward loop and the policy are threads that mostly wait.
    await ray.init({ numCpus: 8, ...dashboardOption(flags, "on a terminal") });
    const result = await stop.race(
      quickstart({
        schedules: chosen,
        steps,
        seed,
        latencyMs: latency,
        warmSteps: flags.warmSteps,
        onProgress: (progress) => say(progressText(progress)),
        trackingOf: (schedule) => trackingOf(schedule, steps, out),
      }),
    );
    say("");
    for (const line of tableLines(rowsOf(result), columns)) say(line);
    const seconds = (performance.now() - startMs) / 1000;
    const pages = chosen.map((schedule) => join(out, schedule, "report.html"));
    say(`\nAll of it took ${seconds.toFixed(0)} s. Where the time went: ${pages.join(", ")};`);
    say(`trace.json beside them opens in Perfetto.`);
  } finally {
    stop.close();
    await ray.shutdown();
  }
}

async function newFolder(): Promise<string> {
  const { runFolder } = await import("@rayling/trainer/run");
  return await runFolder(join("runs", "quickstart"));
}

/** Returns an empty or new folder, because files would be written into it. Throws CliError 2. */
async function emptyFolder(folder: string): Promise<string> {
  const names = await readdir(folder).catch(() => []);
  if (names.length === 0) return folder;
  throw new CliError(2, `--out ${folder} is not empty: give another folder, or remove it.`);
}

async function trackingOf(
  schedule: ScheduleName,
  totalSteps: number,
  out: string,
): Promise<QuickstartTracking> {
  return await Tracking.open({
    logger: ["console", "file", "report", "trace"],
    projectName: "quickstart",
    experimentName: schedule,
    directory: join(out, schedule),
    totalSteps,
  });
}

const columns = [
  "schedule",
  "time",
  "against the first",
  "accuracy before",
  "accuracy after",
  "waited for rewards",
  "judge busy",
];

function rowsOf({ accuracy, runs }: QuickstartResult): Record<string, string>[] {
  const [first] = runs;
  return runs.map((run) => ({
    schedule: run.schedule,
    time: `${run.seconds.toFixed(1)} s`,
    "against the first": run === first ? "" : percent(run.seconds / (first?.seconds ?? 1) - 1),
    "accuracy before": share(accuracy),
    "accuracy after": share(run.accuracy),
    "waited for rewards": `${run.exposedWaitSeconds.toFixed(1)} s`,
    "judge busy": share(run.slotsBusy),
  }));
}

function progressText(progress: QuickstartProgress): string {
  switch (progress.phase) {
    case "warm start":
      return `  ${progress.steps} warm-up steps: ${share(progress.accuracy)} of new problems right`;
    case "calibration":
      return `Its own work takes ${progress.computeMs.toFixed(0)} ms a step; the judge takes up to ${progress.latencyMs.toFixed(0)} ms for an answer.`;
    default:
      return `GRPO, ${progress.schedule}:`;
  }
}

function scheduleOf(name: string): ScheduleName {
  if (isSchedule(name)) return name;
  throw new CliError(2, `--schedule takes ${Object.keys(schedules).join(", ")}, not "${name}"`);
}

function isSchedule(name: string): name is ScheduleName {
  return Object.hasOwn(schedules, name);
}

function share(value: number): string {
  return `${(value * 100).toFixed(1)} %`;
}

function percent(value: number): string {
  return `${value > 0 ? "+" : ""}${(value * 100).toFixed(1)} %`;
}

function say(text: string): void {
  sayStyled(`${text}\n`);
}
