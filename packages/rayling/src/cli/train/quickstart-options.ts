/** The flags of `rayling quickstart`: their texts, defaults and checks. */
import { readdir } from "node:fs/promises";
import { type Command, Option } from "commander";
import { CliError } from "../cli-error.ts";
import { addDashboardFlag } from "../dashboard-flag.ts";
import { count } from "../flag-values.ts";
import { addFormatFlag } from "../output/formats.ts";
import type { QuickstartFlags } from "./quickstart-introduction.ts";
import { scheduleWords } from "./training-introduction.ts";

/** @param run does the work; it loads when the command runs */
export function addQuickstartCommand(
  program: Command,
  run: (flags: QuickstartFlags) => Promise<void>,
): void {
  const command = program.command("quickstart");
  addFormatFlag(addDashboardFlag(command, "on a terminal"))
    .summary("train a tiny policy, with and without waiting for its rewards")
    .description(
      "Teaches a tiny transformer to add, in less than 90 seconds: first by supervised warm-up, then by GRPO with a slow judge. The same start is trained step by step, and once more with the next batch generated while the judge is busy; a table says what that saves.",
    )
    .option(
      "--steps <count>",
      "steps of GRPO under each schedule (default: as many as fit the time, from 70 to 200)",
      count(1),
    )
    .option("--seed <number>", "seed of all random numbers", count(0), 1)
    .addOption(
      new Option(
        "--schedule <name...>",
        "schedules to compare (default: sync one-step-off-policy)",
      ).choices(Object.keys(scheduleWords)),
    )
    .option(
      "--latency <ms>",
      "of the judge's slowest answer (default: as slow, beside the policy's own work, as in the published runs)",
      count(0),
    )
    .option("--warm-steps <count>", "the most steps of supervised warm-up", count(1), 1500)
    .option(
      "--out <folder>",
      "where the pages and traces of the runs go (default: a folder of its own in runs/quickstart, where `latest` leads to the newest)",
    )
    .option("--verbose", "print all metrics of each step, as verl does")
    .allowExcessArguments(false)
    .action(async (flags: QuickstartFlags) => {
      mustDiffer(flags.schedule ?? []);
      if (flags.out !== undefined) await mustBeEmpty(flags.out);
      await run(flags);
    });
}

/** Both would write into one folder. Throws CliError 2. */
function mustDiffer(schedules: readonly string[]): void {
  const twice = schedules.find((name, at) => schedules.indexOf(name) !== at);
  if (twice === undefined) return;
  throw new CliError(2, `--schedule has ${twice} twice: each schedule is trained once.`);
}

/** Files would be written into it. Throws CliError 2. */
async function mustBeEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  if (names.length === 0) return;
  throw new CliError(2, `--out ${folder} is not empty: give another folder, or remove it.`);
}
