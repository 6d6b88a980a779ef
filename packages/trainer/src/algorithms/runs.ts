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
  const words = wordsOf(mask.data);
  const firsts = new Int32Array(mask.rows + 1);
  const lengths = new Float64Array(mask.rows);
  let count = 0;
  for (let row = 0; row < mask.rows; row++) {
    const length = addRow(found, mask, { words, row });
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
  { words, row }: { readonly words: Words; readonly row: number },
): number {
  const to = (row + 1) * columns;
  let length = 0;
  for (let from = row * columns, end = from; from < to; from = end) {
    end = endOfRun(words, from, to);
    const weight = data[from] ?? NaN;
    if (weight === 0) continue;
    starts.push(from);
    ends.push(end);
    weights.push(weight);
    length += weight * (end - from);
  }
  return length;
}

type Words = Int32Array | Float64Array;

/** Floats of one word are compared by their bits, as whole numbers: that takes half the time. */
function wordsOf(data: MatrixView["data"]): Words {
  if (data instanceof Float64Array) return data;
  return new Int32Array(data.buffer, data.byteOffset, data.length);
}

/** Returns where the numbers that equal the first one end. */
function endOfRun(words: Words, from: number, to: number): number {
  const first = words[from];
  let end = from + 1;
  while (end < to && words[end] === first) end++;
  return end;
}
