/** `rayling rewards export`: a reward log as a table for other programs. */

import { JsonlError, ParquetError } from "@rayling/data-proto";
import { exportFormatOf, exportRewardLog, RewardLogError } from "@rayling/reward-loop";
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
  const { as = exportFormatOf(out) } = options;
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
    await print({ rows, out, as }, format, () => [`wrote ${grouped(rows)} rows to ${plain(out)}`]);
  } catch (error) {
    throw refusalOf(error, [JsonlError, ParquetError, RewardLogError]);
  }
}
