/**
 * `rayling get`: all that a driver knows of one actor, task, object, node, worker or placement
 * group.
 */
import type { Command } from "commander";
import type { DriverClient, Listed, StateAnswer } from "@rayling/core/control";
import { CliError } from "../cli-error.ts";
import { heading, print, tellMissing } from "../output/formats.ts";
import { cellText } from "../output/table.ts";
import { answerCommand, answerLimitMs, type AnswerFlags } from "../session-flags.ts";
import { withDriver } from "./drivers.ts";
import { forPeople } from "./row-text.ts";

/** Columns that name a row, by list. */
const names = {
  actors: ["actorId", "name"],
  tasks: ["taskId"],
  objects: ["objectId"],
  nodes: ["nodeId", "nodeName"],
  workers: ["workerId"],
  placementGroups: ["placementGroupId", "name"],
} as const satisfies Readonly<Record<Listed, readonly string[]>>;

/** The most rows of one list: a name may be that of several. */
const mostRows = 100;

/** Adds `rayling get`. */
export function addGetCommand(program: Command): void {
  answerCommand(program, "get")
    .summary("show all that a running driver knows of one actor, task, object, node or worker")
    .description(
      "Shows every column of what has that id, or, for actors, nodes and placement groups, that name. As json and yaml: rows by list, { actors: [...] }.",
    )
    .argument("<id>", "the id or name, as list shows it")
    .action(showOne);
}

/** Rejects with CliError 1 when the driver has nothing of that id or name. */
export async function showOne(id: string, flags: AnswerFlags): Promise<void> {
  const { found, missing } = await withDriver(flags, (driver) => rowsOf(driver, id, flags.timeout));
  if (Object.keys(found).length === 0 && missing.length === 0) {
    throw new CliError(1, `the driver has nothing with the id or name ${id}`);
  }
  await print(found, flags.format ?? "table", () => foundLines(found));
  tellMissing(missing);
}

type Found = Readonly<Partial<Record<Listed, readonly object[]>>>;

async function rowsOf(
  driver: DriverClient,
  id: string,
  timeoutMs: number,
): Promise<{ readonly found: Found; readonly missing: readonly string[] }> {
  const found: Partial<Record<Listed, readonly object[]>> = {};
  const missing = new Set<string>();
  // One after the other: a name may stand in two columns of a list.
  for (const what of lists) {
    for (const column of names[what]) {
      const options = {
        filters: [[column, "=", id] as const],
        limit: mostRows,
        detail: true,
        timeoutMs,
      };
      const answer: StateAnswer = await driver.ask(
        "list",
        [what, options],
        answerLimitMs(timeoutMs),
      );
      for (const host of answer.missing) missing.add(host);
      if (answer.rows.length === 0) continue;
      found[what] = answer.rows.map((row): object => Object(row));
      break;
    }
  }
  return { found, missing: [...missing] };
}

const lists = ["actors", "tasks", "objects", "nodes", "workers", "placementGroups"] as const;

function foundLines(found: Found): readonly string[] {
  const blocks = Object.entries(found).flatMap(([what, rows]) =>
    rows.map((row) => {
      const entries = Object.entries(forPeople(row));
      const width = Math.max(...entries.map(([column]) => column.length));
      const lines = entries.map(
        ([column, value]) => `  ${column.padEnd(width)}  ${cellText(value)}`,
      );
      return ["", heading(what), ...lines];
    }),
  );
  return blocks.flat().slice(1);
}
