/**
 * The columns of a batch: records of tensors and of plain arrays that share their number of rows.
 * Owns the consistency check and operations on every column at once (map, concatenate). Must not
 * know metaInfo or the DataProto class.
 */
import { DataProtoError, describe } from "../errors.ts";
import { concatRows, gatherRows, rowAt, rowCount, sliceRows } from "../tensor/rows.ts";
import { tensorProblem } from "../tensor/tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** Tensors by name, each [rows, …]. */
export type Tensors = Record<string, Tensor>;

/** Lists of values by name, one value for each row. */
export type NonTensors = Record<string, readonly unknown[]>;

export interface Columns {
  readonly batch: Tensors | null;
  readonly nonTensorBatch: NonTensors;
}

/**
 * Returns the row count that all columns share, or null without columns. Throws BATCH_SIZE_MISMATCH
 * or BAD_VALUE, naming the column.
 */
export function checkColumns({ batch, nonTensorBatch }: Columns): number | null {
  const sizes: { readonly key: string; readonly rows: number }[] = [];
  for (const [key, value] of Object.entries(batch ?? {})) {
    const problem =
      tensorProblem(value) ??
      (value.shape.length === 0 ? "a tensor without dimensions has no rows" : null);
    if (problem !== null)
      throw new DataProtoError("BAD_VALUE", `batch "${key}": ${problem}`, { key, actual: value });
    sizes.push({ key, rows: rowCount(value) });
  }
  for (const [key, values] of Object.entries(nonTensorBatch)) {
    if (!Array.isArray(values)) {
      const message = `nonTensorBatch "${key}" must be an array with one value per row, got ${describe(values)}`;
      throw new DataProtoError("BAD_VALUE", message, { key, actual: values });
    }
    sizes.push({ key, rows: values.length });
  }
  const [first] = sizes;
  if (first === undefined) return null;
  for (const { key, rows } of sizes) {
    if (rows === first.rows) continue;
    const message = `all columns must have the same number of rows: "${first.key}" has ${first.rows}, "${key}" has ${rows}`;
    throw new DataProtoError("BATCH_SIZE_MISMATCH", message, {
      key,
      expected: first.rows,
      actual: rows,
    });
  }
  return first.rows;
}

/**
 * Returns a new record with every value replaced. It visits own keys only, and a key named
 * __proto__ stays a key.
 */
export function mapColumns<T, U>(
  columns: Readonly<Record<string, T>>,
  change: (value: T, key: string) => U,
): Record<string, U> {
  return Object.fromEntries(
    Object.entries(columns).map(([key, value]) => [key, change(value, key)]),
  );
}

/** Returns the named columns. Throws KEY_NOT_FOUND for the first that is missing. */
export function pickColumns<T>(
  columns: Readonly<Record<string, T>>,
  keys: readonly string[],
  owner: string,
): Record<string, T> {
  return Object.fromEntries(keys.map((key) => [key, columnOf(columns, key, owner)]));
}

export function omitColumns<T>(
  columns: Readonly<Record<string, T>>,
  keys: readonly string[],
): Record<string, T> {
  const gone = new Set(keys);
  return Object.fromEntries(Object.entries(columns).filter(([key]) => !gone.has(key)));
}

/** Returns one row: tensors without their batch dimension. */
export function columnsAt(
  { batch, nonTensorBatch }: Columns,
  row: number,
): { batch: Tensors | null; nonTensorBatch: Record<string, unknown> } {
  return {
    batch: batch && mapColumns(batch, (tensor) => rowAt(tensor, row)),
    nonTensorBatch: mapColumns(nonTensorBatch, (values) => values[row]),
  };
}

/** Returns rows start .. stop - 1; tensors are views. */
export function viewColumns(
  { batch, nonTensorBatch }: Columns,
  start: number,
  stop: number,
): Columns {
  return {
    batch: batch && mapColumns(batch, (tensor) => sliceRows(tensor, start, stop)),
    nonTensorBatch: mapColumns(nonTensorBatch, (values) => values.slice(start, stop)),
  };
}

/** Returns copies of the named rows, in that order. */
export function gatherColumns({ batch, nonTensorBatch }: Columns, rows: Int32Array): Columns {
  return {
    batch: batch && mapColumns(batch, (tensor) => gatherRows(tensor, rows)),
    nonTensorBatch: mapColumns(nonTensorBatch, (values) => Array.from(rows, (row) => values[row])),
  };
}

/**
 * Returns the rows of all batches, one after the other. All must have the keys of the first; either
 * all have tensors or none (null).
 */
export function concatColumns(list: readonly Columns[]): Columns {
  const batches = list.map(({ batch }) => batch);
  const filled = batches.filter((batch) => batch !== null);
  if (filled.length > 0 && filled.length < list.length) {
    const at = batches.indexOf(null);
    throw new DataProtoError(
      "KEY_NOT_FOUND",
      `concat: element ${at} has no tensors, others have some`,
      { actual: at },
    );
  }
  const values = list.map(({ nonTensorBatch }) => nonTensorBatch);
  return {
    batch: filled.length === 0 ? null : concatRecords(filled, "batch", concatRows),
    nonTensorBatch: concatRecords(values, "nonTensorBatch", (parts) => parts.flat(1)),
  };
}

function concatRecords<T>(
  list: readonly Record<string, T>[],
  owner: string,
  join: (parts: readonly T[]) => T,
): Record<string, T> {
  const [first = {}] = list;
  for (const [at, columns] of list.entries()) {
    const extra = Object.keys(columns).find((key) => !Object.hasOwn(first, key));
    if (extra === undefined) continue;
    const message = `concat: ${owner} "${extra}" of element ${at} is not among the keys of the first (${listKeys(first)})`;
    throw new DataProtoError("KEY_NOT_FOUND", message, {
      key: extra,
      expected: Object.keys(first),
      actual: at,
    });
  }
  return mapColumns(first, (_, key) => {
    const parts = list.map((columns, at) =>
      columnOf(columns, key, `concat: ${owner} of element ${at}`),
    );
    try {
      return join(parts);
    } catch (cause) {
      if (!(cause instanceof DataProtoError)) throw cause;
      const { code, expected, actual, message } = cause;
      throw new DataProtoError(code, `concat: ${owner} "${key}": ${message}`, {
        key,
        expected,
        actual,
        cause,
      });
    }
  });
}

function columnOf<T>(columns: Readonly<Record<string, T>>, key: string, owner: string): T {
  if (Object.hasOwn(columns, key)) return columns[key] as T;
  const message = `${owner} has no key "${key}"; it has ${listKeys(columns)}`;
  throw new DataProtoError("KEY_NOT_FOUND", message, { key, expected: Object.keys(columns) });
}

function listKeys(columns: object): string {
  const keys = Object.keys(columns);
  return keys.length === 0 ? "none" : keys.map((key) => `"${key}"`).join(", ");
}
