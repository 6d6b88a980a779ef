/** Where the files of a training are, for a run that is stopped before it says so itself. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { TrackedRun, TrackingLogger } from "@rayling/trainer";
import { CliError } from "../cli-error.ts";
import { plain } from "../output/output.ts";

export class RunPlace implements TrackingLogger {
  readonly name = "place";
  #directory: string | undefined;

  open({ directory }: TrackedRun): void {
    this.#directory = directory;
  }

  /**
   * Returns the error of a stopped run, which names its files and checkpoints.
   *
   * @param reason with which the run was stopped @param checkpoints folder of the checkpoints
   */
  stopped(reason: unknown, checkpoints: string): unknown {
    if (!(reason instanceof CliError)) return reason;
    const directory = this.#directory;
    const hasFiles = directory !== undefined && existsSync(join(directory, "metrics.jsonl"));
    const parts = [
      reason.message,
      ...(hasFiles ? [`the steps so far are in ${plain(resolve(directory))}`] : []),
      ...(existsSync(checkpoints) ? [`checkpoints in ${plain(resolve(checkpoints))}`] : []),
    ];
    return new CliError(reason.exitCode, parts.join("; "));
  }
}
