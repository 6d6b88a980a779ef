/**
 * Names of the files of a run, and fields of their lines. Other programs read the fields: their
 * names stay.
 */

import { isList, isRecord } from "@rayling/reward-manager-registry/values";
import type { FailureClass, ScoreFailureCode } from "@rayling/reward-loop/reward-log";
import type { PhaseRecord, TrackingConfig } from "../tracking-logger.ts";

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
  /** Number of the step, from 1; 0 for a validation before it. */
  readonly step: number;
  /** Metrics by verl's names. */
  readonly data: Readonly<Record<string, number | null>>;
}

export function writtenNumber(value: number): number | NotFinite {
  if (Number.isFinite(value)) return value;
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

/** Numbers that are not finite become their texts, as in metrics, and bigints theirs. */
export function writtenSettings(
  settings: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, writtenSetting(value)]),
  );
}

function writtenSetting(value: unknown): unknown {
  if (typeof value === "number") return writtenNumber(value);
  if (typeof value === "bigint") return String(value);
  if (isList(value)) return value.map(writtenSetting);
  // A Map or a Date is no tree of settings: each logger says what it does with it.
  const isTree = isRecord(value) && Object.prototype.toString.call(value) === "[object Object]";
  return isTree ? writtenSettings(value) : value;
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
  /** Tells the line from others. */
  readonly type: "sample";
  /** The step that trained on it or dropped it, from 1. */
  readonly step: number;
  /** Id of the sample, unique within a run. */
  readonly id: string;
  /** When its last token was there, in ms since 1970. */
  readonly generatedMs: number;
  /** When its score function was started. */
  readonly startedMs: number;
  /** When its outcome was there, in ms since 1970. */
  readonly scoredMs: number;
  /** When it was learned from, in ms since 1970; null if it was not. */
  readonly usedMs: number | null;
  /** Whether it has a valid score. */
  readonly valid: boolean;
  /** Attempts of its score function. */
  readonly attempts: number;
}

/** Failures of one class and code in a step. */
export interface FailureCount {
  /** The class of the failure. */
  readonly class: FailureClass;
  /** The code of the failure. */
  readonly code: ScoreFailureCode;
  /** Number of such samples. */
  readonly count: number;
  /** The message of the first one. */
  readonly example: string;
}

/** All rewards of a step. */
export interface RewardsLine {
  /** Tells the line from others. */
  readonly type: "rewards";
  /** Number of the step, from 1. */
  readonly step: number;
  /** Number of samples. */
  readonly samples: number;
  /** How many of them have a line of their own. */
  readonly drawn: number;
  /** Sum of the costs that the score functions reported. */
  readonly cost: number;
  /** Latencies of the samples that were scored here: counts by `bucketOf`. */
  readonly latency: readonly (readonly [bucket: number, count: number])[];
  /** Failures by class and code. */
  readonly failures: readonly FailureCount[];
}

/** One phase of the timeline. */
export type PhaseLine = { readonly type: "phase" } & PhaseRecord;

/**
 * Marks the start of a process, and says what it was: steps that a killed process reported are
 * reported again by the next one. Older runs have its time alone.
 */
export interface StartLine {
  /** Tells the line from others. */
  readonly type: "start";
  /** When it began, in ms since 1970. */
  readonly atMs: number;
  /** Name of the project. */
  readonly projectName?: string;
  /** Name of the experiment. */
  readonly experimentName?: string;
  /** Number of steps; null where it is unknown. */
  readonly totalSteps?: number | null;
  /** The command line. */
  readonly command?: string;
  /** The commit of the checkout in which it was started; null outside one. */
  readonly commit?: string | null;
  /** Version of Node. */
  readonly node?: string;
  /** Name of the machine. */
  readonly host?: string;
  /** The settings of the run; null where the caller gave none. */
  readonly config?: TrackingConfig | null;
}

/** A warning of the training. */
export interface WarningLine {
  /** Tells the line from others. */
  readonly type: "warning";
  /** The step that it is about. */
  readonly step: number;
  /** The text of the warning. */
  readonly message: string;
}

export type TimelineLine = StartLine | PhaseLine | SampleLine | RewardsLine | WarningLine;

/** One answer of a validation. */
export interface GenerationLine {
  /** The step after which it was validated. */
  readonly step: number;
  /** Its place among the answers of its validation that are logged; earlier releases lack it. */
  readonly row?: number;
  /** The prompt. */
  readonly input: string;
  /** The answer. */
  readonly output: string;
  /** The score; null without a valid one. */
  readonly score: number | null;
}
