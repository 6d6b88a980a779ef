/** The flags of `rayling rewards`: their texts, defaults and checks. */
import { Option } from "commander";
import type { Command } from "commander";
import { formats } from "./formats.ts";
import type { Format } from "./formats.ts";

export interface RewardsReportOptions {
  readonly log: string;
  readonly format: Format;
  /** Where the page goes; undefined: there is none. */
  readonly html: string | undefined;
}

/** @param report does the work; it is loaded when the command is given */
export function addRewardsCommand(
  program: Command,
  report: (options: RewardsReportOptions) => Promise<void>,
): void {
  const rewards = program.command("rewards").summary("what a reward log says");
  rewards
    .command("report")
    .summary("counts, scores, failures, times and costs of a reward log")
    .description(
      "Reads a reward log (what `rayling score` writes). Of several lines for one sample the last valid one counts, else the last.",
    )
    .argument("<log>", "the file")
    .addOption(
      new Option("--format <format>", "how it is printed").choices(formats).default("table"),
    )
    .option("--html <path>", "writes a page with plots, too")
    .allowExcessArguments(false)
    .action(async (log: string, flags: { readonly format: Format; readonly html?: string }) => {
      await report({ log, format: flags.format, html: flags.html });
    });
}
