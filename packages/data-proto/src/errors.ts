/**
 * Every error of this package. Callers tell errors apart by `code`, never by message text.
 *
 * DataProtoError: a batch, tensor or argument does not fit an operation; `key`, `expected` and
 * `actual` are set where they exist. JsonlError: a JSONL file or record failed; it has `path`, and
 * `line` (1-based) when one line is the cause. ParquetError: a Parquet file failed; it has `path`,
 * and `row` (0-based) and `column` when they are known. Knows nothing of tensors, batches or files:
 * all of them import this file.
 */

export type DataProtoErrorCode =
  /** Columns of one batch, or two batches, have different numbers of rows. */
  | "BATCH_SIZE_MISMATCH"
  | "KEY_NOT_FOUND"
  /** Two values under one key must be equal and are not. */
  | "CONFLICT"
  /** An index, mask, slice or permutation does not fit the rows. */
  | "BAD_INDEX"
  /** Rows or columns do not divide into the requested parts. */
  | "UNEQUAL_CHUNK"
  | "BAD_SHAPE"
  | "BAD_DTYPE"
  /** A value is of the wrong kind, or outside the range of its dtype. */
  | "BAD_VALUE"
  | "BAD_ARGUMENT";

/** Details of a DataProtoError. */
export interface DataProtoErrorFields {
  /** The column, key or argument that does not fit. */
  readonly key?: string;
  /** The value, shape, dtype or count that was expected. */
  readonly expected?: unknown;
  /** The value, shape, dtype or count that was found. */
  readonly actual?: unknown;
  /** The error underneath. */
  readonly cause?: unknown;
}

/** A batch, tensor or argument that does not fit the operation. */
export class DataProtoError extends Error {
  override readonly name = "DataProtoError";
  /** The kind of the problem: compare this, not the message. */
  readonly code: DataProtoErrorCode;
  /** The column, key or argument that does not fit; undefined if there is none. */
  readonly key: string | undefined;
  /** The value, shape, dtype or count that was expected, if known. */
  readonly expected: unknown;
  /** The value, shape, dtype or count that was found, if known. */
  readonly actual: unknown;

  constructor(code: DataProtoErrorCode, message: string, fields: DataProtoErrorFields = {}) {
    super(message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.code = code;
    this.key = fields.key;
    this.expected = fields.expected;
    this.actual = fields.actual;
  }
}

/** Kinds of failure of a JSON Lines file or record. */
export type JsonlErrorCode =
  /** The file, or the folder of a file to be written, does not exist. */
  | "JSONL_NOT_FOUND"
  /**
   * A line is not UTF-8 or not JSON, or the file is something else (gzip under another name,
   * UTF-16, Parquet).
   */
  | "JSONL_MALFORMED"
  | "JSONL_LINE_TOO_LONG"
  /** A record contains a value that JSON would change. */
  | "JSONL_BAD_VALUE"
  /** A write after close. */
  | "JSONL_CLOSED"
  /**
   * Another program removed, replaced, truncated or wrote the file while it was being written:
   * records are gone.
   */
  | "JSONL_CHANGED"
  /**
   * Any other failure of the file system: disk full, permission, a folder in place of a file. The
   * cause has its `code`.
   */
  | "JSONL_IO";

/** Details of a JsonlError. */
export interface JsonlErrorFields {
  /** The path of the file. */
  readonly path: string;
  /** The message without the place. */
  readonly reason: string;
  /** The line that is the cause, 1-based, blank lines counted. */
  readonly line?: number;
  /** Whether the line is the last one and has no newline. Default false. */
  readonly unterminated?: boolean;
  /** The error underneath. */
  readonly cause?: unknown;
}

/** A JSON Lines file or record that cannot be read or written. */
export class JsonlError extends Error {
  override readonly name = "JsonlError";
  /** The kind of the failure: compare this, not the message. */
  readonly code: JsonlErrorCode;
  /** The path of the file. */
  readonly path: string;
  /** The message without the place. */
  readonly reason: string;
  /** 1-based, blank lines counted; undefined when no line is the cause. */
  readonly line: number | undefined;
  /** Whether the line is the last one and has no newline, as a killed writer leaves it. */
  readonly unterminated: boolean;

