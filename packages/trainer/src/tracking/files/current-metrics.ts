/**
 * The metrics that count in a file to which several processes appended. A process that resumed from
 * a checkpoint reports the later steps again, and one that began anew in the folder reports all
 * steps again: earlier lines of such a step, and of the steps after it, are dropped.
 */

import { isAddition } from "../tracking-logger.ts";
import type { MetricsLine } from "./run-lines.ts";

/**
 * Metrics by step. A lower step number means that another process began, unless the line is only an
 * addition to an earlier step, such as its validation, or that of the checkpoint from which a
 * process begins: such a line drops nothing.
 */
export class CurrentMetrics {
  readonly #lines: Map<number, MetricsLine> = new Map();
  #lastStep = -1;
  #highestStep = -1;

  add({ step, data }: MetricsLine): void {
    const isMore = isAddition(data);
    if (step !== this.#lastStep && step <= this.#highestStep) {
      if (step === 0) this.#forgetFrom(0);
      else if (!isMore) this.#forgetFrom(step === 1 && this.#lastStep !== 0 ? 0 : step);
    }
    this.#lines.set(step, { step, data: { ...this.#lines.get(step)?.data, ...data } });
    // After an addition to an earlier step, metrics of a known step are those of another process.
    this.#lastStep = isMore && step < this.#lastStep ? -1 : step;
    this.#highestStep = Math.max(this.#highestStep, step);
  }

  /** Lines in the order of their steps, each once. */
  get lines(): readonly MetricsLine[] {
    return [...this.#lines.values()].toSorted((a, b) => a.step - b.step);
  }

  #forgetFrom(first: number): void {
    for (const step of this.#lines.keys()) if (step >= first) this.#lines.delete(step);
    this.#highestStep = first - 1;
  }
}
