/**
 * The last two lines of a terminal while a run goes on: progress with the remaining time, and the
 * times of this step. They are redrawn at most ten times a second, and after a second without
 * events. Lines of finished steps, and what others write, are above them.
 */

import type { WriteStream } from "node:tty";
import { terminalLine, watchWrites } from "@rayling/core/terminal";
import type { WatchedWrites } from "@rayling/core/terminal";
import { isAddition } from "../tracking-logger.ts";
import type { PhaseRecord, StepMetrics, TrainingProgress } from "../tracking-logger.ts";
import { sumOf } from "../../values/sums.ts";
import { fitted } from "./fitted.ts";
import { phaseBar, progressBar } from "./phase-bar.ts";
import { stepSummary, summaryOf } from "./step-summary.ts";
import type { StepSummary } from "./step-summary.ts";
import { leftText, TimeLeft } from "./time-left.ts";

const everyMs = 100;
const tickMs = 1000;

export class LiveView {
  readonly #stream: WriteStream;
  readonly #totalSteps: number | undefined;
  readonly #now: () => number;
  readonly #timeLeft: TimeLeft = new TimeLeft();
  readonly #ticking: NodeJS.Timeout;
  #drawing: NodeJS.Timeout | undefined;
  #drawnAt = -Infinity;
  /** Lines that are drawn and may be drawn again. */
  #drawn: readonly string[] = [];
  /** Progress of the current step, if there is one. */
  #progress: TrainingProgress | undefined;
  #finished = 0;
  /** Whether a step was finished in this process. */
  #hasTrained = false;
  /** Milliseconds of each phase of the current step. */
  #spent: Map<string, number> = new Map();
  #running: { readonly name: string; readonly sinceMs: number } | undefined;
  #summary: StepSummary = {};
  /** The first one is that of the view. */
  readonly #streams: readonly [WatchedWrites, ...WatchedWrites[]];

  constructor(stream: WriteStream, totalSteps: number | undefined, now: () => number) {
    this.#stream = stream;
    this.#totalSteps = totalSteps;
    this.#now = now;
    this.#ticking = setInterval(() => this.#draw(), tickMs).unref();
    const others = stream === process.stdout && process.stderr.isTTY ? [process.stderr] : [];
    // Text of others (a reward function's, a warning) stays above the view.
    const makeRoom = (): void => {
      if (this.#drawn.length === 0) return;
      this.#clear();
      this.#drawing ??= setTimeout(() => this.#draw(), everyMs).unref();
    };
    this.#streams = [
      watchWrites(stream, makeRoom),
      ...others.map((one) => watchWrites(one, makeRoom)),
    ];
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
      // They are of an earlier step, while the next one runs.
      if (this.#hasTrained) {
        if (Object.keys(summaryOf(metrics)).length > 0) this.#sayStep(metrics, step);
        return;
      }
    } else {
      this.#hasTrained = true;
      this.#timeLeft.finished(this.#now());
    }
    this.#spent = new Map();
    this.#finished = step;
    this.#progress = undefined;
    this.#running = undefined;
    this.#sayStep(metrics, step);
    // A line that stays, where the others are drawn again.
    const [left] = this.#timeLeft.isNew ? this.#left() : [];
    if (left !== undefined) this.say(`about ${left}`);
  }

  /** The last state is left standing, unless the last step is over. */
  close(): void {
    clearInterval(this.#ticking);
    clearTimeout(this.#drawing);
    if (this.#progress === undefined || this.#finished === this.#totalSteps) this.#clear();
    else this.#draw();
    for (const one of this.#streams) one.close();
  }

  #sayStep(metrics: StepMetrics, step: number): void {
    this.say(stepSummary(metrics, { step, totalSteps: this.#totalSteps }, this.#width));
  }

  get #width(): number {
    return (this.#stream.columns || 80) - 1;
  }

  /** Prints a line above the view. */
  say(line: string): void {
    this.#clear();
    this.#streams[0].write(`${terminalLine(line)}\n`);
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
    const lines = [this.#runLine(), this.#stepLine()].map((line) => terminalLine(line));
    for (const line of lines) this.#streams[0].write(`${line}\n`);
    this.#drawn = lines;
  }

  #runLine(): string {
    const { score, accuracy } = this.#summary;
    const total = this.#totalSteps;
    const step = this.#progress?.step ?? this.#finished;
    const inFlight = this.#progress?.inFlight;
    const width = this.#width;
    const parts = [
      `step ${step}${total === undefined ? "" : `/${total} ${progressBar(this.#finished / total, width)}`}`,
      ...this.#left(),
      ...(accuracy === undefined ? [] : [accuracy]),
      ...(score === undefined ? [] : [score]),
      ...(inFlight === undefined ? [] : [`${inFlight} rewards in flight`]),
    ];
    return fitted(parts, width);
  }

  #left(): readonly string[] {
    if (this.#totalSteps === undefined || this.#finished === this.#totalSteps) return [];
    const ms = this.#timeLeft.leftMs(this.#totalSteps - this.#finished, this.#now());
    return ms === undefined ? [] : [`${leftText(ms)} left`];
  }

  #stepLine(): string {
    const now = this.#now();
    const running = this.#running && { name: this.#running.name, ms: now - this.#running.sinceMs };
    return phaseBar(this.#spent, running, this.#width);
  }

  /** Lines that were drawn on a wider terminal have more than one row on one that is narrow now. */
  #clear(): void {
    const columns = this.#stream.columns || 80;
    const rows = sumOf(this.#drawn.map(({ length }) => Math.max(1, Math.ceil(length / columns))));
    if (rows > 0) this.#streams[0].write("\u001b[1A\u001b[2K".repeat(rows));
    this.#drawn = [];
  }
}
