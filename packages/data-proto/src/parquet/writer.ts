/**
 * Writes rows as Parquet, one row group after the other: only one group's rows and bytes are in
 * memory. The file appears when it is complete: until then it has another name, and an existing
 * file stays.
 *
 * The columns and their types are given, not guessed: a value that does not fit its column is an
 * error that names both, never another value. Missing values are null.
 */
import { open, rename, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { BasicType, Writer } from "hyparquet-writer";
import { DataProtoError, describe, JsonlError, ParquetError, requireInteger } from "../errors.ts";
import { encodeRecord } from "../jsonl/record.ts";
import { DEFAULT_MAX_LINE_BYTES } from "../jsonl/reader.ts";
import { ofFile } from "./file.ts";
import { checkOptions } from "../shared/options.ts";
import type { OptionKinds } from "../shared/options.ts";

/**
 * The types of columns. `json`: any value that JSON can carry, as text that readers parse as JSON.
 * `timestamp`: a Date, to the millisecond.
 */
export type ParquetColumn = "string" | "double" | "int32" | "boolean" | "timestamp" | "json";

/** Settings of a Parquet file that is written. */
export interface WriteParquetOptions {
  /** Types of the columns by name, in order. */
  readonly columns: Readonly<Record<string, ParquetColumn>>;
  /** The rows in one row group; default 10,000. */
  readonly rowsPerGroup?: number;
}

const writeOptions: OptionKinds<WriteParquetOptions> = { columns: "record", rowsPerGroup: "other" };

type Row = Readonly<Record<string, unknown>>;

/**
 * Resolves to the number of written rows. Rejects with ParquetError (PARQUET_NOT_FOUND: no such
 * folder, PARQUET_IO, PARQUET_BAD_TYPE, PARQUET_BAD_VALUE), with DataProtoError BAD_ARGUMENT for an
 * option, and with the errors of `rows`; then there is no new file.
 */
export async function writeParquet(
  path: string | URL,
  rows: Iterable<Row> | AsyncIterable<Row>,
  options: WriteParquetOptions,
): Promise<number> {
  checkOptions("writeParquet", options, writeOptions);
  const { columns, rowsPerGroup = 10_000 } = options;
  requireInteger("rowsPerGroup", rowsPerGroup, 1);
  const file = typeof path === "string" ? path : fileURLToPath(path);
  checkTypes(columns, file);
  const { ByteWriter, parquetWriteRows } = await import("hyparquet-writer");
  const unfinished = `${file}.${process.pid}.unfinished`;
  let written = 0;
  async function* checked(): AsyncGenerator<Record<string, unknown>> {
    for await (const row of rows) yield checkedRow(row, columns, { path: file, row: written++ });
  }
  const handle = await ofFile(file, open(unfinished, "w"));
  try {
    await parquetWriteRows({
      writer: intoFile(new ByteWriter(), handle, file),
      rows: checked(),
      columns: Object.entries(columns).map(([name, type]) => ({ name, type: types[type] })),
      rowGroupSize: rowsPerGroup,
      createdBy: "rayling",
    });
    await ofFile(file, handle.close());
    await ofFile(file, rename(unfinished, file));
    return written;
  } catch (error) {
    await handle.close();
    await rm(unfinished, { force: true });
    throw error;
  }
}

const types: Readonly<Record<ParquetColumn, BasicType>> = {
  string: "STRING",
  double: "DOUBLE",
  int32: "INT32",
  boolean: "BOOLEAN",
  timestamp: "TIMESTAMP",
  json: "JSON",
};

/** Throws before there is a file: rows with a column of no known type cannot be written. */
function checkTypes(columns: WriteParquetOptions["columns"], path: string): void {
  if (columns === undefined) {
    const message = 'writeParquet needs the types of its columns, as columns: { uid: "string" }';
    throw new DataProtoError("BAD_ARGUMENT", message, { key: "columns" });
  }
  for (const [column, type] of Object.entries(columns)) {
    if (Object.hasOwn(types, type)) continue;
    const reason = `its type is ${describe(type)}; there are ${Object.keys(types).join(", ")}`;
    throw new ParquetError("PARQUET_BAD_TYPE", { path, column, reason });
  }
}

/** The library's buffer; its content goes to the file after each row group. */
function intoFile(buffer: Writer & { index: number }, handle: FileHandle, path: string): Writer {
  const flush = async (): Promise<void> => {
    const bytes = new Uint8Array(buffer.buffer, 0, buffer.index);
    for (let offset = 0; offset < bytes.length;) {
      const { bytesWritten } = await ofFile(path, handle.write(bytes, offset));
      offset += bytesWritten;
    }
    buffer.index = 0;
  };
  return Object.assign(buffer, { flush, finish: flush });
}

function checkedRow(
  row: Row,
  columns: WriteParquetOptions["columns"],
  place: { readonly path: string; readonly row: number },
): Record<string, unknown> {
  if (typeof row !== "object" || row === null) {
    const reason = `a row must be an object with its columns, got ${describe(row)}`;
    throw new ParquetError("PARQUET_BAD_VALUE", { ...place, reason });
  }
  const values = Object.entries(columns).map(([column, type]): [string, unknown] => {
    const value = (Object.hasOwn(row, column) ? row[column] : undefined) ?? null;
    if (value === null) return [column, null];
    if (type === "json") return [column, jsonOf(value, { ...place, column })];
    if (fits[type](value)) return [column, value];
    const reason = `${describe(value)} is no ${type}`;
    throw new ParquetError("PARQUET_BAD_VALUE", { ...place, column, reason });
  });
  return Object.fromEntries(values);
}

const fits: Readonly<Record<Exclude<ParquetColumn, "json">, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  double: (value) => typeof value === "number",
  int32: (value) => typeof value === "number" && Number.isInteger(value) && value === (value | 0),
  boolean: (value) => typeof value === "boolean",
  timestamp: (value) => value instanceof Date && !Number.isNaN(value.getTime()),
};

/**
 * Returns the value as a line of JSON would contain it; a value that JSON cannot carry is refused.
 */
function jsonOf(
  value: unknown,
  place: { readonly path: string; readonly row: number; readonly column: string },
): unknown {
  try {
    const line = encodeRecord(value, place.path, DEFAULT_MAX_LINE_BYTES);
    const shown: unknown = JSON.parse(line.toString());
    return shown;
  } catch (cause) {
    if (!(cause instanceof JsonlError)) throw cause;
    throw new ParquetError("PARQUET_BAD_VALUE", { ...place, reason: cause.reason, cause });
  }
}
