/**
 * Assignment of a batch's rows to processes and micro-batches by their lengths (verl
 * `_balance_batch`, `rearrange_micro_batches`). Returns orders of rows; the caller reorders the
 * batch.
 */

import { TrainerInputError } from "../errors.ts";
import { balancedPartitions } from "./partitions.ts";
import { sumOf } from "../values/sums.ts";

/**
 * Returns the work of a row of so many tokens for a 7B model, in proportion: 24,576 L + L^2 (verl
 * `calculate_workload`).
 */
export function workloadOf(tokens: number): number {
  return 24_576 * tokens + tokens * tokens;
}

/** How rows are dealt out to processes. */
export interface BalanceOptions {
  /** The number of processes. */
  readonly dpSize: number;
  /**
   * Rows of each mini-batch are dealt out by themselves, so that every process has as many of each;
   * must divide the rows. Default: all rows at once.
   */
  readonly miniBatchSize?: number;
}

/** An order of rows by which every process gets similar work. */
export interface Balance {
  /** New order of the rows: the first `rows / dpSize` belong to the first process, and so on. */
  readonly order: Int32Array;
  /** `global_seqlen/*`. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Within a process, rows that take little are at both ends.
 *
 * @param tokens of each row. Throws TrainerInputError where rows do not divide.
 */
export function balanceBatch(
  tokens: ArrayLike<number>,
  { dpSize, miniBatchSize = tokens.length }: BalanceOptions,
): Balance {
  const workloads = Float64Array.from(tokens, workloadOf);
  if (!(miniBatchSize > 0) || tokens.length % miniBatchSize !== 0) {
    throw new TrainerInputError(
      "miniBatchSize",
      `${tokens.length} rows are not whole mini-batches of ${miniBatchSize}`,
    );
  }
  const partitions = Array.from({ length: dpSize }, (): number[] => []);
  for (let from = 0; from < tokens.length; from += miniBatchSize) {
    const own = workloads.subarray(from, from + miniBatchSize);
    const parts = balancedPartitions(own, { parts: dpSize, equalSize: true });
    for (const [at, rows] of parts.entries()) {
      partitions[at]?.push(...rows.map((row) => from + row));
    }
  }
  const ordered = partitions.map((rows) => smallAtBothEnds(rows, workloads));
  return {
    order: Int32Array.from(ordered.flat()),
    metrics: seqlenMetrics(tokens, ordered),
  };
}

function smallAtBothEnds(rows: readonly number[], workloads: Float64Array): number[] {
  const sorted = rows.toSorted(
    (left, right) => (workloads[left] ?? NaN) - (workloads[right] ?? NaN) || left - right,
  );
  const isEven = (_: number, at: number): boolean => at % 2 === 0;
  const odd = sorted.filter((_, at) => at % 2 === 1);
  return [...sorted.filter(isEven), ...odd.toReversed()];
}

/** Tokens of a process as rows came, and as they were dealt out (verl `log_seqlen_unbalance`). */
export function seqlenMetrics(
  tokens: ArrayLike<number>,
  partitions: readonly (readonly number[])[],
  prefix = "global_seqlen",
): Record<string, number> {
  const size = Math.max(1, Math.floor(tokens.length / partitions.length));
  const before: number[] = [];
  for (let row = 0; row < tokens.length; row++) {
    const at = Math.floor(row / size);
    before[at] = (before[at] ?? 0) + (tokens[row] ?? NaN);
  }
  const after = partitions.map((rows) => rows.reduce((sum, row) => sum + (tokens[row] ?? NaN), 0));
  const [min, max] = [Math.min(...before), Math.max(...before)];
  return {
    [`${prefix}/min`]: min,
    [`${prefix}/max`]: max,
    [`${prefix}/minmax_diff`]: max - min,
    [`${prefix}/balanced_min`]: Math.min(...after),
    [`${prefix}/balanced_max`]: Math.max(...after),
    [`${prefix}/mean`]: sumOf(before) / partitions.length,
  };
}

/** Limits of micro-batches by their tokens. */
export interface MicroBatchOptions {
  /** verl `ppo_max_token_len_per_gpu`: what a micro-batch has at most. */
  readonly maxTokens: number;
  /** Default 1. */
  readonly minMicroBatches?: number;
  /** Their number is a multiple of it. Default 1. */
  readonly divisibleBy?: number;
}

/**
 * Micro-batches of rows that together have about as much to do each (verl `use_dynamic_bsz`); the
 * ones with the least to do come first and last. Their rows are balanced, not packed: there is one
 * more, or `divisibleBy` more, for as long as one of them has more tokens than `maxTokens` (verl
 * 0.9.1; its 0.10.0.dev goes beyond it).
 *
 * @param tokens of each row. Throws TrainerInputError for a row that is longer than a micro-batch
 *   may be, and for fewer rows than micro-batches.
 */
export function microBatches(
  tokens: ArrayLike<number>,
  { maxTokens, minMicroBatches = 1, divisibleBy = 1 }: MicroBatchOptions,
): number[][] {
  let total = 0;
  for (let row = 0; row < tokens.length; row++) {
    const length = tokens[row] ?? NaN;
    if (length > maxTokens) {
      throw new TrainerInputError(
        "maxTokens",
        `row ${row} has ${length} tokens, more than the ${maxTokens} of a micro-batch`,
      );
    }
    total += length;
  }
  const fewest = Math.max(minMicroBatches, Math.min(tokens.length, Math.ceil(total / maxTokens)));
  let parts = Math.ceil(Math.max(1, fewest) / divisibleBy) * divisibleBy;
  const workloads = Float64Array.from(tokens, workloadOf);
  const fits = (rows: readonly number[]): boolean =>
    rows.reduce((sum, row) => sum + (tokens[row] ?? NaN), 0) <= maxTokens;
  let batches = balancedPartitions(workloads, { parts, equalSize: false });
  while (!batches.every(fits)) {
    parts += divisibleBy;
    if (parts > tokens.length) {
      throw new TrainerInputError(
        "maxTokens",
        `${tokens.length} rows cannot be ${parts} micro-batches, and fewer, by multiples of ${divisibleBy}, have more than ${maxTokens} tokens`,
      );
    }
    batches = balancedPartitions(workloads, { parts, equalSize: false });
  }
  const workOf = (rows: readonly number[]): number =>
    rows.reduce((sum, row) => sum + (workloads[row] ?? NaN), 0);
  const sorted = batches.toSorted(
    (left, right) => workOf(right) - workOf(left) || (right[0] ?? 0) - (left[0] ?? 0),
  );
  const even = sorted.filter((_, at) => at % 2 === 0);
  return [...even.toReversed(), ...sorted.filter((_, at) => at % 2 === 1)];
}
