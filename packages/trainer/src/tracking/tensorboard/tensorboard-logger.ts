/**
 * A run as event files for TensorBoard: scalars by their names, validation generations as texts
 * (`val/generations`).
 *
 * Each process appends to a file of its own; records go to the operating system as they come. A
 * resumed run tells readers to forget the earlier records of the steps that it repeats.
 */

import { createHash } from "node:crypto";
import { open, readdir } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join, resolve } from "node:path";
import { makeFolder } from "../../values/make-folder.ts";
import { written } from "../files/write-whole.ts";
import { isAddition } from "../tracking-logger.ts";
import type { Generation, StepMetrics, TrackedRun, TrackingLogger } from "../tracking-logger.ts";
import { recordOf, restartEvent, scalarsEvent, textEvent, versionEvent } from "./events.ts";

/** Folder of a `TensorboardLogger`. */
export interface TensorboardLoggerOptions {
  /**
   * Default: {projectName}/{experimentName}/{run} in the environment's TENSORBOARD_DIR, else
   * `tensorboard` in the folder of the run. {run} is the name of that folder, and a hash of its
   * path. verl writes into TENSORBOARD_DIR itself, where a second run would be the first one to a
   * reader, and would take its steps away.
   */
  readonly directory?: string;
}

/** Writes metrics and validation generations as a file of TensorBoard events. */
export class TensorboardLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "tensorboard";
  readonly #directory: string | undefined;
  #file: FileHandle | undefined;
  /** Absolute, for errors. */
  #path = "";
  /** True for a run with earlier files, until its first repeated step is known. */
  #isResumed = false;

  constructor({ directory }: TensorboardLoggerOptions = {}) {
    this.#directory = directory;
  }

  /** Creates the file of events, with its folder. */
  async open(run: TrackedRun): Promise<void> {
    const directory = this.#directory ?? directoryOf(run);
    await makeFolder(directory);
    const earlier = (await readdir(directory)).filter((name) => name.includes("tfevents"));
    // Readers take files in the order of their names: the seconds first, then how many there were.
    // The clock may have gone back since the last one.
    const times = [Math.floor(Date.now() / 1000), ...earlier.map(secondsIn)];
    const seconds = String(Math.max(...times)).padStart(10, "0");
    const number = String(earlier.length).padStart(4, "0");
    const name = `events.out.tfevents.${seconds}.${number}.${hostname()}.${process.pid}`;
    this.#path = resolve(directory, name);
    this.#file = await open(this.#path, "ax");
    this.#isResumed = earlier.length > 0;
    await this.#write(versionEvent(Date.now()));
  }

  /** Writes the metrics of a step. */
  async log(metrics: StepMetrics, step: number): Promise<void> {
    // A validation of the step that was resumed from takes nothing from that step.
    if (this.#isResumed && !isAddition(metrics)) {
      this.#isResumed = false;
      await this.#write(restartEvent(Date.now(), step));
    }
    await this.#write(scalarsEvent(Date.now(), step, metrics));
  }

  /** Writes a table of the generations; nothing without any. */
  async generations(step: number, generations: readonly Generation[]): Promise<void> {
    if (generations.length === 0) return;
    await this.#write(textEvent(Date.now(), step, "val/generations", markdownOf(generations)));
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #write(event: Buffer): Promise<void> {
    await written(this.#path, async () => await this.#file?.appendFile(recordOf(event)));
  }
}

/** Returns the time in the name of a file of events; 0 where another program named it otherwise. */
function secondsIn(name: string): number {
  return Number(/tfevents\.(\d{1,12})\./.exec(name)?.[1] ?? 0);
}

function directoryOf({ projectName, experimentName, directory }: TrackedRun): string {
  const shared = process.env["TENSORBOARD_DIR"];
  if (shared === undefined || shared === "") return join(directory, "tensorboard");
  const whole = resolve(directory);
  const hash = createHash("sha256").update(whole).digest("hex").slice(0, 6);
  return join(shared, projectName, experimentName, `${basename(whole)}-${hash}`);
}

function markdownOf(generations: readonly Generation[]): string {
  return generations
    .map(
      ({ input, output, score }, index) =>
        `### ${index + 1}: score ${score}\n\n${indented(input)}\n\n${indented(output)}`,
    )
    .join("\n\n---\n\n");
}

/** Indents the text as code, so that a model's text is shown as it is. */
function indented(text: string): string {
  return text.replaceAll(/^/gm, "    ");
}
