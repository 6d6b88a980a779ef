/**
 * Rows as CSV (RFC 4180, with a header, lines ended by LF) or as JSON Lines, with gzip where the
 * file's name ends so; in memory for some rows at a time.
 */

import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { JsonlError } from "@rayling/data-proto";
import { codeOf, fieldOf, messageOf } from "@rayling/reward-manager-registry/values";

type Row = Readonly<Record<string, unknown>>;

export interface TextTableOptions {
  /** Columns of CSV, in order; undefined: JSON Lines, each row as it is. */
  readonly columns: readonly string[] | undefined;
  readonly gzip: boolean;
}

/**
 * Resolves to how many rows it wrote. Rejects with JsonlError (JSONL_NOT_FOUND: no such folder,
 * JSONL_IO), and with what `rows` throws.
 */
export async function writeTextTable(
  path: string,
  rows: AsyncIterable<Row>,
  { columns, gzip }: TextTableOptions,
): Promise<number> {
  let written = 0;
  async function* lines(): AsyncGenerator<string> {
    if (columns !== undefined) yield `${columns.map(cellOf).join(",")}\n`;
    for await (const row of rows) {
      written += 1;
      yield columns === undefined
        ? `${JSON.stringify(row)}\n`
        : `${columns.map((column) => cellOf(row[column])).join(",")}\n`;
    }
  }
  const file = createWriteStream(path);
  try {
    if (gzip) await pipeline(Readable.from(lines()), createGzip(), file);
    else await pipeline(Readable.from(lines()), file);
    return written;
  } catch (cause) {
    if (fieldOf(cause, "syscall") === undefined) throw cause;
    const isMissing = codeOf(cause) === "ENOENT";
    const reason = messageOf(cause);
    throw new JsonlError(isMissing ? "JSONL_NOT_FOUND" : "JSONL_IO", { path, reason, cause });
  }
}

/** Returns "" without a value; an empty text stands between quotes. */
function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = textOf(value);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Date) return value.toISOString();
  return JSON.stringify(value) ?? "";
}
