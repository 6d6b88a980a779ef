/**
 * The texts of the flags of `rayling report`. The work loads on demand.
 */
import type { Command } from "commander";
import { refusalOf } from "../cli-error.ts";
import { plain, say } from "../output/output.ts";

interface ReportFlags {
  readonly title?: string;
  readonly out?: string;
  readonly trace?: string | true;
}

export function addReportCommand(program: Command): void {
  program
    .command("report")
    .summary("make the page of a training run, also of one that was killed or still goes on")
    .description(
      "Makes report.html of a training run from the files that its logger `file` has written: learning curves, phases of each step, reward latency, failures.",
    )
    .argument("<folder>", "of the run: rayling.directory, or --out of the quickstart")
    .option("--title <text>", "of the page (default: what the folder is called)")
    .option("--out <path>", "where the page goes (default: report.html in the folder)")
    .option("--trace [path]", "write a trace for Perfetto, too (default: trace.json in the folder)")
    .allowExcessArguments(false)
    .action(async (directory: string, { title, out, trace }: ReportFlags) => {
      const { TrackingError, writeReport, writeTrace } = await import("@rayling/trainer");
      try {
        const page = await writeReport({
          directory,
          ...(title === undefined ? {} : { title }),
          ...(out === undefined ? {} : { path: out }),
        });
        say(`report  ${plain(page)}\n`);
        if (trace === undefined) return;
        const path = await writeTrace({ directory, ...(trace === true ? {} : { path: trace }) });
        say(`trace   ${plain(path)}\n`);
      } catch (error) {
        throw refusalOf(error, [TrackingError]);
      }
    });
}
