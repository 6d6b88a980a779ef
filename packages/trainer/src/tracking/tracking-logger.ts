/**
 * What a run tells those that watch it, and what such a one is: the console, files, TensorBoard, or an object of the user's own.
 *
 * Plain data by verl's names. Times are milliseconds since 1970 by the clock of `Tracking.now()`, which never goes back within a process.
 */

import type { SampleOutcome } from "@rayling/reward-loop";

/** By verl's names: `critic/score/mean`, `timing_s/gen`. What could not be worked out is NaN. */
export type StepMetrics = Readonly<Record<string, number>>;

/** Something that took time, as a bar of a chart: a phase of the trainer, a call of an actor. */
export interface PhaseRecord {
  /** The step that it was done for, from 1; 0 for what comes before the first. */
  readonly step: number;
  /** verl's name of the timer: gen, reward, old_log_prob, ref, values, adv, update_critic, update_actor, testing, save_checkpoint, step. */
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Who was busy. Those of one track may lie within each other. Default "trainer". */
  readonly track?: string;
}

/** One sample that was trained on, or dropped. */
export interface SampleRecord {
  /** The same in no two samples of a run. */
  readonly id: string;
  /** When its last token was there. */
  readonly generatedMs: number;
  /** When its outcome was there. */
  readonly scoredMs: number;
  /** When it was learned from: not before that update began; lacks where none did. */
  readonly usedMs?: number;
  readonly outcome: SampleOutcome;
}

/** What goes on right now, for people who look. */
export interface TrainingProgress {
  /** The one that is worked at, from 1. */
  readonly step: number;
  /** What the trainer does or waits for. */
  readonly phase?: string;
  /** Rewards that are not there yet. */
  readonly inFlight?: number;
}

/** One row of the table of validation generations. */
export interface Generation {
  readonly input: string;
  readonly output: string;
  /** NaN where there is none. */
  readonly score: number;
}

/** What is told of a step beside its own metrics: the validation before the first step or behind any, and how long that and the checkpoint took. */
export function isAddition(metrics: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(metrics).every((name) => /^(?:val-|timing_|perf\/)/.test(name));
}

export interface TrackedRun {
  readonly projectName: string;
  readonly experimentName: string;
  /** Where files of this run go; it is there. */
  readonly directory: string;
  /** Undefined where nobody knows. */
  readonly totalSteps: number | undefined;
}

/**
 * One that is told. What it lacks it is not told; it is asked one thing at a time, in the order in which things happened.
 * One that throws or rejects is told nothing more but `close`, and training goes on.
 */
export interface TrackingLogger {
  /** For messages about it. */
  readonly name: string;
  /** Before anything else. What it rejects with keeps the run from starting. */
  open?(run: TrackedRun): void | Promise<void>;
  /** The metrics of a step, once it is trained; its validation, and how long that and its checkpoint took, come on their own when they are known. What is told of a step again, as by a run that was resumed, counts in place of what was. */
  log?(metrics: StepMetrics, step: number): void | Promise<void>;
  phase?(phase: PhaseRecord): void | Promise<void>;
  /** All samples of a step at once. */
  samples?(step: number, samples: readonly SampleRecord[]): void | Promise<void>;
  generations?(step: number, generations: readonly Generation[]): void | Promise<void>;
  progress?(progress: TrainingProgress): void | Promise<void>;
  /** Once, at the end: everything that it was told is where it belongs when this resolves. */
  close?(): void | Promise<void>;
}
