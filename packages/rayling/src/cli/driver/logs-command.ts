/**
 * `rayling logs`: the output of a driver's hosts, kept and future lines.
 */
import type { Command } from "commander";
import type { DriverClient, LogLine } from "@rayling/core/control";
import { codeOf } from "@rayling/reward-manager-registry/values";
import { count } from "../flag-values.ts";
import { withDriver } from "./drivers.ts";
import { type Format, printPart } from "../output/formats.ts";
import { plain, sayStyled, tell } from "../output/output.ts";
import { driverCommand, type DriverFlags } from "../session-flags.ts";

export interface LogsFlags extends DriverFlags {
  readonly follow?: true;
  readonly actor?: string;
  readonly task?: string;
  readonly host?: string;
  readonly tail?: number;
}

const answerMs = 10_000;

/** Adds `rayling logs`. */
export function addLogsCommand(program: Command): void {
  driverCommand(program, "logs")
    .summary("show what actors and tasks of a running driver wrote")
    .description(
      "Shows the last lines that actors and tasks wrote (the driver keeps 10,000 lines, or 4 million characters), each with who wrote it.",
    )
    .option("--follow", "go on with what they write, until the driver ends")
    .option("--actor <actor>", "only lines of one actor or class: its id, its name or its class")
    .option("--task <name>", "only lines of tasks of that name")
    .option("--host <id>", "only lines of one host: its id, or the beginning of it")
    .option("--tail <count>", "the most lines to show of those that are kept", count(0))
    .action(showLogs);
}

export async function showLogs(flags: LogsFlags): Promise<void> {
  await withDriver(flags, async (driver) => {
    // A reader like `head` may leave; nobody reads the rest.
    let isRead = true;
    process.stdout.once("error", () => {
      isRead = false;
      driver.close();
    });
    try {
      await show(driver, flags);
    } catch (error) {
      // A driver that ends without a shutdown sends no end.
      const isGone = codeOf(error) === "DRIVER_GONE";
      if (isRead && !(isGone && flags.follow === true)) throw error;
    }
  });
}

async function show(driver: DriverClient, flags: LogsFlags): Promise<void> {
  const isWanted = await wantedBy(driver, flags);
  const { tail, format = "table" } = flags;
  const write = (lines: readonly LogLine[]): Promise<void> => print(lines, format);
  let next = await showKept(driver, isWanted, { tail, write });
  while (flags.follow === true) {
    const part = await driver.ask("logs", [next, true], 0);
    tellMissed(part.missed);
    await write(part.lines.filter(isWanted));
    if (part.isEnd) return;
    ({ next } = part);
  }
}

/** Shows the kept lines. Resolves with the number of the next line. */
async function showKept(
  driver: DriverClient,
  isWanted: (line: LogLine) => boolean,
  {
    tail,
    write,
  }: {
    readonly tail: number | undefined;
    readonly write: (lines: readonly LogLine[]) => Promise<void>;
  },
): Promise<number> {
  let kept: LogLine[] = [];
  let part = await driver.ask("logs", [0, false], answerMs);
  for (const { written } = part; ; part = await driver.ask("logs", [part.next, false], answerMs)) {
    const lines = part.lines.filter(isWanted);
    if (tail === undefined) await write(lines);
    else kept = tail === 0 ? [] : [...kept, ...lines].slice(-tail);
    if (part.next >= written) break;
  }
  await write(kept);
  return part.next;
}

async function print(lines: readonly LogLine[], format: Format): Promise<void> {
  if (lines.length === 0) return;
  if (format !== "table") {
    for (const line of lines) await printPart(line, format, () => []);
    return;
  }
  sayStyled(lines.map((line) => `(${plain(writer(line))}) ${line.text}\n`).join(""));
}

/** Names the writer as the driver itself does. */
function writer({ owner, hostId }: LogLine): string {
  return owner === "" ? shortId(hostId) : `${owner} ${shortId(hostId)}`;
}

function tellMissed(missed: number): void {
  if (missed === 0) return;
  tell(`rayling: ${missed} lines came too fast and are not shown\n`);
}

async function wantedBy(
  driver: DriverClient,
  { actor, task, host }: LogsFlags,
): Promise<(line: LogLine) => boolean> {
  const ids = actor === undefined ? [] : await idsOf(driver, actor);
  return ({ owner, hostId }) =>
    (actor === undefined || isOfActor(owner, actor, ids)) &&
    (task === undefined || owner === task) &&
    (host === undefined || hostId.startsWith(host));
}

/** Lines have the class and the beginning of an id. */
function isOfActor(owner: string, actor: string, ids: readonly string[]): boolean {
  const [className, id] = owner.split(" ");
  if (id === undefined) return false;
  return className === actor || actor.startsWith(id) || ids.includes(id);
}

/** Returns the ids of actors with that name. */
async function idsOf(driver: DriverClient, name: string): Promise<readonly string[]> {
  const { rows } = await driver.ask(
    "list",
    ["actors", { filters: [["name", "=", name]] }],
    answerMs,
  );
  return rows.flatMap((row) => {
    const isActor = typeof row === "object" && row !== null && "actorId" in row;
    return isActor ? [shortId(String(row.actorId))] : [];
  });
}

/** Shortens an id as lines do. */
function shortId(id: string): string {
  const [kind, rest = ""] = id.split("-");
  return `${kind}-${rest.slice(0, 6)}`;
}