  constructor(code: JsonlErrorCode, fields: JsonlErrorFields) {
    const where = fields.line === undefined ? fields.path : `${fields.path}:${fields.line}`;
    super(
      `${where}: ${fields.reason}`,
      fields.cause === undefined ? undefined : { cause: fields.cause },
    );
    this.code = code;
    this.path = fields.path;
    this.reason = fields.reason;
    this.line = fields.line;
    this.unterminated = fields.unterminated ?? false;
  }
}

/** Kinds of failure of a Parquet file. */
export type ParquetErrorCode =
  /** The file, or the folder of a file to be written, does not exist. */
  | "PARQUET_NOT_FOUND"
  /**
   * It is no Parquet file, it is truncated, or it uses an unsupported feature (LZO, encryption,
   * BSON).
   */
  | "PARQUET_MALFORMED"
  /** A requested column does not exist. */
  | "PARQUET_NO_COLUMN"
  /** A column is to be written with a type that there is not. */
  | "PARQUET_BAD_TYPE"
  /** A value that does not fit its column. */
  | "PARQUET_BAD_VALUE"
  /** Any other failure of the file system. The cause has its `code`. */
  | "PARQUET_IO";

/** Details of a ParquetError. */
export interface ParquetErrorFields {
  /** The path of the file. */
  readonly path: string;
  /** The message without the place. */
  readonly reason: string;
  /** The row that is the cause, 0-based. */
  readonly row?: number;
  /** The column that is the cause. */
  readonly column?: string;
  /** The error underneath. */
  readonly cause?: unknown;
}

/** A Parquet file that cannot be read or written. */
export class ParquetError extends Error {
  override readonly name = "ParquetError";
  /** The kind of the failure: compare this, not the message. */
  readonly code: ParquetErrorCode;
  /** The path of the file. */
  readonly path: string;
  /** The message without the place. */
  readonly reason: string;
  /** 0-based; undefined when no row is the cause. */
  readonly row: number | undefined;
  /** The column that is the cause; undefined when no column is. */
  readonly column: string | undefined;

  constructor(code: ParquetErrorCode, { path, reason, row, column, cause }: ParquetErrorFields) {
    const place = [
      ...(row === undefined ? [] : [`row ${row}`]),
      ...(column === undefined ? [] : [column]),
    ];
    super(`${[path, ...place].join(", ")}: ${reason}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.path = path;
    this.reason = reason;
    this.row = row;
    this.column = column;
  }
}

/** Describes a value for an error message: short, whatever the value is. */
export function describe(value: unknown): string {
  if (typeof value === "string")
    return value.length > 60 ? `a string of ${value.length} characters` : JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return `an array of length ${value.length}`;
  if (typeof value !== "object" || value === null) return String(value);
  const kind: unknown = value.constructor?.name;
  const name = typeof kind === "string" && kind !== "" ? kind : "object";
  return ArrayBuffer.isView(value) && "length" in value
    ? `${name}(${String(value.length)})`
    : `an instance of ${name}`;
}

/** Throws unless `value` is an integer of at least `least`. */
export function requireInteger(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  const message = `${name} must be an integer of at least ${least}, got ${describe(value)}`;
  throw new DataProtoError("BAD_ARGUMENT", message, { key: name, expected: least, actual: value });
}

/** A file of the Hugging Face Hub cannot be brought: `path` is its name, `hf://...`. */
export class HubFileError extends Error {
  override readonly name = "HubFileError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "HUB_FILE";
  /** The name of the file or folder. */
  readonly path: string;
  /** The reason, without the path. */
  readonly reason: string;

  constructor(path: string, reason: string, cause?: unknown) {
    super(`${path}: ${reason}`, cause === undefined ? undefined : { cause });
    this.path = path;
    this.reason = reason;
  }
}
