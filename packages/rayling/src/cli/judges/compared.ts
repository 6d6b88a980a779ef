/**
 * Compares judges by their logs, with errors in the user's words.
 */

import { JsonlError } from "@rayling/data-proto";
import { judgesReport, RewardLogError, RewardLoopOptionError } from "@rayling/reward-loop";
import type { JudgeLog, JudgesReport, JudgesReportOptions } from "@rayling/reward-loop";
import { CliError, refusalOf } from "../cli-error.ts";

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
