/**
 * The prompts to train on, or to validate with: verl's RLHFDataset. Rows come from files or from memory, are checked, and are in memory from then on, in the order of the files.
 * What is left out (maxSamples, overlong prompts) does not change the identity of what stays.
 */

import { createHash } from "node:crypto";
import { TrainerInputError } from "../errors.ts";
import { truncated, withoutOverlong } from "./prompt-lengths.ts";
import type { LengthLimit, PromptLengths, Truncation } from "./prompt-lengths.ts";
import { readPromptRow } from "./prompt-row.ts";
import type { ColumnNames, PromptRow } from "./prompt-row.ts";
import { readRowFiles } from "./row-files.ts";
import type { PlacedRow } from "./row-files.ts";
import { seededSubset } from "./seeded-order.ts";

export interface PromptDatasetOptions extends ColumnNames, PromptLengthOptions {
  /** verl `data.train_max_samples`: so many of the rows. Default -1: all. */
  readonly maxSamples?: number;
  /** Whether those are chosen by the seed (verl: data.shuffle), or are the first. Default true. */
  readonly shuffle?: boolean;
  /** Default 1. */
  readonly seed?: number;
}

export interface PromptLengthOptions {
  /** verl `data.max_prompt_length`, in tokens. Default: as long as they are. */
  readonly maxPromptLength?: number;
  /** Tokens of each prompt, as `Policy.promptLengths` tells them; needed where there is a maxPromptLength. */
  readonly promptLengths?: PromptLengths;
  /** verl `data.filter_overlong_prompts`: longer prompts are left out. Default false. */
  readonly filterOverlongPrompts?: boolean;
  /** Else: what becomes of them. Default "error". */
  readonly truncation?: Truncation;
}

export class PromptDataset {
  readonly rows: readonly PromptRow[];
  /** How many were left out because they were too long. */
  readonly overlong: number;
  /** In tokens; undefined where they are as long as they are. */
  readonly maxPromptLength: number | undefined;
  /** Of all rows as they are: another one means other data. */
  readonly fingerprint: string;

  private constructor(rows: readonly PromptRow[], overlong: number, maxPromptLength?: number) {
    this.rows = rows;
    this.overlong = overlong;
    this.maxPromptLength = maxPromptLength;
    this.fingerprint = fingerprintOf(rows);
  }

  get length(): number {
    return this.rows.length;
  }

  /**
   * verl's rows from Parquet (.parquet) and JSON Lines or a JSON array (.jsonl, .json, also with
   * .gz), one file or several; a path may begin with ~/.
   *
   * Rejects with DatasetError, which names file, line or row, and reason; with TrainerInputError for an option.
   */
  static async load(
    files: string | readonly string[],
    options: PromptDatasetOptions = {},
  ): Promise<PromptDataset> {
    return await PromptDataset.#of(
      readRowFiles(typeof files === "string" ? [files] : files),
      options,
    );
  }

  /** The same rows from memory; a bad one is named by its number. */
  static async fromRows(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options: PromptDatasetOptions = {},
  ): Promise<PromptDataset> {
    return await PromptDataset.#of(placed(rows), options);
  }

  static async #of(
    source: AsyncIterable<PlacedRow>,
    options: PromptDatasetOptions,
  ): Promise<PromptDataset> {
    const { maxSamples = -1 } = options;
    if (!Number.isSafeInteger(maxSamples) || maxSamples === 0 || maxSamples < -1) {
      throw new TrainerInputError("maxSamples", `must be -1 or at least 1, is ${maxSamples}`);
    }
    const read: PromptRow[] = [];
    for await (const { value, place } of source) {
      read.push(readPromptRow(value, read.length, place, options));
    }
    return await new PromptDataset(chosenRows(read, maxSamples, options), 0).limited(options);
  }

  /** The same with prompts that are not too long. Rejects with DatasetError, and with TrainerInputError for an option. */
  async limited(options: PromptLengthOptions): Promise<PromptDataset> {
    const limit = limitOf(options);
    if (limit === undefined) return this;
    const { rows } = this;
    const { maxPromptLength } = limit;
    if (options.filterOverlongPrompts !== true) {
      const whole = await truncated(rows, options.truncation ?? "error", limit);
      return new PromptDataset(whole, 0, maxPromptLength);
    }
    const fitting = await withoutOverlong(rows, limit);
    return new PromptDataset(fitting, rows.length - fitting.length, maxPromptLength);
  }
}

async function* placed(
  rows: Iterable<unknown> | AsyncIterable<unknown>,
): AsyncGenerator<PlacedRow, void, undefined> {
  let row = 0;
  for await (const value of rows) yield { value, place: { row: row++ } };
}

function limitOf(options: PromptLengthOptions): LengthLimit | undefined {
  const { maxPromptLength, promptLengths, filterOverlongPrompts = false } = options;
  if (maxPromptLength === undefined) {
    if (!filterOverlongPrompts) return undefined;
    throw new TrainerInputError("maxPromptLength", "is needed to filter overlong prompts");
  }
  if (promptLengths === undefined) {
    throw new TrainerInputError("promptLengths", "is needed where there is a maxPromptLength");
  }
  return { maxPromptLength, promptLengths };
}

function chosenRows(
  rows: readonly PromptRow[],
  maxSamples: number,
  { shuffle = true, seed = 1 }: PromptDatasetOptions,
): readonly PromptRow[] {
  if (maxSamples === -1 || maxSamples >= rows.length) return rows;
  if (!shuffle) return rows.slice(0, maxSamples);
  return [...seededSubset(rows.length, maxSamples, seed)].map((row) => rows[row] as PromptRow);
}

function fingerprintOf(rows: readonly PromptRow[]): string {
  const hash = createHash("sha256");
  for (const { index, rawPrompt, columns } of rows) {
    hash.update(JSON.stringify([index, rawPrompt, columns], bigintAsText));
    hash.update("\n");
  }
  return hash.digest("hex");
}

/** Parquet has them. */
function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}
