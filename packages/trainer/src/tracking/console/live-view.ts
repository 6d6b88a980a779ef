/**
 * The last two lines of a terminal while a run goes on: progress with the remaining time, and the
 * times of this step. They are redrawn at most ten times a second, and after a second without
 * events. Lines of finished steps are above them.
 */

import type { WriteStream } from "node:tty";
import { terminalLine } from "@rayling/core/terminal";
import { isAddition } from "../tracking-logger.ts";
import type { PhaseRecord, StepMetrics, TrainingProgress } from "../tracking-logger.ts";
import { phaseBar, progressBar } from "./phase-bar.ts";
import { stepSummary, summaryOf } from "./step-summary.ts";
import type { StepSummary } from "./step-summary.ts";
import { spanText, TimeLeft } from "./time-left.ts";

const everyMs = 100;
const tickMs = 1000;

export class LiveView {
  readonly #stream: WriteStream;
  readonly #totalSteps: number | undefined;
  readonly #now: () => number;
  #timeLeft: TimeLeft;
  readonly #ticking: NodeJS.Timeout;
  #drawing: NodeJS.Timeout | undefined;
  #drawnAt = -Infinity;
  #rows = 0;
  /** Progress of the current step, if there is one. */
  #progress: TrainingProgress | undefined;
  #finished = 0;
  /** Whether a step was finished in this process. */
  #hasTrained = false;
  /** Milliseconds of each phase of the current step. */
  #spent: Map<string, number> = new Map();
  #running: { readonly name: string; readonly sinceMs: number } | undefined;
  #summary: StepSummary = {};

  constructor(stream: WriteStream, totalSteps: number | undefined, now: () => number) {
    this.#stream = stream;
    this.#totalSteps = totalSteps;
    this.#now = now;
    this.#timeLeft = new TimeLeft(now());
    this.#ticking = setInterval(() => this.#draw(), tickMs).unref();
  }

  progress(progress: TrainingProgress): void {
    const { phase } = progress;
    if (phase !== this.#running?.name) {
      this.#running = phase === undefined ? undefined : { name: phase, sinceMs: this.#now() };
    }
    this.#progress = progress;
    this.#drawSoon();
  }

  /** Adds phases of the trainer's own track; other tracks run beside it. */
  phase({ name, startMs, endMs, track = "trainer" }: PhaseRecord): void {
    if (track !== "trainer" || name === "step") return;
    this.#spent.set(name, (this.#spent.get(name) ?? 0) + endMs - startMs);
    // The phase is over and counted.
    if (name === this.#running?.name) this.#running = undefined;
    this.#drawSoon();
  }

  finished(metrics: StepMetrics, step: number): void {
    this.#summary = { ...this.#summary, ...summaryOf(metrics) };
    if (isAddition(metrics)) {
      if (this.#hasTrained) return this.#more(metrics, step);
      this.#timeLeft = new TimeLeft(this.#now());
    } else {
      this.#hasTrained = true;
      this.#timeLeft.finished(this.#now());
    }
    this.#spent = new Map();
    this.#finished = step;
    this.#progress = undefined;
    this.#running = undefined;
    this.say(stepSummary(metrics, step, this.#totalSteps));
  }

  /** The last state is left standing, unless the last step is over. */
  close(): void {
    clearInterval(this.#ticking);
    clearTimeout(this.#drawing);
    if (this.#progress === undefined) this.#clear();
    else this.#draw();
  }

  /** Shows metrics of an earlier step while the next one runs. */
  #more(metrics: StepMetrics, step: number): void {
    if (Object.keys(summaryOf(metrics)).length === 0) return;
    this.say(stepSummary(metrics, step, this.#totalSteps));
  }

  /** Prints a line above the view. */
  say(line: string): void {
    this.#clear();
    this.#stream.write(`${terminalLine(line)}\n`);
    this.#drawSoon();
  }

  #drawSoon(): void {
    const waitMs = this.#drawnAt + everyMs - this.#now();
    if (waitMs <= 0) this.#draw();
    else this.#drawing ??= setTimeout(() => this.#draw(), waitMs).unref();
  }

  #draw(): void {
    clearTimeout(this.#drawing);
    this.#drawing = undefined;
    this.#drawnAt = this.#now();
    this.#clear();
    const lines = [this.#runLine(), this.#stepLine()];
    for (const line of lines)
      this.#stream.write(`${cut(terminalLine(line), (this.#stream.columns || 80) - 1)}\n`);
    this.#rows = lines.length;
  }

  #runLine(): string {
    const { score, accuracy } = this.#summary;
    const total = this.#totalSteps;
    const step = this.#progress?.step ?? this.#finished;
    const inFlight = this.#progress?.inFlight;
    const parts = [
      `step ${step}${total === undefined ? "" : `/${total} ${progressBar(this.#finished / total)}`}`,
      ...this.#left(),
      ...(inFlight === undefined ? [] : [`${inFlight} rewards in flight`]),
      ...(score === undefined ? [] : [`score ${score.toFixed(3)}`]),
      ...(accuracy === undefined ? [] : [`accuracy ${accuracy.toFixed(3)}`]),
    ];
    return parts.join(", ");
  }

  #left(): readonly string[] {
    if (this.#totalSteps === undefined) return [];
    const ms = this.#timeLeft.leftMs(this.#totalSteps - this.#finished, this.#now());
    return ms === undefined ? [] : [`${spanText(ms)} left`];
  }

  #stepLine(): string {
    const now = this.#now();
    const running = this.#running && { name: this.#running.name, ms: now - this.#running.sinceMs };
    return phaseBar(this.#spent, running);
  }

  #clear(): void {
    this.#stream.write("\u001b[1A\u001b[2K".repeat(this.#rows));
    this.#rows = 0;
  }
}

/** Cuts a line so that it does not wrap: a wrapped line could not be redrawn. */
function cut(line: string, columns: number): string {
  return line.length <= columns ? line : line.slice(0, Math.max(0, columns));
}
