/**
 * Output of a run for the person who started it: one short line for each step, and on a terminal
 * below it the current phase. verl's line of all metrics is printed where it is asked for.
 *
 * Where the output takes nothing more, methods throw, and training goes on without it.
 */

import type { WriteStream } from "node:tty";
import { terminalLine, wrapped } from "@rayling/core/terminal";
import type {
  PhaseRecord,
  StepMetrics,
  TrackedRun,
  TrackingLogger,
  TrainingProgress,
} from "../tracking-logger.ts";
import { LiveView } from "./live-view.ts";
import { isAddition } from "../tracking-logger.ts";
import { StreamFailure } from "./stream-failure.ts";
import { stepLine } from "./step-line.ts";
import { stepSummary, summaryOf } from "./step-summary.ts";
import { TimeLeft } from "./time-left.ts";

/** Target and clock of a `ConsoleLogger`. */
export interface ConsoleLoggerOptions {
  /** Default stdout. */
  readonly stream?: WriteStream;
  /** Milliseconds of a clock. Default `performance.now`. */
  readonly now?: () => number;
  /** Whether each step is verl's line of all metrics, also on a terminal. Default false. */
  readonly verbose?: boolean;
}

/** Columns of a line where there is no terminal. */
const pipedColumns = 100;

/** At the end the output has so long to take what was written, in ms. */
const readerMs = 1000;

/** Prints a line for each step, and on a terminal a view of the current one. */
export class ConsoleLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "console";
  readonly #stream: WriteStream;
  readonly #now: () => number;
  readonly #verbose: boolean;
  #view: LiveView | undefined;
  #failure: StreamFailure | undefined;
  #totalSteps: number | undefined;
  #timeLeft: TimeLeft = new TimeLeft();

  constructor({ stream, now, verbose = false }: ConsoleLoggerOptions = {}) {
    this.#stream = stream ?? process.stdout;
    this.#now = now ?? (() => performance.now());
    this.#verbose = verbose;
  }

  /** Opens the view, if the output is a terminal. */
  open({ totalSteps }: TrackedRun): void {
    this.#totalSteps = totalSteps;
    this.#timeLeft = new TimeLeft();
    this.#failure = new StreamFailure(this.#stream);
    if (!this.#stream.isTTY || this.#verbose) return;
    this.#view = new LiveView(this.#stream, totalSteps, this.#now);
  }

  /** Prints the line of a step. */
  log(metrics: StepMetrics, step: number): void {
    this.#failure?.check();
    if (this.#view !== undefined) return this.#view.finished(metrics, step);
    const line = this.#verbose ? stepLine(metrics, step) : this.#shortLine(metrics, step);
    if (line !== undefined) this.#stream.write(`${terminalLine(line)}\n`);
  }

  /** Returns nothing for an addition to a step that people do not follow, such as its times. */
  #shortLine(metrics: StepMetrics, step: number): string | undefined {
    const totalSteps = this.#totalSteps;
    const line = (leftMs?: number): string =>
      stepSummary(metrics, { step, totalSteps, leftMs }, pipedColumns);
    if (isAddition(metrics)) {
      const isFollowed = Object.keys(summaryOf(metrics)).length > 0;
      return isFollowed ? line() : undefined;
    }
    const nowMs = this.#now();
    this.#timeLeft.finished(nowMs);
    return line(totalSteps && this.#timeLeft.leftMs(totalSteps - step, nowMs));
  }

  /** Shows the time of a phase. */
  phase(phase: PhaseRecord): void {
    this.#failure?.check();
    this.#view?.phase(phase);
  }

  /** Shows the current phase. */
  progress(progress: TrainingProgress): void {
    this.#failure?.check();
    this.#view?.progress(progress);
  }

  /** Prints a warning, which a terminal gets in lines that are broken between words. */
  warning(_step: number, message: string): void {
    this.#failure?.check();
    const text = terminalLine(`warning: ${message}`);
    for (const line of wrapped(text, this.#stream, "  ")) {
      if (this.#view === undefined) this.#stream.write(`${line}\n`);
      else this.#view.say(line);
    }
  }

  /** Closes the view. Rejects where not all was written. */
  async close(): Promise<void> {
    this.#view?.close();
    const failure = this.#failure;
    if (failure === undefined) return;
    // Errors of what was written come before. A reader that has paused holds up no training.
    const isWritten = await new Promise<boolean>((resolve) => {
      const late = setTimeout(() => resolve(false), readerMs);
      this.#stream.write("", () => {
        clearTimeout(late);
        resolve(true);
      });
    });
    if (isWritten) failure.close();
    else failure.check();
  }
}
