/**
 * Batches of prompts, epoch after epoch, in an order that the seed decides: it differs between
 * epochs and is equal in each run. Nothing is counted here: a batch is found by its number, from 0
 * over all epochs, so that a batch taken ahead and not trained yet is simply asked for again.
 *
 * A run saves the position of the next batch. Restored from it, no row is lost or comes twice.
 * (verl's trainer begins with epoch 0 after a resume, and loses a prefetched batch.)
 */

import { present } from "@rayling/reward-manager-registry/values";
import { DatasetError, TrainerInputError } from "../errors.ts";
import { checkOptionNames } from "./option-names.ts";
import type { OptionNames } from "./option-names.ts";
import type { PromptDataset } from "./prompt-dataset.ts";
import type { PromptRow } from "./prompt-row.ts";
import { seededOrder } from "./seeded-order.ts";

/** Size and order of the batches. */
export interface PromptLoaderOptions {
  /** Prompts of a batch; verl `data.train_batch_size`. "all": the whole data set. */
  readonly batchSize: number | "all";
  /** Default true. */
  readonly shuffle?: boolean;
  /** Default 1. */
  readonly seed?: number;
  /**
   * Whether the rows of an incomplete batch are left out of their epoch; else the last batch is
   * smaller. Default true.
   */
  readonly dropLast?: boolean;
}

const optionNames: OptionNames<PromptLoaderOptions> = {
  batchSize: true,
  shuffle: true,
  seed: true,
  dropLast: true,
};

/** One batch of prompts, with its place in the data set. */
export interface PromptBatch {
  /** Number of the batch, from 0 over all epochs. */
  readonly number: number;
  /** Number of the epoch, from 0. */
  readonly epoch: number;
  /** Number of the batch within the epoch, from 0. */
  readonly batch: number;
  /** Prompts of the batch. */
  readonly rows: readonly PromptRow[];
  /**
   * Uids of the rows: `seed:epoch:batch:row`. verl draws them at random; these are equal in each
   * run.
   */
  readonly uids: readonly string[];
}

/**
 * The next batch as plain data, together with the settings of the loader, so that it cannot be
 * restored into another one.
 */
export interface LoaderPosition {
  /** Number of the epoch, from 0. */
  readonly epoch: number;
  /** Number of the batch within the epoch, from 0. */
  readonly batch: number;
  /** Prompts of a batch. */
  readonly batchSize: number;
  /** Whether each epoch has an order of its own. */
  readonly shuffle: boolean;
  /** Seed of the orders. */
  readonly seed: number;
  /** Whether a last batch that is not full is left out. */
  readonly dropLast: boolean;
  /** Fingerprint of the data set. */
  readonly fingerprint: string;
}

/** Batches of prompts, epoch after epoch. */
export class PromptLoader {
  /** Number of batches in each epoch. */
  readonly batchesPerEpoch: number;
  /** Longest prompt in tokens; undefined without a limit. */
  readonly maxPromptLength: number | undefined;
  readonly #dataset: PromptDataset;
  readonly #settings: Omit<LoaderPosition, "epoch" | "batch">;
  #order: { readonly epoch: number; readonly rows: Uint32Array } | undefined;

  /** Throws TrainerInputError for an option, DatasetError for a data set that fills no batch. */
  constructor(dataset: PromptDataset, options: PromptLoaderOptions) {
    checkOptionNames("PromptLoader", options, optionNames);
    const { batchSize, shuffle = true, seed = 1, dropLast = true } = options;
    const size = batchSize === "all" ? dataset.length : batchSize;
    if (batchSize !== "all" && !(Number.isSafeInteger(size) && size >= 1)) {
      throw new TrainerInputError("batchSize", `must be a whole number of at least 1, is ${size}`);
    }
    if (!Number.isSafeInteger(seed)) {
      throw new TrainerInputError("seed", `must be a whole number, is ${seed}`);
    }
    if (dataset.length === 0) throw new DatasetError("the data set has no rows", {});
    if (dropLast && dataset.length < size) {
      const why =
        dataset.overlong === 0 ? "" : ` (${dataset.overlong} were left out as overlong prompts)`;
      throw new DatasetError(
        `the data set has ${dataset.length} rows${why}, which fill no batch of ${size}`,
        {},
      );
    }
    this.#dataset = dataset;
    this.maxPromptLength = dataset.maxPromptLength;
    const { fingerprint } = dataset;
    this.#settings = { batchSize: size, shuffle, seed, dropLast, fingerprint };
    this.batchesPerEpoch = (dropLast ? Math.floor : Math.ceil)(dataset.length / size);
  }

  /**
   * Returns the batch of this number, always the same one. Throws TrainerInputError if it is not a
   * whole number from 0.
   */
  batch(number: number): PromptBatch {
    const { epoch, batch, batchSize, seed } = this.positionOf(number);
    const order = this.#orderOf(epoch).subarray(batch * batchSize, (batch + 1) * batchSize);
    const rows = Array.from(order, (row) => present(this.#dataset.rows[row], `row ${row}`));
    const uids = rows.map((_, row) => `${seed}:${epoch}:${batch}:${row}`);
    return { number, epoch, batch, rows, uids };
  }

  /**
   * Returns the number of prompts in that batch: the last one of an epoch may have fewer. Throws
   * TrainerInputError.
   */
  sizeOf(number: number): number {
    const { batch, batchSize } = this.positionOf(number);
    return Math.min(batchSize, this.#dataset.length - batch * batchSize);
  }

  /** Returns the position of that batch, to be saved. Throws TrainerInputError. */
  positionOf(number: number): LoaderPosition {
    requireCount("number", number);
    const batch = number % this.batchesPerEpoch;
    return { epoch: (number - batch) / this.batchesPerEpoch, batch, ...this.#settings };
  }

  /**
   * Returns the number of the batch at a saved position. Throws TrainerInputError where it is of
   * other data or of other batches.
   */
  numberOf(position: LoaderPosition): number {
    for (const key of ["batchSize", "shuffle", "seed", "dropLast", "fingerprint"] as const) {
      const [here, there] = [this.#settings[key], position[key]];
      if (here === there) continue;
      const what =
        key === "fingerprint"
          ? `the data are others: their fingerprint is ${here} here and was ${there} there`
          : `${key} is ${here} here and was ${there} there`;
      throw new TrainerInputError(
        "position",
        `${what}${verlKeys[key]}: rows would be lost, or come twice`,
      );
    }
    const { epoch, batch } = position;
    requireCount("position.epoch", epoch);
    requireCount("position.batch", batch);
    if (batch >= this.batchesPerEpoch) {
      throw new TrainerInputError(
        "position.batch",
        `is ${batch}, and an epoch has ${this.batchesPerEpoch} batches`,
      );
    }
    return epoch * this.batchesPerEpoch + batch;
  }

  #orderOf(epoch: number): Uint32Array {
    if (this.#order?.epoch !== epoch) {
      const { length } = this.#dataset;
      const { shuffle, seed } = this.#settings;
      const inOrder = (): Uint32Array => Uint32Array.from({ length }, (_, row) => row);
      this.#order = { epoch, rows: shuffle ? seededOrder(length, seed, epoch) : inOrder() };
    }
    return this.#order.rows;
  }
}

const verlKeys = {
  batchSize: " (data.train_batch_size)",
  shuffle: " (data.shuffle)",
  seed: " (data.seed, or rayling.seed)",
  dropLast: "",
  fingerprint: " (data.train_files, or how prompts are read, left out and cut)",
};

function requireCount(input: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return;
  throw new TrainerInputError(input, `must be a whole number from 0, is ${value}`);
}
