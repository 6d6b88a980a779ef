/** `rayling rewards export`: a reward log as a table for other programs. */

import { extname } from "node:path";
import { JsonlError, ParquetError } from "@rayling/data-proto";
import { exportFormatOf, exportRewardLog, RewardLogError } from "@rayling/reward-loop";
import type { ExportFormat } from "@rayling/reward-loop";
import { CliError, refusalOf } from "../cli-error.ts";
import { replaceFile } from "../output/existing-file.ts";
import { grouped } from "../output/numbers.ts";
import { print } from "../output/formats.ts";
import { plain } from "../output/output.ts";
import type { RewardsExportOptions } from "./rewards-options.ts";
import { isSameFile } from "../output/same-file.ts";

export async function runRewardsExport(options: RewardsExportOptions): Promise<void> {
  const { log, isAll, format } = options;
  const ending = options.as === "jsonl" ? "counted.jsonl" : (options.as ?? "parquet");
  const { out = `${log.replace(/\.jsonl(\.gz)?$/, "")}.${ending}` } = options;
  const { as = formatOf(out) } = options;
  if (as === "parquet" && out.endsWith(".gz")) {
    throw new CliError(2, `--out ${out}: Parquet is compressed by itself; leave .gz out.`);
  }
  if (await isSameFile(log, out)) throw new CliError(2, `--out ${out} is the log itself`);
  try {
    const rows = await replaceFile(out, "the table", (path) =>
      exportRewardLog(log, path, {
        format: as,
        gzip: out.endsWith(".gz"),
        lines: isAll ? "all" : "counted",
      }),
    );
    await print({ rows, out, as }, format, () => [
      `wrote ${grouped(rows)} rows to ${plain(out)} (${names[as]})`,
    ]);
  } catch (error) {
    throw refusalOf(error, [JsonlError, ParquetError, RewardLogError]);
  }
}

const names: Readonly<Record<ExportFormat, string>> = {
  parquet: "Parquet",
  csv: "CSV",
  jsonl: "JSON Lines",
};

/** Throws CliError 2 for an ending of something else, whose reader would find Parquet. */
function formatOf(out: string): ExportFormat {
  const ending = extname(out.replace(/\.gz$/i, "")).toLowerCase();
  if (["", ".parquet", ".csv", ".jsonl"].includes(ending)) return exportFormatOf(out);
  throw new CliError(
    2,
    `--out ${out}: ${ending} names no form of a table: end it with .parquet, .csv or .jsonl, or say --as parquet, csv or jsonl.`,
  );
}
