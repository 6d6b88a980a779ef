/**
 * The reports of a run, and the contract of a logger that receives them: the console, files,
 * TensorBoard, or an object of the user's own.
 *
 * Reports are plain data by verl's names. Times are milliseconds since 1970 by the clock of
 * `Tracking.now()`, which never goes back within a process.
 */

import type { SampleOutcome } from "@rayling/reward-loop/reward-log";

/**
 * Metrics by verl's names: `critic/score/mean`, `timing_s/gen`. A metric that could not be computed
 * is NaN.
 */
export type StepMetrics = Readonly<Record<string, number>>;

/** Something that took time, as a bar of a chart: a phase of the trainer, a call of an actor. */
export interface PhaseRecord {
  /** The step that it was done for, from 1; 0 for what comes before the first. */
  readonly step: number;
  /**
   * verl's name of the timer: gen, reward, old_log_prob, ref, values, adv, update_critic,
   * update_actor, testing, save_checkpoint, step.
   */
  readonly name: string;
  /** When it began, in ms since 1970. */
  readonly startMs: number;
  /** When it ended, in ms since 1970. */
  readonly endMs: number;
  /**
   * The track on which the phase is drawn; phases of one track may lie within each other. Default
   * "trainer".
   */
  readonly track?: string;
}

/** One sample that was trained on, or dropped. */
export interface SampleRecord {
  /** Id of the sample, unique within a run. */
  readonly id: string;
  /** When its last token was there. */
  readonly generatedMs: number;
  /** When its outcome was there. */
  readonly scoredMs: number;
  /** When it was learned from: not before that update began; lacks where none did. */
  readonly usedMs?: number;
  /** The score, or why there is none. */
  readonly outcome: SampleOutcome;
}

/** The current phase, for people who watch. */
export interface TrainingProgress {
  /** The current step, from 1. */
  readonly step: number;
  /** Name of the phase that runs or is waited for. */
  readonly phase?: string;
  /** Rewards that are not there yet. */
  readonly inFlight?: number;
}

/** One row of the table of validation generations. */
export interface Generation {
  /** The prompt. */
  readonly input: string;
  /** The answer. */
  readonly output: string;
  /** Score of the answer; NaN without a valid one. */
  readonly score: number;
}

/**
 * Whether metrics are an addition to a step: a validation, before the first step or after any, or
 * the times of a validation and of a checkpoint.
 */
export function isAddition(metrics: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(metrics).every((name) => /^(?:val-|timing_|perf\/)/.test(name));
}

/** Settings of a run, by verl's names: `{ trainer: { total_epochs: 2 } }`. Plain data. */
export type TrackingConfig = Readonly<Record<string, unknown>>;

/** How a run ended. */
export interface RunEnd {
  /** Why the run failed; undefined for a run that reached its end. */
  readonly error?: unknown;
}

/** Names, folder, settings and length of a run. */
export interface TrackedRun {
  /** verl `trainer.project_name`. */
  readonly projectName: string;
  /** verl `trainer.experiment_name`. */
  readonly experimentName: string;
  /** Absolute path of the folder of this run's files; it exists. */
  readonly directory: string;
  /** Number of steps; undefined where it is unknown. */
  readonly totalSteps: number | undefined;
  /**
   * The settings, for loggers that show them, with `***` in place of what is secret; undefined
   * where the caller gave none.
   */
  readonly config?: TrackingConfig | undefined;
  /** The command of this process, with `***` in place of what is secret. */
  readonly command?: string | undefined;
}

/**
 * A logger. Methods are called one at a time, in the order of the events; methods that are missing
 * are skipped. After a method throws or rejects only `close` is called, and training goes on.
 */
export interface TrackingLogger {
  /** For messages about it. */
  readonly name: string;
  /**
   * Called before all others. A rejection keeps the run from starting.
   *
   * @param warn reports a problem that the logger survives
   */
  open?(run: TrackedRun, warn: (problem: string, cause?: unknown) => void): void | Promise<void>;
  /**
   * Receives the metrics of a trained step. Its validation, and the times of that and of its
   * checkpoint, come in later calls. Metrics reported again, as by a resumed run, replace the
   * earlier ones.
   */
  log?(metrics: StepMetrics, step: number): void | Promise<void>;
  /** Receives a phase that ended. */
  phase?(phase: PhaseRecord): void | Promise<void>;
  /** All samples of a step at once. */
  samples?(step: number, samples: readonly SampleRecord[]): void | Promise<void>;
  /** Receives generations of the validation after a step. */
  generations?(step: number, generations: readonly Generation[]): void | Promise<void>;
  /** Receives the current phase. */
  progress?(progress: TrainingProgress): void | Promise<void>;
  /** Receives a warning of the training, as of a validation that is below the first one. */
  warning?(step: number, message: string): void | Promise<void>;
  /** Called once, at the end. Resolves when all reports are written. */
  close?(end: RunEnd): void | Promise<void>;
}
