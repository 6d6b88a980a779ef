/**
 * Rows of tokens, as formulas see them: float64, row by row. Tensors of a batch come in and go out
 * as float32; what is between is exact enough that only the input's own rounding is left.
 */

import { asTensor, type Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../errors.ts";

/** Numbers in rows of one length. */
export interface Matrix {
  /** The number of rows. */
  readonly rows: number;
  /** The length of a row. */
  readonly columns: number;
  /** The numbers, row by row: `rows` times `columns` of them. */
  readonly data: Float64Array;
}

/** A matrix that is only read, which may be the memory of a tensor itself. */
export interface MatrixView extends Pick<Matrix, "rows" | "columns"> {
  /** The numbers, row by row. */
  readonly data: Float64Array | Float32Array;
}

/** Numbers in rows, of which one row at a time is there: those from `startOf(row)` in `data`. */
export interface RowSource extends Pick<MatrixView, "data"> {
  readonly startOf: (row: number) => number;
}

export function sourceOf({ columns, data }: MatrixView): RowSource {
  return { data, startOf: (row) => row * columns };
}

export function newMatrix(rows: number, columns: number): Matrix {
  return { rows, columns, data: new Float64Array(rows * columns) };
}

/**
 * Returns room for so many numbers of a row, and for a few more: rooms of whole pages would lie so
 * that a processor takes a number of one for what was just written into another.
 */
export function newRoom(length: number): Float64Array {
  return new Float64Array(length + 24);
}

/** @throws TrainerInputError for what has not that shape, if one is given, or is no matrix */
export function matrixOf(
  name: string,
  tensor: Tensor,
  like?: Pick<Matrix, "rows" | "columns">,
): Matrix {
  const { rows, columns } = shapeOf(name, tensor, like);
  return { rows, columns, data: new Float64Array(tensor.data) };
}

/**
 * The tensor's own memory where it is of floats, without a copy: for what is only read.
 *
 * @throws TrainerInputError as matrixOf
 */
export function viewOf(
  name: string,
  tensor: Tensor,
  like?: Pick<Matrix, "rows" | "columns">,
): MatrixView {
  const { data } = tensor;
  const isFloat = data instanceof Float32Array || data instanceof Float64Array;
  return isFloat ? { ...shapeOf(name, tensor, like), data } : matrixOf(name, tensor, like);
}

function shapeOf(
  name: string,
  tensor: Tensor,
  like: Pick<Matrix, "rows" | "columns"> | undefined,
): Pick<Matrix, "rows" | "columns"> {
  const [rows = 0, columns = 0, ...more] = tensor.shape;
  const isMatrix = tensor.shape.length === 2 && more.length === 0;
  if (!isMatrix || (like !== undefined && (rows !== like.rows || columns !== like.columns))) {
    const wanted = like === undefined ? "[rows, tokens]" : `[${like.rows}, ${like.columns}]`;
    throw new TrainerInputError(
      name,
      `${name} must have shape ${wanted}; it has [${tensor.shape.join(", ")}]`,
    );
  }
  return { rows, columns };
}

export function tensorOf({ rows, columns, data }: Matrix): Tensor<"float32"> {
  return asTensor(new Float32Array(data), [rows, columns]);
}

/** @param value of row, column, and place in the data */
export function filled(
  { rows, columns }: Pick<Matrix, "rows" | "columns">,
  value: (row: number, column: number, at: number) => number,
): Matrix {
  const result = newMatrix(rows, columns);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at++) {
      result.data[at] = value(row, column, at);
    }
  }
  return result;
}

/** Some of the rows, in that order. */
export function selectedRows({ columns, data }: MatrixView, rows: readonly number[]): Matrix {
  return filled(
    { rows: rows.length, columns },
    (place, column) => data[(rows[place] ?? NaN) * columns + column] ?? NaN,
  );
}

/** A copy in which some of the rows are others. */
export function withRows(matrix: Matrix, rows: readonly number[], by: MatrixView): Matrix;
export function withRows(matrix: MatrixView, rows: readonly number[], by: MatrixView): MatrixView;
export function withRows(matrix: MatrixView, rows: readonly number[], by: MatrixView): MatrixView {
  const data = matrix.data.slice();
  for (const [place, row] of rows.entries()) {
    const from = place * matrix.columns;
    data.set(by.data.subarray(from, from + matrix.columns), row * matrix.columns);
  }
  return { ...matrix, data };
}

/** Returns the sum of all columns of each row. */
export function rowSums({ rows, columns, data }: MatrixView): Float64Array {
  const sums = new Float64Array(rows);
  for (let row = 0; row < rows; row++) sums[row] = sumIn(data, row * columns, columns);
  return sums;
}

/** A function of its own: V8 optimises one that is called often better than a long loop. */
function sumIn(data: MatrixView["data"], from: number, length: number): number {
  let sum = 0;
  for (let at = from; at < from + length; at++) sum += data[at] ?? NaN;
  return sum;
}

/** NaN stays NaN. */
export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/**
 * Returns the number itself, for a loop that uses it in each turn: V8 unboxes the result of an
 * operation once, before the loop, but a field or an argument anew for each token. A sum that a
 * loop makes is boxed in each turn where a call gets it, but not where it gets this.
 */
export function unboxed(value: number): number {
  return 1 * value;
}
