#!/usr/bin/env node
/**
 * The command line: `rayling score`, `rayling train`, `rayling report`, `rayling data`, `rayling rewards`, `rayling node`, `rayling cert`, `rayling run`, and the commands that speak to a running driver. Reads arguments, runs the command, and turns how it ended into one line and an exit code:
 * 0 done (also with invalid samples, they are counted), 1 the run failed, 2 the input was wrong, 130 stopped by Ctrl-C.
 * The process ends by itself when nothing is left to do, and after a signal when it has told so.
 */

import { Command, CommanderError } from "commander";
import { addCertCommand } from "./cert-options.ts";
import { CliError } from "./cli-error.ts";
import { addDataCommand } from "./data-options.ts";
import { addDriverCommands } from "./driver-commands.ts";
import { addNodeCommand } from "./node-options.ts";
import { addQuickstartCommand } from "./quickstart-options.ts";
import { addRunCommand } from "./run-options.ts";
import { addReportCommand } from "./report-options.ts";
import { addRewardsCommand } from "./rewards-options.ts";
import { addScoreCommand } from "./score-options.ts";
import { addTrainCommand } from "./train-options.ts";

/** How long a process that a signal has stopped may take to end by itself. */
const LINGER_MS = 500;

/** Of the package, beside src and dist alike. */
const manifest = new URL("../../package.json", import.meta.url);

async function main(): Promise<void> {
  const program = new Command("rayling")
    .description(
      "A small Ray for Node: scores model solutions with a reward loop of many workers, trains policies on rewards, makes machines nodes of a driver, and shows what a running driver does.",
    )
    .version(await versionOf(manifest))
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(oneLine(text)) });
  addScoreCommand(program, async (options) => {
    const { runScore } = await import("./score-command.ts");
    await runScore(options);
  });
  addQuickstartCommand(program, async (flags) => {
    const { runQuickstart } = await import("./quickstart-command.ts");
    await runQuickstart(flags);
  });
  addNodeCommand(
    program,
    async (options) => {
      const { runNode } = await import("./node-command.ts");
      await runNode(options);
    },
    async (options) => {
      const { runDrain } = await import("./node-command.ts");
      await runDrain(options);
    },
  );
  addRunCommand(program, async (options) => {
    const { runScript } = await import("./run-command.ts");
    await runScript(options);
  });
  addRewardsCommand(program, {
    report: async (options) => {
      const { runRewardsReport } = await import("./rewards-command.ts");
      await runRewardsReport(options);
    },
    exportLog: async (options) => {
      const { runRewardsExport } = await import("./rewards-export.ts");
      await runRewardsExport(options);
    },
    rescore: async (options) => {
      const { runScore } = await import("./score-command.ts");
      await runScore(options);
    },
  });
  addTrainCommand(program, async (options) => {
    const { runTrain } = await import("./train-command.ts");
    await runTrain(options);
  });
  addReportCommand(program);
  addDataCommand(program);
  addDriverCommands(program);
  addCertCommand(program, async (options) => {
    const { runCert } = await import("./cert-command.ts");
    await runCert(options);
  });
  await program.parseAsync();
}

async function versionOf(url: URL): Promise<string> {
  const { default: content } = (await import(url.href, { with: { type: "json" } })) as {
    default: { version: string };
  };
  return content.version;
}

/** Where a reader like `head` has gone away there is nobody to complain to. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

try {
  await main();
} catch (error) {
  // Commander has said what was wrong by then; asking for help is not wrong.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    const exitCode = error instanceof CliError ? error.exitCode : 1;
    process.exitCode = exitCode;
    process.stderr.write(
      oneLine(`rayling: ${error instanceof Error ? error.message : String(error)}`),
    );
    const signal = exitCode === 130 ? "SIGINT" : exitCode === 143 ? "SIGTERM" : undefined;
    if (signal !== undefined) setTimeout(endBy, LINGER_MS, signal).unref();
  }
}

/** As the signal does it: a read that hangs (a pipe that nobody writes to) cannot be called off, and `process.exit` waits for it, too. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

function oneLine(text: string): string {
  return `${text.trim().replaceAll(/\s*\n\s*/g, " ")}\n`;
}
