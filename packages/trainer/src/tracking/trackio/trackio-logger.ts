/**
 * A run for trackio, which has no client for JavaScript: fragments of JSON Lines in its inbox, from
 * which its server takes them (`trackio show`, from trackio 0.28 on). Nothing is sent, and no
 * account is needed.
 *
 * A fragment is complete when it has its name, and may be gone a moment later with its folder. A
 * resumed run is a run of its own with the same name, as in verl.
 */

import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { makeFolder } from "../../values/make-folder.ts";
import { replaceFile } from "../../values/replace-file.ts";
import { written } from "../files/write-whole.ts";
import type { Generation, StepMetrics, TrackedRun, TrackingLogger } from "../tracking-logger.ts";

/** Folder of a `TrackioLogger`. */
export interface TrackioLoggerOptions {
  /**
   * The folder of trackio. Default: the environment's TRACKIO_DIR, else `trackio` in the folder of
   * Hugging Face (HF_HOME), as its client has it.
   */
  readonly directory?: string;
}

/** The form of the fragments. */
const version = 1;

/** Writes metrics, settings and validation generations into the inbox of trackio. */
export class TrackioLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "trackio";
  readonly #directory: string | undefined;
  readonly #runId = randomUUID().replaceAll("-", "");
  #run: Pick<TrackedRun, "projectName" | "experimentName" | "config"> | undefined;
  /** Absolute: a program may change its directory while it trains. */
  #folder = "";
  #fragments = 0;

  constructor({ directory }: TrackioLoggerOptions = {}) {
    this.#directory = directory;
  }

  /** Creates the folder of the fragments. */
  async open(run: TrackedRun): Promise<void> {
    this.#run = run;
    const folder = this.#directory ?? usualFolder();
    this.#folder = resolve(folder, "inbox", this.#runId.slice(0, 16));
    await makeFolder(this.#folder);
  }

  /** Writes the metrics of a step. */
  async log(metrics: StepMetrics, step: number): Promise<void> {
    await this.#write(step, Object.fromEntries(Object.entries(metrics).map(readable)));
  }

  /** Writes the generations as traces, as verl does; nothing without any. */
  async generations(step: number, generations: readonly Generation[]): Promise<void> {
    if (generations.length === 0) return;
    const traces = generations.map(({ input, output, score }, index) => ({
      _type: "trackio.trace",
      messages: [
        { role: "user", content: input },
        { role: "assistant", content: output },
      ],
      metadata: {
        source: "validation_generations",
        sample_index: index,
        score: Number.isFinite(score) ? score : null,
      },
      spans: [],
    }));
    await this.#write(step, { "val/generations": traces });
  }

  async #write(step: number, metrics: Readonly<Record<string, unknown>>): Promise<void> {
    const record = {
      v: version,
      kind: "metric",
      project: this.#run?.projectName,
      run: this.#run?.experimentName,
      run_id: this.#runId,
      metrics,
      step,
      timestamp: new Date().toISOString().replace("Z", "+00:00"),
      config: this.#fragments === 0 ? (this.#run?.config ?? null) : null,
      log_id: randomUUID().replaceAll("-", ""),
    };
    const path = join(this.#folder, `${String(this.#fragments).padStart(8, "0")}.jsonl`);
    await this.#put(path, `${JSON.stringify(record, wellFormed)}\n`);
    this.#fragments += 1;
  }

  /** The folder goes when trackio has taken what was in it. */
  async #put(path: string, text: string): Promise<void> {
    const put = async (): Promise<void> => {
      await makeFolder(this.#folder);
      await replaceFile(path, (unfinished) => writeFile(unfinished, text));
    };
    await written(path, () =>
      put().catch((error: unknown) => {
        const hasGone = error instanceof Error && "code" in error && error.code === "ENOENT";
        if (!hasGone) throw error;
        return put();
      }),
    );
  }
}

function usualFolder(): string {
  const { TRACKIO_DIR: own, HF_HOME: hub, XDG_CACHE_HOME: cache } = process.env;
  if (own) return own;
  return join(hub || join(cache || join(homedir(), ".cache"), "huggingface"), "trackio");
}

/**
 * A text that was cut within a character has half of it (\ud83d): trackio drops the whole fragment
 * that has one.
 */
function wellFormed(_name: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}

/** Numbers that JSON has not are texts, as trackio writes them. */
function readable([name, value]: [string, number]): [string, number | string] {
  return [name.toWellFormed(), Number.isFinite(value) ? value : String(value)];
}
