/**
 * The files of a run, and what is in them when they are read back. Of what is told of one step several times the last counts: a run that was killed and
 * resumed validates the step of its checkpoint, and tells those after it again. A line that was cut off by a kill is passed over.
 */

import { access } from "node:fs/promises";
import { join } from "node:path";
import { readJsonl } from "@rayling/data-proto";
import type { FailureClass, ScoreFailureCode } from "@rayling/reward-loop";
import { TrackingError } from "../../errors.ts";
import type { PhaseRecord } from "../tracking-logger.ts";

export const runFiles = {
  metrics: "metrics.jsonl",
  timeline: "timeline.jsonl",
  generations: "generations.jsonl",
  report: "report.html",
  trace: "trace.json",
} as const;

/** As verl writes it. */
export interface MetricsLine {
  readonly step: number;
  readonly data: Readonly<Record<string, number | null>>;
}

/** One of the samples of a step that are drawn. */
export interface SampleLine {
  readonly type: "sample";
  readonly step: number;
  readonly id: string;
  readonly generatedMs: number;
  /** When its score function was started. */
  readonly startedMs: number;
  readonly scoredMs: number;
  readonly usedMs: number | null;
  readonly valid: boolean;
  readonly attempts: number;
}

export interface FailureCount {
  readonly class: FailureClass;
  readonly code: ScoreFailureCode;
  readonly count: number;
  readonly example: string;
}

/** All rewards of a step. */
export interface RewardsLine {
  readonly type: "rewards";
  readonly step: number;
  readonly samples: number;
  /** How many of them have a line of their own. */
  readonly drawn: number;
  readonly cost: number;
  /** Latencies of those that were called: counts by `bucketOf`. */
  readonly latency: readonly (readonly [bucket: number, count: number])[];
  readonly failures: readonly FailureCount[];
}

export type PhaseLine = { readonly type: "phase" } & PhaseRecord;

/** Where a process began to write: what a killed one had told of a step is told again by the next one. */
export interface StartLine {
  readonly type: "start";
  readonly atMs: number;
}

export type TimelineLine = StartLine | PhaseLine | SampleLine | RewardsLine;

export interface GenerationLine {
  readonly step: number;
  readonly input: string;
  readonly output: string;
  readonly score: number | null;
}

export interface RunRecord {
  /** In order of their steps, each once. */
  readonly metrics: readonly MetricsLine[];
  readonly phases: readonly PhaseLine[];
  readonly samples: readonly SampleLine[];
  readonly rewards: readonly RewardsLine[];
  /** Of the last validation that told some. */
  readonly generations: readonly GenerationLine[];
}

/** Rejects with TrackingError TRACKING_FILES where the folder has no metrics, and JsonlError for what cannot be read. */
export async function readRun(directory: string): Promise<RunRecord> {
  const path = join(directory, runFiles.metrics);
  if (!(await isThere(path))) {
    throw new TrackingError(
      "TRACKING_FILES",
      path,
      "there is no such file: no run was logged here",
    );
  }
  const metrics = new Map<number, MetricsLine>();
  for await (const { step, data } of linesOf<MetricsLine>(path)) {
    metrics.set(step, { step, data: { ...metrics.get(step)?.data, ...data } });
  }
  const timeline = await readTimeline(join(directory, runFiles.timeline));
  return {
    metrics: [...metrics.values()].toSorted((a, b) => a.step - b.step),
    phases: timeline.filter((line) => line.type === "phase"),
    samples: timeline.filter((line) => line.type === "sample"),
    rewards: timeline.filter((line) => line.type === "rewards"),
    generations: await lastGenerations(join(directory, runFiles.generations)),
  };
}

/** Of each step what the last process told that knew of it. */
async function readTimeline(path: string): Promise<readonly TimelineLine[]> {
  if (!(await isThere(path))) return [];
  let start = 0;
  const lastStart = new Map<number, number>();
  const lines: { readonly line: Exclude<TimelineLine, StartLine>; readonly start: number }[] = [];
  for await (const line of linesOf<TimelineLine>(path)) {
    if (line.type === "start") {
      start += 1;
    } else {
      lastStart.set(line.step, start);
      lines.push({ line, start });
    }
  }
  return lines.filter((one) => one.start === lastStart.get(one.line.step)).map(({ line }) => line);
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

/** Lines of this version's own writing, without those that were cut off. */
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
