/** A reward log as a Parquet file, for tools that read tables: one row for each line, in their order, in memory for one row group at a time. */

import { writeParquet } from "@rayling/data-proto";
import type { ParquetColumn } from "@rayling/data-proto";
import { readRewardLog } from "./reward-log.ts";
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

/** Resolves to how many rows that are. Rejects with JsonlError, RewardLogError, and ParquetError: then there is no new file. */
export async function exportRewardLog(
  log: string,
  path: string,
  { rowsPerGroup = 10_000 }: { readonly rowsPerGroup?: number } = {},
): Promise<number> {
  return writeParquet(path, rowsOf(log), { columns, rowsPerGroup });
}

async function* rowsOf(log: string): AsyncGenerator<Record<string, unknown>> {
  for await (const record of readRewardLog(log)) yield rowOf(record);
}

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
