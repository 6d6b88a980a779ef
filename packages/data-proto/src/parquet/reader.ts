/**
 * Reads Parquet as a stream of rows: one row group is in memory at a time, with only the requested
 * columns. Owns the conversion of values: they become what a line of JSON would contain, with
 * nested lists and structs as arrays and objects.
 *
 * A missing value is null, also inside structs. An int64 is a number if one can hold it, else a
 * bigint; a decimal may be a text, too (decimals.ts): nothing is rounded.
 *
 * Bytes are a Uint8Array, times a Date, and maps an object. Snappy, gzip, brotli, zstd and LZ4 are
 * supported. Must not know what the columns mean.
 */
import { fileURLToPath } from "node:url";
import zlib, { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { Compressors, FileMetaData, SchemaTree } from "hyparquet";
import { ParquetError, requireInteger } from "../errors.ts";
import { decimalReader, hideDecimals } from "./decimals.ts";
import type { Decimals } from "./decimals.ts";
import { openParquet } from "./file.ts";
import type { ParquetFile } from "./file.ts";
import { parsers } from "./parsers.ts";
import { hidden, hideNames, shown, shownKeys } from "./proto-key.ts";
import { rowGroupSource } from "./row-group.ts";
import { reasonOf } from "../shared/file-problem.ts";
import { checkOptions } from "../shared/options.ts";
import type { OptionKinds } from "../shared/options.ts";

/** One row of a Parquet file, with its number. */
export interface ParquetRecord {
  /** 0-based. */
  readonly row: number;
  /** Values of the row by column. */
  readonly value: Readonly<Record<string, unknown>>;
}

/** Description of a Parquet file, without its rows. */
export interface ParquetInfo {
  /** The number of rows. */
  readonly rows: number;
  /** The top-level columns, in order. */
  readonly columns: readonly string[];
  /** The rows of each row group; one group is in memory at a time. */
  readonly rowGroups: readonly number[];
}

/** The part of a Parquet file that is read. */
export interface ReadParquetOptions {
  /** The top-level columns to read; default all. Other columns cost nothing. */
  readonly columns?: readonly string[];
  /** The first row, 0-based; default 0. */
  readonly rowStart?: number;
  /** The row behind the last one; default the end. */
  readonly rowEnd?: number;
  /** Checked between rows; the iterator rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

const readOptions: OptionKinds<ReadParquetOptions> = {
  columns: "list",
  rowStart: "other",
  rowEnd: "other",
  signal: "other",
};

/** Reads what a file contains, from its footer alone. Rejects as readParquet. */
export async function parquetInfo(path: string | URL): Promise<ParquetInfo> {
  const file = await openParquet(textOf(path));
  try {
    const { metadata } = await footerOf(file);
    return await infoOf(file, metadata);
  } finally {
    await file.close();
  }
}

/**
 * Throws ParquetError: PARQUET_NOT_FOUND, PARQUET_IO, PARQUET_MALFORMED, PARQUET_NO_COLUMN; and
 * DataProtoError BAD_ARGUMENT for an option. Leaving the loop early closes the file.
 */
export async function* readParquet(
  path: string | URL,
  options: ReadParquetOptions = {},
): AsyncGenerator<ParquetRecord, void, undefined> {
  checkOptions("readParquet", options, readOptions);
  const { columns, rowStart = 0, rowEnd = Number.MAX_SAFE_INTEGER, signal } = options;
  requireInteger("rowStart", rowStart, 0);
  requireInteger("rowEnd", rowEnd, rowStart);
  signal?.throwIfAborted();
  const file = await openParquet(textOf(path));
  try {
    const { metadata, decimals } = await footerOf(file);
    const { columns: known, rowGroups } = await infoOf(file, metadata);
    const missing = columns?.find((column) => !known.includes(column));
    if (missing !== undefined) {
      const reason = `there is no such column; there are ${known.join(", ")}`;
      throw new ParquetError("PARQUET_NO_COLUMN", { path: file.path, column: missing, reason });
    }
    const { parquetSchema } = await import("hyparquet");
    const schema = parquetSchema(metadata);
    const putDecimals = decimalReader(schema, decimals);
    let groupStart = 0;
    for (const [group, rows] of rowGroups.entries()) {
      const start = groupStart;
      groupStart += rows;
      const from = Math.max(rowStart - start, 0);
      const to = Math.min(rowEnd - start, rows);
      if (from >= to) continue;
      signal?.throwIfAborted();
      const range = { group, columns: columns?.map(hidden), rowStart: from, rowEnd: to };
      const values = await readRows(file, { metadata, schema }, range);
      for (const [offset, value] of values.entries()) {
        putDecimals?.(value);
        yield { row: start + from + offset, value: plainOf(value) as ParquetRecord["value"] };
        signal?.throwIfAborted();
      }
    }
  } finally {
    await file.close();
  }
}

/** Rows of a row group from one to before another, with some of their columns or all. */
interface RowRange {
  readonly group: number;
  readonly columns: readonly string[] | undefined;
  readonly rowStart: number;
  readonly rowEnd: number;
}

async function readRows(
  file: ParquetFile,
  footer: { readonly metadata: FileMetaData; readonly schema: SchemaTree },
  { group, columns, rowStart, rowEnd }: RowRange,
): Promise<Record<string, unknown>[]> {
  const { parquetReadObjects } = await import("hyparquet");
  const source = await rowGroupSource(file, footer, { group, columns });
  const rows = await ofFormat(
    file.path,
    parquetReadObjects({
      ...source,
      rowStart,
      rowEnd,
      compressors: await compressorsFor(source.metadata),
      parsers,
      // Bytes count as a text only if the file says so.
      utf8: false,
      geoparquet: false,
      ...(columns === undefined ? {} : { columns: [...columns] }),
    }),
  );
  if (rows.length === rowEnd - rowStart) return rows;
  const reason = `the rows ${rowStart} to ${rowEnd} of its row group ${group} are incomplete`;
  throw new ParquetError("PARQUET_MALFORMED", { path: file.path, reason });
}

/** The content of a footer, prepared for the library. */
interface Footer {
  readonly metadata: FileMetaData;
  readonly decimals: Decimals;
}

async function footerOf({ path, bytes }: ParquetFile): Promise<Footer> {
  const { parquetMetadataAsync } = await import("hyparquet");
  const metadata = hideNames(await ofFormat(path, parquetMetadataAsync(bytes)));
  return { metadata, decimals: hideDecimals(metadata) };
}

async function infoOf({ path }: ParquetFile, metadata: FileMetaData): Promise<ParquetInfo> {
  const { parquetSchema } = await import("hyparquet");
  const schema = await ofFormat(
    path,
    // The library's errors for a malformed footer concern the file, too.
    Promise.resolve().then(() => parquetSchema(metadata)),
  );
  return {
    rows: Number(metadata.num_rows),
    columns: schema.children.map(({ element }) => shown(element.name)),
    rowGroups: metadata.row_groups.map(({ num_rows: rows }) => Number(rows)),
  };
}

/** Turns errors of the library into errors that name the file. */
async function ofFormat<Value>(path: string, work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof ParquetError) throw cause;
    const reason = reasonOf(cause);
    throw new ParquetError("PARQUET_MALFORMED", { path, reason, cause });
  }
}

