/**
 * The metrics of one training run, by name, out of `metrics.jsonl` of its folder. A run that goes
 * on is read on.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { readJsonl } from "@rayling/data-proto";

/** Values of one metric at rising steps. */
export interface Curve {
  readonly steps: number[];
  readonly values: number[];
}

export const metricsFile = "metrics.jsonl";

export class RunMetrics {
  readonly curves: Map<string, Curve> = new Map();
  /** The last step; -1 before the first. */
  lastStep = -1;
  readonly #path: string;
  #size = 0;
  #end = 0;
  #reading: Promise<void> | undefined;

  constructor(folder: string) {
    this.#path = join(folder, metricsFile);
  }

  /** Reads what has come since the last time. Rejects with JsonlError. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    // A run has no file before its first step.
    const { size } = await stat(this.#path).catch(() => ({ size: 0 }));
    if (size === this.#size) return;
    if (size < this.#size) this.#forget();
    // The last line may be on its way.
    const options = { places: true, from: this.#end, onMalformed: () => undefined };
    for await (const { value, place } of readJsonl(this.#path, options)) {
      this.#add(value);
      this.#end = place?.end ?? this.#end;
    }
    this.#size = size;
  }

  #forget(): void {
    this.curves.clear();
    this.lastStep = -1;
    this.#end = 0;
  }

  #add(line: unknown): void {
    if (!isMetrics(line)) return;
    const { step, data } = line;
    for (const [name, value] of Object.entries(data)) {
      if (typeof value === "number") this.#addValue(name, step, value);
    }
    this.lastStep = Math.max(this.lastStep, step);
  }

  /** A run that went on from a checkpoint has some steps twice: the last ones count. */
  #addValue(name: string, step: number, value: number): void {
    const known = this.curves.get(name);
    const { steps, values } = known ?? { steps: [], values: [] };
    if (known === undefined) this.curves.set(name, { steps, values });
    while (steps.length > 0 && (steps.at(-1) ?? 0) >= step) {
      steps.pop();
      values.pop();
    }
    steps.push(step);
    values.push(value);
  }
}

interface MetricsLine {
  readonly step: number;
  readonly data: Readonly<Record<string, unknown>>;
}

function isMetrics(line: unknown): line is MetricsLine {
  return (
    typeof line === "object" &&
    line !== null &&
    "step" in line &&
    typeof line.step === "number" &&
    "data" in line &&
    typeof line.data === "object" &&
    line.data !== null
  );
}
