/**
 * A run as an offline run of wandb, which has no client for JavaScript: a folder that wandb's own
 * client uploads later (`wandb sync`). Nothing is sent, and no account is needed.
 *
 * wandb wants one row for each step, in order. A row waits until the next step but one, because the
 * validation and the checkpoint of a step report later; a process that is killed loses the rows
 * that wait. A resumed run is a run of its own with the same name, as in verl.
 */

import { createHash } from "node:crypto";
import { open, writeFile } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { customAlphabet } from "nanoid";
import { makeFolder } from "../../values/make-folder.ts";
import { written } from "../files/write-whole.ts";
import { isAddition } from "../tracking-logger.ts";
import type {
  Generation,
  RunEnd,
  StepMetrics,
  TrackedRun,
  TrackingLogger,
} from "../tracking-logger.ts";
import { RecordLog } from "./record-log.ts";
import {
  exitRecord,
  fileRecord,
  headerRecord,
  historyRecord,
  numberJson,
  runRecord,
  summaryRecord,
} from "./wandb-records.ts";

/** Folder of a `WandbLogger`. */
export interface WandbLoggerOptions {
  /**
   * The folder `wandb` with the runs is made there. Default: the environment's WANDB_DIR, else the
   * folder of the run.
   */
  readonly directory?: string;
}

const newId: () => string = customAlphabet("abcdefghijklmnopqrstuvwxyz0123456789", 8);
const tableName = "val/generations";

/** Writes metrics, settings and validation generations as an offline run of wandb. */
export class WandbLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "wandb";
  readonly #options: WandbLoggerOptions;
  readonly #log = new RecordLog();
  /** Rows that wait for more metrics of their steps. */
  readonly #rows = new Map<number, Map<string, string>>();
  #file: FileHandle | undefined;
  /** Absolute: a program may change its directory while it trains. */
  #folder = "";
  #path = "";
  #records = 0;
  #startMs = 0;

  constructor(options: WandbLoggerOptions = {}) {
    this.#options = options;
  }

  /** Creates the folder of the offline run, with the settings. */
  async open({ directory, projectName, experimentName, config = {} }: TrackedRun): Promise<void> {
    const { WANDB_DIR: shared, WANDB_ENTITY: entity } = process.env;
    const base = this.#options.directory ?? (shared || directory);
    const id = newId();
    this.#startMs = Date.now();
    this.#folder = resolve(base, "wandb", `offline-run-${stampOf(this.#startMs)}-${id}`);
    await makeFolder(join(this.#folder, "files"));
    await makeFolder(join(this.#folder, "logs"));
    this.#path = join(this.#folder, `run-${id}.wandb`);
    this.#file = await open(this.#path, "ax");
    await this.#append(this.#log.begin());
    await this.#write((number) => headerRecord(number, "rayling"));
    const run = { id, entity: entity || undefined, project: projectName, name: experimentName };
    const values = Object.entries(config).map(([key, value]): [string, string] => [
      key,
      JSON.stringify(value) ?? "null",
    ]);
    const times = { host: hostname(), startMs: this.#startMs, config: new Map(values) };
    await this.#write((number) => runRecord(number, { ...run, ...times }));
  }

  /** Adds the metrics to the row of their step. */
  async log(metrics: StepMetrics, step: number): Promise<void> {
    const row = this.#row(step);
    for (const [name, value] of Object.entries(metrics)) row.set(name, numberJson(value));
    if (!isAddition(metrics)) await this.#writeRows(step - 1);
  }

  /** Writes the generations as a table, which the row of their step names. */
  async generations(step: number, generations: readonly Generation[]): Promise<void> {
    const table = JSON.stringify({
      columns: ["step", "input", "output", "score"],
      data: generations.map(({ input, output, score }) => [
        step,
        input,
        output,
        Number.isFinite(score) ? score : null,
      ]),
    });
    const sha256 = createHash("sha256").update(table).digest("hex");
    const path = `media/table/${tableName}_${step}_${sha256.slice(0, 20)}.table.json`;
    const target = join(this.#folder, "files", path);
    await written(target, async () => {
      await makeFolder(dirname(target));
      await writeFile(target, table);
    });
    await this.#write((number) => fileRecord(number, path));
    const named = {
      _type: "table-file",
      log_mode: "IMMUTABLE",
      path,
      sha256,
      size: Buffer.byteLength(table),
      ncols: 4,
      nrows: generations.length,
    };
    this.#row(step).set(tableName, JSON.stringify(named));
  }

  /** Writes the rows that wait, and whether the run failed. */
  async close({ error }: RunEnd): Promise<void> {
    if (this.#file === undefined) return;
    try {
      await this.#writeRows(Infinity);
      const seconds = Math.round((Date.now() - this.#startMs) / 1000);
      await this.#write((number) => exitRecord(number, error === undefined ? 0 : 1, seconds));
    } finally {
      await this.#file.close();
    }
  }

  #row(step: number): Map<string, string> {
    const found = this.#rows.get(step);
    if (found !== undefined) return found;
    const row = new Map<string, string>();
    this.#rows.set(step, row);
    return row;
  }

  /** Writes the rows of the steps before that one. */
  async #writeRows(before: number): Promise<void> {
    const steps = [...this.#rows.keys()].filter((step) => step < before);
    for (const step of steps.toSorted((one, other) => one - other)) {
      const row = this.#row(step);
      this.#rows.delete(step);
      const now = Date.now();
      row.set("_step", numberJson(step));
      row.set("_timestamp", numberJson(now / 1000));
      row.set("_runtime", numberJson((now - this.#startMs) / 1000));
      await this.#write((number) => historyRecord(number, step, row));
      await this.#write((number) => summaryRecord(number, row));
    }
  }

  async #write(record: (number: number) => Uint8Array): Promise<void> {
    this.#records += 1;
    await this.#append(this.#log.framed(record(this.#records)));
  }

  async #append(bytes: Uint8Array): Promise<void> {
    await written(this.#path, async () => await this.#file?.appendFile(bytes));
  }
}

/** The time as wandb names runs: 20260131_093000. */
function stampOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "_");
}
