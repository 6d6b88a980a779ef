/**
 * Reads the files of a run, and reads on while it goes on: of steps that were reported again, the
 * lines that count.
 */

import { join } from "node:path";
import { CurrentMetrics } from "./current-metrics.ts";
import { CurrentTimeline } from "./current-timeline.ts";
import { GrowingFile } from "./growing-file.ts";
import { readMetricsLine, runFiles } from "./run-lines.ts";
import type { GenerationLine, TimelineLine, WrittenMetricsLine } from "./run-lines.ts";

export interface RunReaderOptions {
  /** Steps whose samples are kept: the newest. Default: all. */
  readonly mostSampled?: number;
  /** Validations whose answers are kept: the newest. */
  readonly mostValidations: number;
}

export class RunReader {
  readonly directory: string;
  readonly #options: RunReaderOptions;
  readonly #files: Readonly<Record<"metrics" | "timeline" | "generations", GrowingFile>>;
  #metrics: CurrentMetrics = new CurrentMetrics();
  #timeline: CurrentTimeline;
  readonly #generations: Map<number, GenerationLine[]> = new Map();
  #lastValidated = -1;
  /** Whether something was read that nobody has been told of: a look at one file may fail. */
  #hasNews = false;
  #reading: Promise<boolean> | undefined;

  constructor(directory: string, options: RunReaderOptions) {
    this.directory = directory;
    this.#options = options;
    this.#timeline = new CurrentTimeline(options.mostSampled);
    const fileOf = (name: string): GrowingFile => new GrowingFile(join(directory, name));
    this.#files = {
      metrics: fileOf(runFiles.metrics),
      timeline: fileOf(runFiles.timeline),
      generations: fileOf(runFiles.generations),
    };
  }

  get metrics(): CurrentMetrics {
    return this.#metrics;
  }

  get timeline(): CurrentTimeline {
    return this.#timeline;
  }

  /** Answers by the step after which they were validated, the first step first. */
  get generations(): ReadonlyMap<number, readonly GenerationLine[]> {
    return this.#generations;
  }

  /**
   * Reads what has come since the last time. Rejects as `GrowingFile.read`.
   *
   * @returns whether there was anything
   */
  refresh(): Promise<boolean> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<boolean> {
    const { metrics, timeline, generations } = this.#files;
    const read = async (reading: Promise<boolean>): Promise<void> => {
      if (await reading) this.#hasNews = true;
    };
    await read(
      metrics.read(
        (line) => isMetrics(line) && this.#metrics.add(readMetricsLine(line)),
        () => (this.#metrics = new CurrentMetrics()),
      ),
    );
    await read(
      timeline.read(
        (line) => isOfTimeline(line) && this.#timeline.add(line),
        () => (this.#timeline = new CurrentTimeline(this.#options.mostSampled)),
      ),
    );
    await read(
      generations.read(
        (line) => isGeneration(line) && this.#addGeneration(line),
        () => this.#generations.clear(),
      ),
    );
    const hasNews = this.#hasNews;
    this.#hasNews = false;
    return hasNews;
  }

  /**
   * A validation that is reported again takes the place of the earlier one, and of later ones. A
   * process that resumes may report the last one again: its first row begins it anew.
   */
  #addGeneration(line: GenerationLine): void {
    if (line.step !== this.#lastValidated || line.row === 0) {
      for (const step of this.#generations.keys()) {
        if (step >= line.step) this.#generations.delete(step);
      }
      this.#generations.set(line.step, []);
      const left = this.#generations.size - this.#options.mostValidations;
      for (const step of [...this.#generations.keys()].slice(0, Math.max(0, left))) {
        this.#generations.delete(step);
      }
    }
    this.#lastValidated = line.step;
    this.#generations.get(line.step)?.push(line);
  }
}

function isMetrics(line: object): line is WrittenMetricsLine {
  return "data" in line && typeof line.data === "object" && line.data !== null && hasStep(line);
}

function isOfTimeline(line: object): line is TimelineLine {
  return "type" in line && (line.type === "start" || hasStep(line));
}

function isGeneration(line: object): line is GenerationLine {
  return "input" in line && "output" in line && hasStep(line);
}

function hasStep(line: object): boolean {
  return "step" in line && typeof line.step === "number";
}
