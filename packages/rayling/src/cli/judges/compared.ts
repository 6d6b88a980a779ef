/**
 * Compares judges by their logs, and prints that.
 */

import { JsonlError } from "@rayling/data-proto";
import { judgesReport, RewardLogError, RewardLoopOptionError } from "@rayling/reward-loop";
import type { JudgeLog, JudgesReport, JudgesReportOptions } from "@rayling/reward-loop";
import { CliError, refusalOf } from "../cli-error.ts";
import { sayStyled } from "../output/output.ts";
import { judgesLines } from "./judges-text.ts";

/** Rejects with CliError 2 for a file that is no log, and for a field of `--by` that none has. */
export async function comparisonOf(
  logs: readonly JudgeLog[],
  options: JudgesReportOptions,
): Promise<JudgesReport> {
  try {
    return await judgesReport(logs, options);
  } catch (error) {
    if (error instanceof RewardLoopOptionError) {
      throw new CliError(2, `--by ${error.value}: no record of the logs has that field`, {
        cause: error,
      });
    }
    throw refusalOf(error, [JsonlError, RewardLogError]);
  }
}

export async function sayComparison(
  logs: readonly JudgeLog[],
  options: JudgesReportOptions,
): Promise<void> {
  const report = await comparisonOf(logs, options);
  const lines = judgesLines(
    report,
    logs.map(({ path }) => path),
  );
  sayStyled(`\n${lines.join("\n")}\n`);
}
