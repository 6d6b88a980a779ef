/**
 * The last two lines of a terminal while a run goes on: how far it is and how long it will take, and what this step has spent its time on. They are drawn
 * again ten times a second at most, and when a second has gone by without news. Lines of finished steps stand above them.
 */

import type { WriteStream } from "node:tty";
import { isValidationOnly } from "../tracking-logger.ts";
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
  #progress: TrainingProgress = { step: 0 };
  /** Milliseconds of each phase of the step that is worked at. */
  #spent: Map<string, number> = new Map();
  #phaseSince: number;
  #summary: StepSummary = {};

  constructor(stream: WriteStream, totalSteps: number | undefined, now: () => number) {
    this.#stream = stream;
    this.#totalSteps = totalSteps;
    this.#now = now;
    this.#phaseSince = now();
    this.#timeLeft = new TimeLeft(now());
    this.#ticking = setInterval(() => this.#draw(), tickMs).unref();
  }

  progress(progress: TrainingProgress): void {
    if (progress.phase !== this.#progress.phase) this.#phaseSince = this.#now();
    this.#progress = progress;
    this.#drawSoon();
  }

  /** Only what the trainer itself did: the rest went on beside it. */
  phase({ name, startMs, endMs, track = "trainer" }: PhaseRecord): void {
    if (track !== "trainer" || name === "step") return;
    this.#spent.set(name, (this.#spent.get(name) ?? 0) + endMs - startMs);
    this.#drawSoon();
  }

  finished(metrics: StepMetrics, step: number): void {
    if (isValidationOnly(metrics)) this.#timeLeft = new TimeLeft(this.#now());
    else this.#timeLeft.finished(this.#now());
    this.#summary = { ...this.#summary, ...summaryOf(metrics) };
    this.#spent = new Map();
    this.#clear();
    this.#stream.write(`${stepSummary(metrics, step, this.#totalSteps)}\n`);
    this.#draw();
  }

  close(): void {
    clearInterval(this.#ticking);
    clearTimeout(this.#drawing);
    if (this.#rows > 0) this.#draw();
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
    for (const line of lines) this.#stream.write(`${cut(line, this.#stream.columns - 1)}\n`);
    this.#rows = lines.length;
  }

  #runLine(): string {
    const { step, inFlight } = this.#progress;
    const { score, accuracy } = this.#summary;
    const total = this.#totalSteps;
    const done = Math.max(0, step - 1);
    const parts = [
      `step ${step}${total === undefined ? "" : `/${total} ${progressBar(done / total)}`}`,
      ...this.#left(),
      ...(inFlight === undefined ? [] : [`${inFlight} rewards in flight`]),
      ...(score === undefined ? [] : [`score ${score.toFixed(3)}`]),
      ...(accuracy === undefined ? [] : [`accuracy ${accuracy.toFixed(3)}`]),
    ];
    return parts.join(", ");
  }

  #left(): readonly string[] {
    if (this.#totalSteps === undefined) return [];
    const ms = this.#timeLeft.leftMs(this.#totalSteps - this.#progress.step + 1, this.#now());
    return ms === undefined ? [] : [`${spanText(ms)} left`];
  }

  #stepLine(): string {
    const { phase } = this.#progress;
    const running =
      phase === undefined ? undefined : { name: phase, ms: this.#now() - this.#phaseSince };
    return phaseBar(this.#spent, running);
  }

  #clear(): void {
    this.#stream.write("\u001b[1A\u001b[2K".repeat(this.#rows));
    this.#rows = 0;
  }
}

/** Nothing that would make the terminal go on to the next row: it could not be drawn over. */
function cut(line: string, columns: number): string {
  return line.length <= columns ? line : line.slice(0, Math.max(0, columns));
}
