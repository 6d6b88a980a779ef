/**
 * The flags of `rayling run`: their texts and checks. The command itself loads when it runs.
 */
import { existsSync, statSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { addOnRayFlag } from "../on-ray-flag.ts";
import type { RunOptions } from "./run-command.ts";

/** @param run does the work; it loads when the command runs */
export function addRunCommand(program: Command, run: (options: RunOptions) => Promise<void>): void {
  const command = program
    .command("run")
    .summary("run a script on other machines: a Ray cluster, or the nodes of its init")
    .description(
      "Runs a script with this Node and with RAYLING_NODES or RAYLING_ON_RAY, which its init reads. Signals go to the script, and its exit code is that of this command.",
    )
    .argument("<script>", "the script", existing)
    .argument("[args...]", "its arguments; -- before those that begin with -")
    .addOption(
      new Option(
        "--nodes <addresses>",
        "agents by commas, each as it prints its address; may be repeated",
      )
        .argParser(addresses)
        .default([], "RAYLING_NODES"),
    );
  addOnRayFlag(command, "runs it on")
    .option(
      "--tls <folder>",
      "with ca.pem, cert.pem and key.pem, as rayling cert makes it (default: RAYLING_TLS, or ~/.rayling/tls)",
    )
    .option(
      "--working-dir [folder]",
      "brings the code to machines that do not have it: what the script's modules reach, or all of a folder, too (default: RAYLING_WORKING_DIR)",
      folder,
    )
    .addHelpText("after", help)
    .action(
      async (
        script: string,
        args: readonly string[],
        flags: Pick<RunOptions, "nodes" | "tls" | "workingDir" | "onRay">,
      ) => run({ script, args, ...flags }),
    );
}

function existing(path: string): string {
  if (!existsSync(path)) throw new InvalidArgumentError("There is no such file.");
  return path;
}

function folder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path;
  throw new InvalidArgumentError("There is no such folder.");
}

function addresses(text: string, others: readonly string[]): readonly string[] {
  return [...others, ...text.split(",").map((one) => one.trim())];
}

const help = `
A token on the command line can be seen by others on this machine: RAYLING_NODES in the environment cannot.

Example:
  rayling run train.ts --on-ray http://head:8265
  rayling run train.ts --nodes rayling://TOKEN@127.0.0.1:6399 --working-dir . -- --epochs 3`;
