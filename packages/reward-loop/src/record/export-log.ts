/** A reward log as a Parquet file, for tools that read tables: one row for what counts of each sample and its parts, in their order, in memory for one row group at a time. */

import { writeParquet } from "@rayling/data-proto";
import type { ParquetColumn } from "@rayling/data-proto";
import { readRewardLog } from "./reward-log.ts";
import { takesPlaceOf } from "./reward-record.ts";
import { wholesOf } from "./recorded-wholes.ts";
import type { RecordedWhole } from "./recorded-wholes.ts";
import type { RewardRecord } from "./reward-record.ts";

/** Of the file: the names of the log's fields, flat. What else its lines have is in `more`. */
const columns = {
  index: "int32",
  component: "string",
  sample: "string",
  group: "string",
  version: "string",
  at: "timestamp",
  lane: "string",
  valid: "boolean",
  score: "double",
  errorClass: "string",
  errorCode: "string",
  errorMessage: "string",
  error: "json",
  attempts: "int32",
  waitedMs: "double",
  latencyMs: "double",
  cost: "double",
  cached: "boolean",
  answeredBy: "string",
  inputTokens: "double",
  outputTokens: "double",
  extra: "json",
  more: "json",
} as const satisfies Record<string, ParquetColumn>;

export interface ExportLogOptions {
  readonly rowsPerGroup?: number;
  /** "counted": what counts of each sample, with its parts (default); "all": every line, also those that others took the place of. */
  readonly lines?: "counted" | "all";
}

/** Resolves to how many rows that are. Rejects with JsonlError, RewardLogError, and ParquetError: then there is no new file. */
export async function exportRewardLog(
  log: string,
  path: string,
  { rowsPerGroup = 10_000, lines = "counted" }: ExportLogOptions = {},
): Promise<number> {
  const counted = lines === "all" ? undefined : await countedPlaces(log);
  return writeParquet(path, rowsOf(log, counted), { columns, rowsPerGroup });
}

async function* rowsOf(
  log: string,
  counted: ReadonlySet<number> | undefined,
): AsyncGenerator<Record<string, unknown>> {
  let place = -1;
  for await (const record of readRewardLog(log)) {
    place += 1;
    if (counted?.has(place) !== false) yield rowOf(record);
  }
}

/** Where the lines stand that count, without what they say. */
async function countedPlaces(log: string): Promise<ReadonlySet<number>> {
  const byIndex = new Map<number, Pick<RecordedWhole, "places"> & { readonly record: Counted }>();
  for await (const { record, places } of wholesOf(log)) {
    const { index, valid, sample } = record;
    if (takesPlaceOf(record, byIndex.get(index)?.record)) {
      byIndex.set(index, { places, record: { valid, sample } });
    }
  }
  return new Set([...byIndex.values()].flatMap(({ places }) => places));
}

type Counted = Pick<RewardRecord, "valid" | "sample">;

function rowOf(record: RewardRecord): Record<string, unknown> {
  const { at, error, usage, ...fields } = record;
  const more = Object.entries(fields).filter(([key]) => !Object.hasOwn(columns, key));
  return {
    ...fields,
    at: new Date(at),
    error,
    errorCode: error?.code,
    errorMessage: error?.message,
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    more: more.length === 0 ? null : Object.fromEntries(more),
  };
}
