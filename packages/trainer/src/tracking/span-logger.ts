/**
 * Steps of a training and their phases as spans, where the user provides OpenTelemetry. A step's
 * spans are made two steps later, by the times that it reported: its validation and its checkpoint
 * come late. Spans of calls are no children of them.
 */

import type { currentTracing } from "@rayling/core";
import type { PhaseRecord, StepMetrics, TrackedRun, TrackingLogger } from "./tracking-logger.ts";

type Tracing = NonNullable<ReturnType<typeof currentTracing>>;

export class SpanLogger implements TrackingLogger {
  readonly name = "spans";
  readonly #tracing: Tracing;
  /** Phases of steps that have not ended. */
  readonly #phases = new Map<number, PhaseRecord[]>();
  readonly #scores = new Map<number, number>();
  #run: TrackedRun | undefined;

  constructor(tracing: Tracing) {
    this.#tracing = tracing;
  }

  open(run: TrackedRun): void {
    this.#run = run;
  }

  log(metrics: StepMetrics, step: number): void {
    const score = metrics["critic/score/mean"];
    if (score === undefined) return;
    this.#scores.set(step, score);
    for (const earlier of this.#phases.keys()) if (earlier < step - 1) this.#end(earlier);
  }

  phase(phase: PhaseRecord): void {
    const phases = this.#phases.get(phase.step) ?? [];
    this.#phases.set(phase.step, [...phases, phase]);
  }

  close(): void {
    for (const step of this.#phases.keys()) this.#end(step);
  }

  #end(step: number): void {
    const { api, tracer } = this.#tracing;
    const phases = this.#phases.get(step) ?? [];
    this.#phases.delete(step);
    if (phases.length === 0) return;
    const startTime = Math.min(...phases.map(({ startMs }) => startMs));
    const score = this.#scores.get(step);
    const attributes = {
      "rayling.training.step": step,
      "rayling.training.project": this.#run?.projectName ?? "",
      "rayling.training.experiment": this.#run?.experimentName ?? "",
      ...(score === undefined ? {} : { "rayling.training.score": score }),
    };
    this.#scores.delete(step);
    const parent = api.context.active();
    const span = tracer.startSpan("training step", { startTime, attributes }, parent);
    const within = api.trace.setSpan(parent, span);
    for (const { name, startMs, endMs } of phases) {
      tracer.startSpan(name, { startTime: startMs }, within).end(endMs);
    }
    span.end(Math.max(...phases.map(({ endMs }) => endMs)));
  }
}
