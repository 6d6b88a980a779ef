/**
 * Reads records from any supported data file: Parquet, JSON Lines, or one JSON array, the latter
 * two also under gzip. A name tells Parquet, and the first character tells an array. Owns the place
 * of each record, for people; must not know what records mean.
 *
 * It streams, except for an array, which is in memory as a whole.
 */
import { fileURLToPath } from "node:url";
import { JsonlError } from "../errors.ts";
import { hubFile, isHubPath } from "./hub.ts";
import { readJson } from "../jsonl/reader.ts";
import { readParquet } from "../parquet/reader.ts";
import { checkOptions } from "../shared/options.ts";
import type { OptionKinds } from "../shared/options.ts";

/** A record with its place in its source. */
export interface PlacedRecord {
  /** The record. */
  readonly value: unknown;
  /** 1-based, for JSON Lines. */
  readonly line?: number;
  /** 0-based, for Parquet and an array. */
  readonly row?: number;
}

/** Exceptions for reading records. */
export interface ReadRecordsOptions {
  /** Ends a wait for the file at once; the iterator rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether NaN, Infinity and -Infinity are read, which Python's json module writes. Default false.
   */
  readonly allowNan?: boolean | undefined;
}

const readOptions: OptionKinds<ReadRecordsOptions> = { signal: "other", allowNan: "boolean" };

/**
 * Throws JsonlError and ParquetError, also for an empty file, HubFileError for a file of the
 * Hugging Face Hub (`hf://datasets/OWNER/NAME/FILE`), and DataProtoError BAD_ARGUMENT for an
 * option. Leaving the loop early closes the file.
 */
export async function* readRecords(
  path: string | URL,
  options: ReadRecordsOptions = {},
): AsyncGenerator<PlacedRecord, void, undefined> {
  checkOptions("readRecords", options, readOptions);
  const { signal, allowNan = false } = options;
  const named = typeof path === "string" ? path : fileURLToPath(path);
  const file = isHubPath(named) ? await hubFile(named) : named;
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