type Decompress = NonNullable<Compressors[keyof Compressors]>;

/**
 * A page or dictionary without values may be compressed to nothing, or to what the codec refuses:
 * columns of nulls or of empty lists alone have such.
 */
function orEmpty(decompress: Decompress): Decompress {
  return (input, length) => (length === 0 ? new Uint8Array(0) : decompress(input, length));
}

/** Codecs of Node; the library has snappy itself. */
const compressors: Compressors = {
  GZIP: orEmpty((input) => gunzipSync(input)),
  BROTLI: orEmpty((input) => brotliDecompressSync(input)),
  ZSTD: orEmpty((input) => zlib.zstdDecompressSync(input)),
};

/** LZ4, with and without Hadoop's frames, loads for files that need it. */
async function compressorsFor(metadata: FileMetaData): Promise<Compressors> {
  const codecs = metadata.row_groups.flatMap(({ columns }) =>
    columns.map(({ meta_data: column }) => column?.codec),
  );
  if (!codecs.some((codec) => codec === "LZ4" || codec === "LZ4_RAW")) return compressors;
  const { decompressLz4, decompressLz4Raw } = await import("hyparquet-compressors");
  return { ...compressors, LZ4: orEmpty(decompressLz4), LZ4_RAW: orEmpty(decompressLz4Raw) };
}

/** Converts in place when possible; nobody else uses the rows. */
function plainOf(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "string") return shown(value);
  if (typeof value === "bigint") return numberOf(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (const [index, part] of value.entries()) value[index] = plainOf(part);
    return value;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const parts = shownKeys(value as Record<string, unknown>);
  for (const key of Object.keys(parts)) parts[key] = plainOf(parts[key]);
  return parts;
}

function numberOf(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function textOf(path: string | URL): string {
  return typeof path === "string" ? path : fileURLToPath(path);
}
