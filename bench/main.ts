/**
 * Question: what does one actor call cost, and a big value, against the physical limit of this machine and against peers doing the same work?
 *
 * Composition only: flags, the session, the suites (calls.ts, values.ts), the printing. Progress goes to stderr, figures to stdout. The process
 * ends by itself: every subject and the session are closed.
 */
import { writeFile } from "node:fs/promises";
import * as ray from "@rayling/core";
import { measureCalls } from "./calls.ts";
import { FlagError, type Flags, readFlags, usage } from "./flags.ts";
import { markdownTable, type Report, tableOf, terminalTable } from "./measure/figures.ts";
import type { RoundPlan } from "./measure/interleave.ts";
import { describeMachine, machineLines } from "./measure/machine.ts";
import { measureValues } from "./values.ts";

/** Ten rounds of a third of a second: the median of rounds moves by a few percent between runs on a quiet machine. */
const full: RoundPlan = { rounds: 10, roundMs: 300, minIterations: 3 };
const quick: RoundPlan = { rounds: 2, roundMs: 40, minIterations: 2 };

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args);
  if (flags.help) return console.log(usage);
  const machine = describeMachine(args);
  const lines = machineLines(machine);
  if (!flags.markdown) console.log(`${lines.join("\n")}\n`);
  const reports = await measure(flags);
  const show = flags.markdown ? markdownTable : terminalTable;
  if (flags.markdown) console.log(`${lines.map((line) => `- ${line}`).join("\n")}\n`);
  for (const report of reports) {
    console.log(`${flags.markdown ? "**" : ""}${report.title}${flags.markdown ? "**\n" : ""}`);
    console.log(`${show(tableOf(report))}\n`);
  }
  if (flags.json !== undefined) {
    await writeFile(flags.json, `${JSON.stringify({ machine, reports }, undefined, 2)}\n`);
    console.error(`wrote ${flags.json}`);
  }
}

async function measure({ only, quick: isQuick }: Flags): Promise<Report[]> {
  const plan = isQuick ? quick : full;
  const wanted = (suite: string): boolean => only === undefined || only === suite;
  const onRound = (title: string, round: number): void =>
    progress(`${title}: round ${round} of ${plan.rounds}`);
  const reports: Report[] = [];
  await ray.init();
  try {
    if (wanted("serial") || wanted("in-flight")) {
      reports.push(
        ...(await measureCalls({
          serial: wanted("serial"),
          inFlight: wanted("in-flight"),
          plan,
          onRound,
        })),
      );
    }
    if (wanted("values")) reports.push(...(await measureValues({ plan, onRound })));
  } finally {
    await ray.shutdown();
    progress("");
  }
  return reports;
}

/** One line that is written over; nothing where stderr is a file. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof FlagError)) throw error;
  console.error(`bench: ${error.message}; see --help`);
  process.exitCode = 2;
}
