/**
 * Output of a run for the person who started it: one line for each step, as in verl; on a terminal
 * a shorter one, and below it the current phase.
 */

import type { WriteStream } from "node:tty";
import { terminalLine } from "@rayling/core/terminal";
import type {
  PhaseRecord,
  StepMetrics,
  TrackedRun,
  TrackingLogger,
  TrainingProgress,
} from "../tracking-logger.ts";
import { LiveView } from "./live-view.ts";
import { stepLine } from "./step-line.ts";

/** Target and clock of a `ConsoleLogger`. */
export interface ConsoleLoggerOptions {
  /** Default stdout. */
  readonly stream?: WriteStream;
  /** Milliseconds of a clock. Default `performance.now`. */
  readonly now?: () => number;
}

/** Prints a line for each step, and on a terminal a view of the current one. */
export class ConsoleLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "console";
  readonly #stream: WriteStream;
  readonly #now: () => number;
  #view: LiveView | undefined;

  constructor({ stream, now }: ConsoleLoggerOptions = {}) {
    this.#stream = stream ?? process.stdout;
    this.#now = now ?? (() => performance.now());
  }

  /** Opens the view, if the output is a terminal. */
  open({ totalSteps }: TrackedRun): void {
    if (this.#stream.isTTY) this.#view = new LiveView(this.#stream, totalSteps, this.#now);
  }

  /** Prints the line of a step. */
  log(metrics: StepMetrics, step: number): void {
    if (this.#view === undefined) this.#stream.write(`${terminalLine(stepLine(metrics, step))}\n`);
    else this.#view.finished(metrics, step);
  }

  /** Shows the time of a phase. */
  phase(phase: PhaseRecord): void {
    this.#view?.phase(phase);
  }

  /** Shows the current phase. */
  progress(progress: TrainingProgress): void {
    this.#view?.progress(progress);
  }

  /** Prints a warning. */
  warning(_step: number, message: string): void {
    const line = `warning: ${message}`;
    if (this.#view === undefined) this.#stream.write(`${terminalLine(line)}\n`);
    else this.#view.say(line);
  }

  /** Closes the view. */
  close(): void {
    this.#view?.close();
  }
}
