/**
 * Row indices with Python's meaning: negative counts from the end, slices clamp, a boolean mask
 * picks where it is true. Pure arithmetic on row numbers; must not know columns. The result is
 * checked: every index lies in 0 .. rows - 1.
 */
import { DataProtoError, describe, requireInteger } from "../errors.ts";
import { isTensor } from "./tensor.ts";
import type { Tensor } from "./tensor.ts";

/** Python's start:stop:step; null or absent means "from the end that the slice starts at". */
export interface RowSlice {
  /** The first row; a negative number counts from the end. */
  readonly start?: number | null | undefined;
  /** The row behind the last one; a negative number counts from the end. */
  readonly stop?: number | null | undefined;
  /** The distance between rows. Default 1. */
  readonly step?: number | null | undefined;
}

/**
 * Integers (repeats and any order allowed) or one boolean per row. A bare Uint8Array has integers;
 * a mask of bytes is a tensor of dtype bool.
 */
export type RowIdxs =
  | readonly number[]
  | readonly boolean[]
  | Int32Array
  | Uint32Array
  | Uint8Array
  | Tensor;

export function resolveRow(index: unknown, rows: number): number {
  if (typeof index !== "number" || !Number.isInteger(index)) {
    throw new DataProtoError(
      "BAD_INDEX",
      `a row index must be an integer, got ${describe(index)}`,
      { expected: rows, actual: index },
    );
  }
  if (index >= -rows && index < rows) return index < 0 ? index + rows : index;
  throw new DataProtoError("BAD_INDEX", `index ${index} is out of bounds for ${rows} rows`, {
    expected: rows,
    actual: index,
  });
}

/** Python's slice.indices() for a positive step: 0 <= start <= stop <= rows. */
export function resolveSlice(
  slice: RowSlice,
  rows: number,
): { start: number; stop: number; step: number } {
  const step = slice.step ?? 1;
  requireInteger("slice step", step, 1);
  const start = clamp("slice start", slice.start ?? 0, rows);
  const stop = clamp("slice stop", slice.stop ?? rows, rows);
  return { start, stop: Math.max(start, stop), step };
}

export function resolveRows(idxs: RowIdxs, rows: number): Int32Array {
  if (isTensor(idxs)) {
    if (idxs.shape.length !== 1)
      throw indexError(
        `indices must have one dimension, got shape [${idxs.shape.join(", ")}]`,
        rows,
        idxs.shape,
      );
    return idxs.dtype === "bool" ? rowsOfMask(idxs.data, rows) : rowsOfIntegers(idxs.data, rows);
  }
  if (!isRowIdxs(idxs))
    throw indexError(`Indexing with ${describe(idxs)} is not supported`, rows, idxs);
  if (Array.isArray(idxs) && typeof idxs[0] === "boolean") return rowsOfMask(idxs, rows);
  return rowsOfIntegers(idxs, rows);
}

export function isRowIdxs(value: unknown): value is RowIdxs {
  return (
    Array.isArray(value) ||
    (ArrayBuffer.isView(value) && !(value instanceof DataView)) ||
    isTensor(value)
  );
}

export function isRowSlice(value: unknown): value is RowSlice {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.keys(value).every((key) => key === "start" || key === "stop" || key === "step");
}

/** Returns row numbers by rule: `rowOf(i)` for each i below length. */
export function rowsBy(length: number, rowOf: (i: number) => number): Int32Array {
  return Int32Array.from({ length }, (_, i) => rowOf(i));
}

function clamp(name: string, index: number, rows: number): number {
  if (!Number.isInteger(index))
    throw indexError(`${name} must be an integer, got ${describe(index)}`, rows, index);
  return index < 0 ? Math.max(0, index + rows) : Math.min(index, rows);
}

function rowsOfMask(mask: ArrayLike<unknown>, rows: number): Int32Array {
  if (mask.length !== rows)
    throw indexError(
      `a mask of length ${mask.length} does not fit ${rows} rows`,
      rows,
      mask.length,
    );
  const picked: number[] = [];
  for (let row = 0; row < rows; row++) {
    const value = mask[row];
    if (typeof value !== "boolean" && value !== 0 && value !== 1)
      throw indexError(`a mask cannot hold ${describe(value)}`, rows, value);
    if (value === true || value === 1) picked.push(row);
  }
  return Int32Array.from(picked);
}

function rowsOfIntegers(idxs: ArrayLike<unknown>, rows: number): Int32Array {
  return rowsBy(idxs.length, (i) => resolveRow(idxs[i], rows));
}

function indexError(message: string, rows: number, actual: unknown): DataProtoError {
  return new DataProtoError("BAD_INDEX", message, { expected: rows, actual });
}
