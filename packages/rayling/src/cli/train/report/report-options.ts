/**
 * The texts of the flags of `rayling report`. The work loads on demand.
 */
import type { Command } from "commander";
import { filePath } from "../../flag-values.ts";
import { addFormatFlag } from "../../output/formats.ts";
import type { ReportFlags } from "./report-command.ts";

export function addReportCommand(program: Command): void {
  const command = program
    .command("report")
    .summary("make the page of training runs, also of one that was killed or still goes on")
    .description(
      "Makes report.html from the files that the logger `file` of a training run has written, the page of the dashboard as one file: curves, phases of each step over its rewards in flight, reward latency, failures, answers of validations, command and settings. Several runs are compared.",
    )
    .argument(
      "<folder...>",
      "of runs, or in which runs lie: rayling.directory, or --out of the quickstart",
    )
    .option("--title <text>", "of the page (default: what the folder is called)")
    .option(
      "--out <path>",
      "where the page goes (default: report.html in the first folder)",
      filePath,
    )
    .option(
      "--trace [path]",
      "write a trace for Perfetto, too (default: trace.json in the folder of each run)",
    );
  addFormatFlag(command)
    .allowExcessArguments(false)
    .action(async (folders: string[], flags: ReportFlags) => {
      const { runReport } = await import("./report-command.ts");
      await runReport(folders, flags);
    });
}
