/**
 * Names of the files of a run, and fields of their lines. Other programs read the fields: their
 * names stay.
 */

import type { FailureClass, ScoreFailureCode } from "@rayling/reward-loop";
import type { PhaseRecord } from "../tracking-logger.ts";

export const runFiles = {
  metrics: "metrics.jsonl",
  timeline: "timeline.jsonl",
  generations: "generations.jsonl",
  report: "report.html",
  trace: "trace.json",
} as const;

/** Numbers that JSON has nothing for. */
export type NotFinite = "NaN" | "Infinity" | "-Infinity";

/** A line of metrics as verl writes it, except for numbers that are not finite. */
export interface WrittenMetricsLine {
  readonly step: number;
  readonly data: Readonly<Record<string, number | NotFinite | null>>;
}

/**
 * A line of metrics as it is read, with numbers again. null is an unknown number, and in older runs
 * also one that is not finite.
 */
export interface MetricsLine {
  readonly step: number;
  readonly data: Readonly<Record<string, number | null>>;
}

export function writtenNumber(value: number): number | NotFinite {
  return Number.isFinite(value) ? value : (String(value) as NotFinite);
}

export function readMetricsLine({ step, data }: WrittenMetricsLine): MetricsLine {
  const numbers = Object.entries(data).map(([name, value]): [string, number | null] => [
    name,
    typeof value === "string" ? Number(value) : value,
  ]);
  return { step, data: Object.fromEntries(numbers) };
}

/** One of a step's samples that were chosen for drawing. */
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
  /** Latencies of the samples that were scored here: counts by `bucketOf`. */
  readonly latency: readonly (readonly [bucket: number, count: number])[];
  readonly failures: readonly FailureCount[];
}

export type PhaseLine = { readonly type: "phase" } & PhaseRecord;

/**
 * Marks the start of a process: steps that a killed process reported are reported again by the next
 * one.
 */
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
