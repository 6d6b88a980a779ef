/**
 * The rows of data files, one after the other, each with its place: JSON Lines, a JSON array, both
 * also with gzip, and Parquet. The name of a file tells its format. A row that cannot be read is a
 * DatasetError with the file, the line or row, and the reason.
 */

import { homedir } from "node:os";
import { join } from "node:path";
import { HubFileError, JsonlError, ParquetError, readRecords } from "@rayling/data-proto";
import { DatasetError } from "../errors.ts";
import type { RowPlace } from "../errors.ts";

export interface PlacedRow {
  readonly value: unknown;
  readonly place: RowPlace;
}

export interface RowFilesOptions {
  /** Whether NaN, Infinity and -Infinity are read, which Python writes. Default false. */
  readonly allowNan?: boolean;
}

type Rows = AsyncGenerator<PlacedRow, void, undefined>;

/** Throws DatasetError. A path may begin with ~/. */
export async function* readRowFiles(
  files: readonly string[],
  { allowNan = false }: RowFilesOptions = {},
): Rows {
  if (files.length === 0) throw new DatasetError("there are no data files", {});
  for (const file of files) yield* readRowFile(file, allowNan);
}

const formats = /\.(?:parquet|jsonl?(?:\.gz)?)$/i;

async function* readRowFile(file: string, allowNan: boolean): Rows {
  const path = file.startsWith("~/") ? join(homedir(), file.slice(2)) : file;
  if (!formats.test(path)) {
    const known = ".parquet, .jsonl, .json, .jsonl.gz or .json.gz";
    throw new DatasetError(`its format is told by its name, which must end in ${known}`, { path });
  }
  try {
    for await (const { value, line, row } of readRecords(path, { allowNan })) {
      yield { value, place: given({ path, line, row }) };
    }
  } catch (cause) {
    if (cause instanceof JsonlError) {
      throw new DatasetError(cause.reason, given({ path, line: cause.line }), { cause });
    }
    if (cause instanceof ParquetError) {
      throw new DatasetError(cause.reason, given({ path, row: cause.row }), { cause });
    }
    if (cause instanceof HubFileError) throw new DatasetError(cause.reason, { path }, { cause });
    throw cause;
  }
}

function given(place: {
  path: string;
  line?: number | undefined;
  row?: number | undefined;
}): RowPlace {
  return Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined));
}
