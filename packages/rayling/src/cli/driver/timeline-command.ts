/**
 * `rayling timeline`: the trace of a running driver, written part by part.
 */
import { open } from "node:fs/promises";
import type { Command } from "commander";
import type { DriverClient } from "@rayling/core/control";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { withDriver } from "./drivers.ts";
import { replaceFile } from "../output/existing-file.ts";
import { print } from "../output/formats.ts";
import { jsonText, plain, sayData } from "../output/output.ts";
import { driverCommand, type DriverFlags } from "../session-flags.ts";

export interface TimelineFlags extends DriverFlags {
  readonly out?: string;
}

/** The time to collect and sort the events of all hosts, in ms. */
const answerMs = 60_000;

type Write = (text: string) => Promise<unknown>;

/** Adds `rayling timeline`. */
export function addTimelineCommand(program: Command): void {
  driverCommand(program, "timeline")
    .summary("write a trace of a running driver, for Perfetto or chrome://tracing")
    .description(
      "Writes the events of calls and tasks in Chrome's trace format. The driver records them with init({ taskEvents: true }).",
    )
    .option("--out <file>", "where to; - for stdout (default: timeline-<job id>.json)")
    .action(writeTimeline);
}

export async function writeTimeline(flags: TimelineFlags): Promise<void> {
  await withDriver(flags, async (driver) => {
    const { pid, script, jobId } = driver.about;
    const parts = await driver.ask("timeline", [], answerMs);
    if (parts === undefined) {
      throw new CliError(
        1,
        `the driver ${pid} (${script}) records no events: start it with init({ taskEvents: true })`,
      );
    }
    if (flags.out === "-") await writeParts(driver, parts, sayData);
    else {
      const out = flags.out ?? `timeline-${jobId}.json`;
      const events = await writeFile(driver, parts, out);
      await print({ events, out }, flags.format ?? "table", () => [
        `${events} events in ${plain(out)}: open it with ui.perfetto.dev`,
      ]);
    }
  });
}

/** Resolves with the number of events. Rejects with CliError 2 where it cannot write. */
async function writeFile(driver: DriverClient, parts: number, path: string): Promise<number> {
  return replaceFile(path, "the other file", async (made) => {
    const file = await open(made, "w").catch((error: unknown) => {
      throw new CliError(2, `--out: ${messageOf(error)}`, { cause: error });
    });
    try {
      return await writeParts(driver, parts, (text) => file.writeFile(text));
    } finally {
      await file.close();
    }
  });
}

/** Resolves with the number of events. */
async function writeParts(driver: DriverClient, parts: number, write: Write): Promise<number> {
  let count = 0;
  await write("[");
  for (let index = 0; index < parts; index++) {
    const events = await driver.ask("timelinePart", [index], answerMs);
    const text = events.map((event) => jsonText(event)).join(",\n");
    await write(count === 0 ? `\n${text}` : `,\n${text}`);
    count += events.length;
  }
  await write("\n]\n");
  return count;
}
