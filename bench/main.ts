/**
 * Question: what does one actor call cost, and a big value, and very many of them, against the
 * physical limit of this machine and against peers doing the same work?
 *
 * Composition only: flags, one suite here or all of them as stages, the printing. Progress goes to
 * stderr, figures to stdout. The process ends by itself: every subject and the session are closed.
 */
import { writeFile } from "node:fs/promises";
import { type Flags, flagsOf, usage } from "./flags.ts";
import { runCommand } from "./measure/command-line.ts";
import { describeMachine, machineLines } from "./measure/machine.ts";
import { writeBlock } from "./measure/readme.ts";
import { markdownTables, terminalTables } from "./measure/report.ts";
import { NoRayError } from "./ray/python.ts";
import { runStages, type Stages } from "./stages.ts";
import { fullPlans, type Plans, quickPlans, runSuite } from "./suites.ts";
import { allOnOneCpu, targetTable } from "./targets.ts";

const readmeBlock = "node bench/main.ts --markdown";

async function main(args: readonly string[]): Promise<void> {
  const flags = flagsOf(args);
  if (flags.help) return console.log(usage);
  const machine = describeMachine(["node bench/main.ts", ...args]);
  const lines = machineLines(machine);
  if (!flags.markdown) console.log(`${lines.join("\n")}\n`);
  const { report, failed }: Stages =
    flags.only === undefined
      ? await runStages(flags.quick ? ["--quick"] : [], progress)
      : {
          report: await runSuite(flags.only, plansOf(flags), progress),
          failed: [],
        };
  const isOnOneCpu = flags.only !== undefined && machine.usableCores === 1;
  const targets = targetTable(isOnOneCpu ? allOnOneCpu(report.measured) : report.measured);
  const tables = targets === undefined ? report.tables : [...report.tables, targets];
  const markdown = `${lines.map((line) => `- ${line}`).join("\n")}\n\n${markdownTables(tables)}`;
  if (!flags.markdown) console.log(terminalTables(tables));
  else if (flags.only !== undefined) console.log(markdown);
  // A block of which a part is missing would pass for the whole.
  else if (failed.length === 0) await writeBlock(readmeBlock, markdown);
  if (flags.json !== undefined) {
    await writeFile(flags.json, `${JSON.stringify({ machine, ...report }, undefined, 2)}\n`);
  }
  if (failed.length === 0) return;
  console.error(`bench: ${failed.join(", ")} failed, and the rest is as above`);
  process.exitCode = 1;
}

function plansOf({ quick, python }: Flags): Plans {
  const plans = quick ? quickPlans : fullPlans;
  if (python === undefined) return plans;
  return {
    ...plans,
    rewards: { ...plans.rewards, python },
    serve: { ...plans.serve, python },
  };
}

/** One line that is written over; nothing where stderr is a file. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`);
}

await runCommand("bench", main, (error) => error instanceof NoRayError);
