/**
 * Reads the files of a run: of steps that were reported again, the lines that count. A line cut off
 * by a kill is skipped.
 */

import { access } from "node:fs/promises";
import { join } from "node:path";
import { readJsonl } from "@rayling/data-proto";
import { TrackingError } from "../../errors.ts";
import { readMetricsLine, runFiles } from "./run-lines.ts";
import type {
  GenerationLine,
  MetricsLine,
  PhaseLine,
  RewardsLine,
  SampleLine,
  TimelineLine,
  WrittenMetricsLine,
} from "./run-lines.ts";
import { CurrentMetrics, currentLines } from "./current-lines.ts";

/** Reports of a run, read from its files. */
export interface RunRecord {
  /** Metrics in the order of their steps, each once. */
  readonly metrics: readonly MetricsLine[];
  /** Phases of all steps. */
  readonly phases: readonly PhaseLine[];
  /** Samples that were chosen for drawing. */
  readonly samples: readonly SampleLine[];
  /** Rewards, one entry for each step. */
  readonly rewards: readonly RewardsLine[];
  /** Generations of the last validation that reported some. */
  readonly generations: readonly GenerationLine[];
}

/**
 * Rejects with TrackingError TRACKING_FILES where the folder has no metrics, and JsonlError for
 * what cannot be read.
 */
export async function readRun(directory: string): Promise<RunRecord> {
  const path = join(directory, runFiles.metrics);
  if (!(await isThere(path))) {
    throw new TrackingError(
      "TRACKING_FILES",
      path,
      "there is no such file: no run was logged here",
    );
  }
  const metrics = new CurrentMetrics();
  for await (const line of linesOf<WrittenMetricsLine>(path)) metrics.add(readMetricsLine(line));
  const timeline = await readTimeline(join(directory, runFiles.timeline));
  return {
    metrics: metrics.lines,
    phases: timeline.filter((line) => line.type === "phase"),
    samples: timeline.filter((line) => line.type === "sample"),
    rewards: timeline.filter((line) => line.type === "rewards"),
    generations: await lastGenerations(join(directory, runFiles.generations)),
  };
}

async function readTimeline(path: string): Promise<ReturnType<typeof currentLines>> {
  return (await isThere(path))
    ? currentLines(await Array.fromAsync(linesOf<TimelineLine>(path)))
    : [];
}

async function lastGenerations(path: string): Promise<readonly GenerationLine[]> {
  if (!(await isThere(path))) return [];
  let last: GenerationLine[] = [];
  for await (const line of linesOf<GenerationLine>(path)) {
    if (line.step !== last[0]?.step) last = [];
    last.push(line);
  }
  return last;
}

/** Yields the lines, without those that were cut off. */
async function* linesOf<Line>(path: string): AsyncGenerator<Line, void, undefined> {
  for await (const { line, value } of readJsonl(path, { onMalformed: () => undefined })) {
    const isLine =
      typeof value === "object" && value !== null && ("step" in value || "type" in value);
    if (!isLine) throw new TrackingError("TRACKING_FILES", path, `line ${line} is none of a run`);
    yield value as Line;
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
