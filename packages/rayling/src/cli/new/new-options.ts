/**
 * The texts of `rayling new`. The work loads when the command runs.
 */

import type { Command } from "commander";
import { addFormatFlag } from "../output/formats.ts";
import type { Format, FormatFlag } from "../output/formats.ts";

/** @param run does the work; it gets the folder of the project */
export function addNewCommand(
  program: Command,
  run: (folder: string, format: Format) => Promise<void>,
): void {
  const command = program
    .command("new")
    .summary("make a project: a reward function, a judge, an actor, tests, a configuration")
    .description(
      "Makes a folder with a project in TypeScript: a rule and a judge by the judge kit, samples, an actor, a program, tests, a configuration of rewards. Its name is that of the package.",
    )
    .argument("<name>", "the folder, which must be new or empty");
  addFormatFlag(command)
    .allowExcessArguments(false)
    .action((folder: string, { format }: FormatFlag) => run(folder, format));
}
