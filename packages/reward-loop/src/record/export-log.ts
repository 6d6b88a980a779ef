/**
 * A reward log as a table, for tools that read Parquet or CSV: one row for what counts of each
 * sample and its parts, in their order, in memory for one row group at a time.
 */

import { writeParquet } from "@rayling/data-proto";
import type { ParquetColumn } from "@rayling/data-proto";
import { checkKeys, notAnOption } from "../options/read.ts";
import { readRewardLog } from "./reward-log-file.ts";
import { countedRecords } from "./records-with-parts.ts";
import type { RewardRecord } from "./reward-record.ts";
import { writeTextTable } from "./text-table.ts";

/** Columns of the file: the log's fields, flat. `more` holds any other fields of a line. */
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

/** Formats of an exported reward log. */
export type ExportFormat = "parquet" | "csv" | "jsonl";

/** Format and lines of an exported reward log. */
export interface ExportLogOptions {
  /**
   * Default: what the file's name ends with, .csv and .jsonl with or without .gz behind it, else
   * Parquet. "jsonl": records as they stand in the log.
   */
  readonly format?: ExportFormat;
  /** Default: whether the file's name ends with .gz. Not of Parquet, whose pages are compressed. */
  readonly gzip?: boolean;
  /** The rows in one row group of a Parquet file. Default 10,000. */
  readonly rowsPerGroup?: number;
  /**
   * "counted": the line that counts for each sample, with its parts (default); "all": every line,
   * including superseded ones.
   */
  readonly lines?: "counted" | "all";
}

const optionNames = {
  format: true,
  gzip: true,
  rowsPerGroup: true,
  lines: true,
} as const satisfies Readonly<Record<keyof ExportLogOptions, true>>;

/** The format that a file's name says; Parquet where it says none. */
export function exportFormatOf(path: string): ExportFormat {
  const [, ending] = /\.(csv|jsonl)(?:\.gz)?$/i.exec(path.toLowerCase()) ?? [];
  return ending === "csv" || ending === "jsonl" ? ending : "parquet";
}

/**
 * Resolves to how many rows that are. Rejects with JsonlError, RewardLogError, and ParquetError:
 * then there is no new Parquet file, and others are not whole. Rejects with RewardLoopOptionError
 * for an option, before there is a file.
 */
export async function exportRewardLog(
  log: string,
  path: string,
  options: ExportLogOptions = {},
): Promise<number> {
  checkKeys("exportRewardLog", options, Object.keys(optionNames));
  const { rowsPerGroup = 10_000, lines = "counted", format = exportFormatOf(path) } = options;
  if (!["all", "counted"].includes(lines)) notAnOption("lines", "counted or all", lines);
  if (!["parquet", "csv", "jsonl"].includes(format))
    notAnOption("format", "parquet, csv or jsonl", format);
  const records = lines === "all" ? readRewardLog(log) : countedRecords(log, "counted");
  if (format === "parquet") return writeParquet(path, rowsOf(records), { columns, rowsPerGroup });
  const { gzip = path.endsWith(".gz") } = options;
  return format === "csv"
    ? writeTextTable(path, rowsOf(records), { columns: Object.keys(columns), gzip })
    : writeTextTable(path, plainOf(records), { columns: undefined, gzip });
}

async function* plainOf(
  records: AsyncIterable<RewardRecord>,
): AsyncGenerator<Readonly<Record<string, unknown>>> {
  for await (const record of records) yield { ...record };
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
