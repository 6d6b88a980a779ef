/**
 * The tokens that count, as runs: neighbours in a row that count by one weight. So a mask is looked
 * at once. A loop over a run takes half the time of one that asks for each token whether it counts.
 */

import type { MatrixView } from "./matrix.ts";

export interface TokenRuns {
  /** The length of a row of the matrix. */
  readonly columns: number;
  /** The runs of a row go from its entry here to that of the next row. */
  readonly firsts: Int32Array;
  /** For each run the place of its first token in the matrix, and the place behind its last one. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** For each run the weight of its tokens in the mask. */
  readonly weights: readonly number[];
  /** The sum of the mask. */
  readonly count: number;
  /** The sum of the mask in each row. */
  readonly lengths: Float64Array;
}

export function runsOf(mask: MatrixView): TokenRuns {
  const found: FoundRuns = { starts: [], ends: [], weights: [] };
  const firsts = new Int32Array(mask.rows + 1);
  const lengths = new Float64Array(mask.rows);
  let count = 0;
  for (let row = 0; row < mask.rows; row++) {
    const length = addRow(found, mask, row);
    lengths[row] = length;
    count += length;
    firsts[row + 1] = found.starts.length;
  }
  return { columns: mask.columns, firsts, ...found, count, lengths };
}

type FoundRuns = Record<"starts" | "ends" | "weights", number[]>;

/** Returns the sum of the mask in the row. */
function addRow(
  { starts, ends, weights }: FoundRuns,
  { data, columns }: MatrixView,
  row: number,
): number {
  const to = (row + 1) * columns;
  let length = 0;
  for (let from = row * columns, end = from; from < to; from = end) {
    end = endOfRun(data, from, to);
    const weight = data[from] ?? NaN;
    if (weight === 0) continue;
    starts.push(from);
    ends.push(end);
    weights.push(weight);
    length += weight * (end - from);
  }
  return length;
}

/** Returns where the numbers that equal the first one end. */
function endOfRun(data: MatrixView["data"], from: number, to: number): number {
  const first = data[from];
  let end = from + 1;
  // Four numbers a turn: most of a turn is its own test.
  while (
    end + 4 <= to &&
    data[end] === first &&
    data[end + 1] === first &&
    data[end + 2] === first &&
    data[end + 3] === first
  ) {
    end += 4;
  }
  while (end < to && data[end] === first) end++;
  return end;
}
