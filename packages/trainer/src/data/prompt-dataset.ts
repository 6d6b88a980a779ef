/**
 * The prompts to train on or to validate with: verl's RLHFDataset. Rows come from files or from
 * memory, are checked, and stay in memory in the order of the files. Rows that are left out
 * (maxSamples, overlong prompts) do not change the identity of the others.
 */

import { createHash } from "node:crypto";
import { valueAt } from "@rayling/reward-loop/rows";
import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../errors.ts";
import { checkOptionNames } from "./option-names.ts";
import type { OptionNames } from "./option-names.ts";
import { truncated, withoutOverlong } from "./prompt-lengths.ts";
import type { LengthLimit, PromptLengths, Truncation } from "./prompt-lengths.ts";
import { readPromptRow } from "./prompt-row.ts";
import type { ColumnNames, PromptRow, RowShape } from "./prompt-row.ts";
import { readRowFiles } from "./row-files.ts";
import type { PlacedRow, RowFilesOptions } from "./row-files.ts";
import { seededSubset } from "./seeded-order.ts";

/** Files of a data set, and which rows of them are used. */
export interface PromptDatasetOptions extends ColumnNames, RowFilesOptions, PromptLengthOptions {
  /** verl `data.train_max_samples`: the most rows. Default -1: all. */
  readonly maxSamples?: number;
  /**
   * Whether the seed chooses these rows (verl: data.shuffle), or the first ones are taken. Default
   * true.
   */
  readonly shuffle?: boolean;
  /** Default 1. */
  readonly seed?: number;
}

/** Limit of the prompts' lengths. */
export interface PromptLengthOptions {
  /** verl `data.max_prompt_length`, in tokens. Default: no limit. */
  readonly maxPromptLength?: number;
  /**
   * Returns the tokens of each prompt, as `Policy.promptLengths`; needed with a maxPromptLength.
   */
  readonly promptLengths?: PromptLengths;
  /** verl `data.filter_overlong_prompts`: longer prompts are left out. Default false. */
  readonly filterOverlongPrompts?: boolean;
  /** How longer prompts that are not left out are cut. Default "error". */
  readonly truncation?: Truncation;
}

const lengthNames: OptionNames<PromptLengthOptions> = {
  maxPromptLength: true,
  promptLengths: true,
  filterOverlongPrompts: true,
  truncation: true,
};

const datasetNames: OptionNames<PromptDatasetOptions> = {
  promptKey: true,
  rewardFnKey: true,
  truthKey: true,
  allowNan: true,
  maxSamples: true,
  shuffle: true,
  seed: true,
  ...lengthNames,
};

/** Where rows of a data set have their prompts and ground truths. */
export interface CountedShape extends RowShape {
  /** Number of rows of this shape. */
  readonly rows: number;
}

interface DatasetFacts {
  readonly shapes: readonly CountedShape[];
  readonly overlong?: number;
  readonly maxPromptLength?: number | undefined;
}

/** Prompts of a data set, in memory. */
export class PromptDataset {
  /** Rows in their order, without those that are left out. */
  readonly rows: readonly PromptRow[];
  /** Number of rows that were left out because their prompts are too long. */
  readonly overlong: number;
  /** Longest prompt in tokens; undefined without a limit. */
  readonly maxPromptLength: number | undefined;
  /** Hash of all rows: other data have another one. */
  readonly fingerprint: string;

  /** Where the rows that were read have their prompts and ground truths. */
  readonly shapes: readonly CountedShape[];

  private constructor(
    rows: readonly PromptRow[],
    { shapes, overlong = 0, maxPromptLength }: DatasetFacts,
  ) {
    this.rows = rows;
    this.shapes = shapes;
    this.overlong = overlong;
    this.maxPromptLength = maxPromptLength;
    this.fingerprint = fingerprintOf(rows);
  }

  /** Number of rows. */
  get length(): number {
    return this.rows.length;
  }

  /**
   * Reads rows from Parquet (.parquet) and JSON Lines or a JSON array (.jsonl, .json, also with
   * .gz), one file or several; a path may begin with ~/. Rows are verl's, or in another shape that
   * `rayling score` reads (ColumnNames).
   *
   * Rejects with DatasetError, which names file, line or row, and reason; with TrainerInputError
   * for an option.
   */
  static async load(
    files: string | readonly string[],
    options: PromptDatasetOptions = {},
  ): Promise<PromptDataset> {
    checkOptionNames("PromptDataset.load", options, datasetNames);
    return await PromptDataset.#of(
      readRowFiles(typeof files === "string" ? [files] : files, options),
      options,
    );
  }

  /**
   * Takes rows from memory; an error names a bad row by its number. Rejects with TrainerInputError
   * for an option.
   */
  static async fromRows(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options: PromptDatasetOptions = {},
  ): Promise<PromptDataset> {
    checkOptionNames("PromptDataset.fromRows", options, datasetNames);
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
    const counts = new Map<string, CountedShape>();
    for await (const { value, place } of source) {
      const { row, shape } = readPromptRow(value, read.length, place, options);
      read.push(row);
      const key = JSON.stringify(Object.values(shape));
      counts.set(key, { ...shape, rows: (counts.get(key)?.rows ?? 0) + 1 });
    }
    const shapes = [...counts.values()];
    const chosen = chosenRows(read, maxSamples, options);
    return await new PromptDataset(chosen, { shapes }).#within(options);
  }

  /**
   * Returns a data set without prompts that are too long. Rejects with DatasetError, and with
   * TrainerInputError for an option.
   */
  async limited(options: PromptLengthOptions): Promise<PromptDataset> {
    checkOptionNames("limited", options, lengthNames);
    return await this.#within(options);
  }

  async #within(options: PromptLengthOptions): Promise<PromptDataset> {
    const limit = limitOf(options);
    if (limit === undefined) return this;
    const { rows, shapes } = this;
    const { maxPromptLength } = limit;
    if (options.filterOverlongPrompts !== true) {
      const whole = await truncated(rows, options.truncation ?? "error", limit);
      return new PromptDataset(whole, { shapes, maxPromptLength });
    }
    const fitting = await withoutOverlong(rows, limit);
    const overlong = rows.length - fitting.length;
    return new PromptDataset(fitting, { shapes, overlong, maxPromptLength });
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
  return [...seededSubset(rows.length, maxSamples, seed)].map((row) =>
    present(rows[row], `row ${row}`),
  );
}

function fingerprintOf(rows: readonly PromptRow[]): string {
  const hash = createHash("sha256");
  for (const { index, rawPrompt, columns, groundTruth } of rows) {
    // verl's columns say it, and the fingerprints of older checkpoints have no more.
    const isOfVerl = valueAt(columns, "reward_model.ground_truth") === (groundTruth ?? undefined);
    const more = isOfVerl ? [] : [groundTruth];
    hash.update(JSON.stringify([index, rawPrompt, columns, ...more], notJson));
    hash.update("\n");
  }
  return hash.digest("hex");
}

/** Writes numbers that JSON does not have: bigints of Parquet, NaN of Python. */
function notJson(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
