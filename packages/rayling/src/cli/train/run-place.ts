/** Where the files of a training are, for a run that is stopped before it says so itself. */
import { join, resolve } from "node:path";
import type { TrackedRun, TrackingLogger } from "@rayling/trainer";
import { CliError } from "../cli-error.ts";
import { plain } from "../output/output.ts";
import type { PhaseLine } from "../output/phase-line.ts";
import { hasCheckpoint, hasLine } from "./end/left-files.ts";

export class RunPlace implements TrackingLogger {
  readonly name = "place";
  readonly #line: PhaseLine;
  readonly #hasView: boolean;
  readonly #first: string;
  #directory: string | undefined;
  #totalSteps: number | undefined;
  /** Whether the last validation is over. */
  #isOver = false;

  /**
   * @param line says what goes on @param hasView whether another line does from the first step on
   * @param isValidated whether a validation precedes the first step
   */
  constructor(line: PhaseLine, hasView: boolean, isValidated: boolean) {
    this.#line = line;
    this.#hasView = hasView;
    this.#first = isValidated ? "the first validation" : "the first step";
  }

  open({ directory, totalSteps }: TrackedRun): void {
    this.#directory = directory;
    this.#totalSteps = totalSteps;
    this.#goesOn(this.#first);
  }

  log(metrics: Readonly<Record<string, number>>, step: number): void {
    if (step !== this.#totalSteps) return this.#goesOn(`step ${step + 1}`);
    // Times of the last validation come behind its figures.
    this.#isOver ||= Object.keys(metrics).some((name) => name.startsWith("val-"));
    this.#goesOn(this.#isOver ? "saving the run" : "the last validation");
  }

  close(): void {
    this.#line.begin("writing the files");
  }

  #goesOn(doing: string): void {
    if (this.#hasView) this.#line.pause(doing);
    else this.#line.touch(doing);
  }

  /**
   * Returns the error of a stopped run, which names its files and checkpoints, if there are any.
   *
   * @param reason with which the run was stopped @param checkpoints folder of the checkpoints
   */
  stopped(reason: unknown, checkpoints: string): unknown {
    if (!(reason instanceof CliError)) return reason;
    const directory = this.#directory;
    const hasFiles = directory !== undefined && hasLine(join(directory, "metrics.jsonl"));
    const parts = [
      reason.message,
      ...(hasFiles ? [`the steps so far are in ${plain(resolve(directory))}`] : []),
      ...(hasCheckpoint(checkpoints) ? [`checkpoints in ${plain(resolve(checkpoints))}`] : []),
    ];
    return new CliError(reason.exitCode, parts.join("; "));
  }
}
