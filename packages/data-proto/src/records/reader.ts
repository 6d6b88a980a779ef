/**
 * Records out of whatever file data come in: Parquet, JSON Lines, or one JSON array, the latter
 * two packed by gzip, too. Parquet is told by its name, an array by its first character. Owns the
 * place of each record, for people; must not know what records mean.
 *
 * A stream like its parts, but for an array, which is in memory as a whole.
 */
import { fileURLToPath } from "node:url";
import { JsonlError } from "../errors.ts";
import { readJson } from "../jsonl/reader.ts";
import { readParquet } from "../parquet/reader.ts";

export interface PlacedRecord {
  readonly value: unknown;
  /** 1-based, for JSON Lines. */
  readonly line?: number;
  /** 0-based, for Parquet and an array. */
  readonly row?: number;
}

export interface ReadRecordsOptions {
  /** Ends a wait for the file at once; the iterator rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** NaN, Infinity and -Infinity are read, which Python's json module writes; default false. */
  readonly allowNan?: boolean | undefined;
}

/**
 * Throws JsonlError and ParquetError, also for an empty file. Leaving the loop early closes the
 * file.
 */
export async function* readRecords(
  path: string | URL,
  { signal, allowNan = false }: ReadRecordsOptions = {},
): AsyncGenerator<PlacedRecord, void, undefined> {
  const file = typeof path === "string" ? path : fileURLToPath(path);
  const waiting = signal === undefined ? {} : { signal };
  if (/\.parquet$/i.test(file)) {
    yield* readParquet(file, waiting);
    return;
  }
  let isEmpty = true;
  for await (const record of readJson(file, { ...waiting, allowNan })) {
    isEmpty = false;
    yield record;
  }
  if (isEmpty) throw new JsonlError("JSONL_MALFORMED", { path: file, reason: "it is empty" });
}
