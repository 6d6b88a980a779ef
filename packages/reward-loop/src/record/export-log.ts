/** A reward log as a Parquet file, for tools that read tables: one row for what counts of each sample and its parts, in their order, in memory for one row group at a time. */

import { writeParquet } from "@rayling/data-proto";
import type { ParquetColumn } from "@rayling/data-proto";
import { readRewardLog } from "./reward-log.ts";
import { countedRecords } from "./recorded-wholes.ts";
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
  prompt: "string",
  response: "string",
  groundTruth: "string",
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
  const records = lines === "all" ? readRewardLog(log) : countedRecords(log, "counted");
  return writeParquet(path, rowsOf(records), { columns, rowsPerGroup });
}

async function* rowsOf(
  records: AsyncIterable<RewardRecord>,
): AsyncGenerator<Record<string, unknown>> {
  for await (const record of records) yield rowOf(record);
}

function rowOf(record: RewardRecord): Record<string, unknown> {
  const { at, error, usage, ...fields } = record;
  const more = Object.entries(fields).filter(([key]) => !Object.hasOwn(columns, key));
  return {
    ...fields,
    prompt: textOf(fields.prompt),
    response: textOf(fields.response),
    groundTruth: textOf(fields.groundTruth),
    at: new Date(at),
    error,
    errorCode: error?.code,
    errorMessage: error?.message,
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    more: more.length === 0 ? null : Object.fromEntries(more),
  };
}

/** Conversations, token ids and truths that are no texts are JSON. */
function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}
