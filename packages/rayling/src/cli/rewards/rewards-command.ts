/**
 * `rayling rewards report`: a reward log as a table, as data and as a page with plots.
 */

import { writeFile } from "node:fs/promises";
import { JsonlError } from "@rayling/data-proto";
import { RewardLogError, rewardReport } from "@rayling/reward-loop";
import type { RewardReport } from "@rayling/reward-loop";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError, refusalOf } from "../cli-error.ts";
import { replaceFile } from "../output/existing-file.ts";
import { heading, print } from "../output/formats.ts";
import { plain } from "../output/output.ts";
import { figuresOf, partColumns, partsOf } from "./rewards-figures.ts";
import type { RewardsReportOptions } from "./rewards-options.ts";
import { rewardsPage } from "./rewards-report-page.ts";
import { isSameFile } from "../output/same-file.ts";
import { tableLines } from "../output/table.ts";

export async function runRewardsReport({ log, format, html }: RewardsReportOptions): Promise<void> {
  if (html !== undefined && (await isSameFile(log, html))) {
    throw new CliError(2, `--html ${html} is the log itself`);
  }
  const report = await reportOf(log);
  if (html !== undefined) {
    try {
      const page = rewardsPage(log, report);
      await replaceFile(html, "the page", (path) => writeFile(path, page));
    } catch (error) {
      throw new CliError(2, `--html: ${messageOf(error)}`, { cause: error });
    }
  }
  await print(report, format, () => linesOf(report));
}

async function reportOf(log: string): Promise<RewardReport> {
  try {
    return await rewardReport(log);
  } catch (error) {
    throw refusalOf(error, [JsonlError, RewardLogError]);
  }
}

function linesOf(report: RewardReport): string[] {
  const figures = figuresOf(report);
  const width = Math.max(...figures.map(([name]) => name.length));
  const versions = report.versions.map(({ version, samples, meanScore }) => ({
    version: plain(version),
    samples,
    meanScore: meanScore?.toFixed(4) ?? "-",
  }));
  return [
    ...figures.map(([name, value]) => `${plain(name).padEnd(width)}  ${plain(value)}`),
    ...(report.failures.length === 0
      ? []
      : [
          "",
          heading("failures"),
          ...tableLines(report.failures, ["count", "class", "code", "example"]),
        ]),
    ...(report.components.length === 0
      ? []
      : ["", heading("rewards"), ...tableLines(partsOf(report), partColumns)]),
    ...(versions.length < 2
      ? []
      : ["", heading("versions"), ...tableLines(versions, ["version", "samples", "meanScore"])]),
  ];
}
