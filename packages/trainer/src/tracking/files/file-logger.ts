/**
 * A run as files that are only appended to: `metrics.jsonl`, a line for each step as verl's file
 * logger writes it; `timeline.jsonl`, the times of phases and samples, and warnings; and
 * `generations.jsonl`, the validation samples chosen to be looked at. A run that was killed leaves
 * all but the lines on their way.
 *
 * A number that is not finite is written as its text ("NaN", "-Infinity"), since JSON cannot write
 * it and null stands for unknown. The score of a generation without one is null.
 */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { addDashboardPanel, isDashboardServed } from "@rayling/core/dashboard";
import { openJsonlWriter } from "@rayling/data-proto";
import type { JsonlWriter } from "@rayling/data-proto";
import type {
  Generation,
  PhaseRecord,
  SampleRecord,
  StepMetrics,
  TrackedRun,
  TrackingLogger,
} from "../tracking-logger.ts";
import { runStart } from "./run-start.ts";
import { rewardsLineOf, sampleLinesOf } from "./sample-lines.ts";
import type { GenerationLine, StartLine, TimelineLine, WrittenMetricsLine } from "./run-lines.ts";
import { runFiles, writtenNumber } from "./run-lines.ts";

export class FileLogger implements TrackingLogger {
  readonly name = "file";
  readonly #writers: JsonlWriter[] = [];
  #metrics: JsonlWriter | undefined;
  #timeline: JsonlWriter | undefined;
  #generations: JsonlWriter | undefined;
  /** Until it is written. */
  #start: StartLine | undefined;

  async open(run: TrackedRun): Promise<void> {
    const { directory } = run;
    this.#metrics = await this.#opened(join(directory, runFiles.metrics));
    this.#timeline = await this.#opened(join(directory, runFiles.timeline));
    this.#generations = await this.#opened(join(directory, runFiles.generations));
    const state = async (): Promise<unknown> => undefined;
    if (isDashboardServed()) {
      addDashboardPanel({ kind: "trainingRun", runFolder: directory, state });
    }
    // A resume that is refused leaves the files of its run as they are.
    const { size } = await stat(join(directory, runFiles.timeline));
    this.#start = await runStart(run);
    if (size === 0) await this.#begun();
  }

  async log(metrics: StepMetrics, step: number): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(metrics).map(([name, value]) => [name, writtenNumber(value)]),
    );
    await this.#begun();
    await this.#metrics?.write({ step, data } satisfies WrittenMetricsLine);
  }

  /** Begins a run that resumes; the current phase itself is not written. */
  async progress(): Promise<void> {
    await this.#begun();
  }

  async phase(phase: PhaseRecord): Promise<void> {
    await this.#begun();
    await this.#timeline?.write({ type: "phase", ...phase } satisfies TimelineLine);
  }

  async samples(step: number, samples: readonly SampleRecord[]): Promise<void> {
    if (samples.length === 0) return;
    await this.#begun();
    await this.#timeline?.write(rewardsLineOf(step, samples));
    for (const line of sampleLinesOf(step, samples)) await this.#timeline?.write(line);
  }

  async warning(step: number, message: string): Promise<void> {
    await this.#begun();
    await this.#timeline?.write({ type: "warning", step, message } satisfies TimelineLine);
  }

  async generations(step: number, generations: readonly Generation[]): Promise<void> {
    await this.#begun();
    for (const [row, { input, output, score }] of generations.entries()) {
      const line: GenerationLine = { step, row, input, output, score: finite(score) };
      await this.#generations?.write(line);
    }
  }

  /** Closes all files, even if one of them fails. */
  async close(): Promise<void> {
    const closed = await Promise.allSettled(this.#writers.map((writer) => writer.close()));
    for (const one of closed) {
      if (one.status === "rejected") throw one.reason;
    }
  }

  /** Writes the line of the start, once, before all others of this process. */
  async #begun(): Promise<void> {
    const start = this.#start;
    if (start === undefined) return;
    this.#start = undefined;
    await this.#timeline?.write(start);
  }

  async #opened(path: string): Promise<JsonlWriter> {
    const writer = await openJsonlWriter(path, { append: true });
    this.#writers.push(writer);
    return writer;
  }
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
