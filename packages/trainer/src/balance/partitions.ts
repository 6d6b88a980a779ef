/**
 * Rows dealt out so that every part has about as much to do: Karmarkar and Karp's largest
 * differencing method, 1982 (verl/utils/seqlen_balancing.py). Ties are broken as verl breaks them,
 * so the same rows go to the same part.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../errors.ts";

/** How a list is divided into parts of similar sums. */
export interface PartitionOptions {
  /** The number of parts. */
  readonly parts: number;
  /** Whether all parts have the same number of rows, which must divide the rows. */
  readonly equalSize: boolean;
}

/**
 * Rows of one part: how much there is to do, and which they are, in the order in which they came
 * together.
 */
interface Part {
  sum: number;
  readonly rows: number[];
}

/** The parts, the one with the most work first. */
type State = Part[];

/**
 * Parts by what they have to do, the most first; rows in the order in which they came together.
 *
 * @param workloads of each row. Throws TrainerInputError.
 */
export function karmarkarKarp(workloads: ArrayLike<number>, options: PartitionOptions): number[][] {
  checkOptions(workloads, options);
  const { parts, equalSize } = options;
  const compareStates = (left: State, right: State): number =>
    spreadOf(left) - spreadOf(right) || compareParts(partOf(left, 0), partOf(right, 0));
  const rows = Array.from(workloads, (_, row) => row).toSorted(
    (left, right) => workloadOf(workloads, left) - workloadOf(workloads, right) || left - right,
  );
  const step = equalSize ? parts : 1;
  const states: State[] = [];
  for (let from = 0; from < rows.length; from += step) {
    const state: State = Array.from({ length: parts }, () => ({ sum: 0, rows: [] }));
    for (const [at, row] of rows.slice(from, from + step).entries()) {
      state[at] = { sum: workloadOf(workloads, row), rows: [row] };
    }
    states.push(state.toSorted((left, right) => compareParts(right, left)));
  }
  states.sort(compareStates);
  // Merges the two states with the widest spreads: the part with the most work of one with the part
  // with the least work of the other.
  for (let first = states.pop(); first !== undefined; first = states.pop()) {
    const second = states.pop();
    if (second === undefined) return first.map((part) => part.rows);
    for (const [at, part] of first.entries()) {
      const other = partOf(second, parts - 1 - at);
      part.sum += other.sum;
      part.rows.push(...other.rows);
    }
    insert(
      states,
      first.toSorted((left, right) => compareParts(right, left)),
      compareStates,
    );
  }
  return Array.from({ length: parts }, () => []);
}

/**
 * Each row to the part that has the least to do so far; where parts are to be of one size, rows
 * count before workloads. Throws TrainerInputError.
 */
export function greedyPartition(
  workloads: ArrayLike<number>,
  options: PartitionOptions,
): number[][] {
  checkOptions(workloads, options);
  const { parts, equalSize } = options;
  const sums = new Float64Array(parts);
  let extra = 0;
  if (equalSize)
    for (let row = 0; row < workloads.length; row++) extra += workloadOf(workloads, row);
  const bias = equalSize ? extra + 1 : 0;
  const partitions = Array.from({ length: parts }, (): number[] => []);
  for (let row = 0; row < workloads.length; row++) {
    const least = sums.indexOf(sums.reduce((left, right) => Math.min(left, right), Infinity));
    partitions[least]?.push(row);
    sums[least] = (sums[least] ?? NaN) + (workloadOf(workloads, row) + bias);
  }
  return partitions;
}

/**
 * Partitions by Karmarkar and Karp, each part's rows in ascending order (verl
 * `get_seqlen_balanced_partitions`). Throws TrainerInputError where a part would have no row.
 */
export function balancedPartitions(
  workloads: ArrayLike<number>,
  options: PartitionOptions,
): number[][] {
  if (workloads.length < options.parts) {
    throw new TrainerInputError(
      "parts",
      `${options.parts} parts need at least as many rows; there are ${workloads.length}`,
    );
  }
  const partitions = karmarkarKarp(workloads, options);
  const empty = partitions.findIndex((rows) => rows.length === 0);
  if (empty >= 0) {
    throw new TrainerInputError("parts", `part ${empty} of ${options.parts} would have no row`);
  }
  return partitions.map((rows) => rows.toSorted((left, right) => left - right));
}

function checkOptions(workloads: ArrayLike<number>, { parts, equalSize }: PartitionOptions): void {
  if (!Number.isInteger(parts) || parts < 1) {
    throw new TrainerInputError("parts", `parts must be a whole number above 0; it is ${parts}`);
  }
  if (equalSize && workloads.length % parts !== 0) {
    throw new TrainerInputError(
      "parts",
      `${workloads.length} rows cannot be dealt out to ${parts} parts of one size`,
    );
  }
}

function workloadOf(workloads: ArrayLike<number>, row: number): number {
  return workloads[row] ?? NaN;
}

/** Compares by work, then by number of rows, then row by row. */
function compareParts(left: Part, right: Part): number {
  const size = left.sum - right.sum || left.rows.length - right.rows.length;
  if (size !== 0) return size;
  for (const [at, row] of left.rows.entries()) {
    const other = right.rows[at] ?? NaN;
    if (row !== other) return row - other;
  }
  return 0;
}

/** @param place from 0, or from -1 for the last one */
function partOf(state: State, place: number): Part {
  return present(state.at(place), `part ${place}`);
}

function spreadOf(state: State): number {
  return partOf(state, 0).sum - partOf(state, -1).sum;
}

/** Inserts into a sorted list. */
function insert<T>(sorted: T[], value: T, compare: (left: T, right: T) => number): void {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(present(sorted[middle], "an item"), value) < 0) low = middle + 1;
    else high = middle;
  }
  sorted.splice(low, 0, value);
}
