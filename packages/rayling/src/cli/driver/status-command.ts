/**
 * `rayling status`: the current state of a running driver.
 */
import { clearScreenDown, cursorTo } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type Command, InvalidArgumentError } from "commander";
import type { NodeStatus, PendingDemand, ResourceUse, SessionStatus } from "@rayling/core/control";
import { number } from "../flag-values.ts";
import { withDriver } from "./drivers.ts";
import { codeOf } from "@rayling/reward-manager-registry/values";
import { type Format, heading, print, printPart } from "../output/formats.ts";
import { bytes, duration } from "../output/numbers.ts";
import { plain } from "../output/output.ts";
import { answerCommand, answerLimitMs, type AnswerFlags } from "../session-flags.ts";
import { columnsOf, tableLines } from "../output/table.ts";
import { stopSignal } from "../stop-signal.ts";

export interface StatusFlags extends AnswerFlags {
  /** Seconds between two looks; true: the default; undefined: there is one. */
  readonly watch?: number | true;
}

/** Adds `rayling status`. */
export function addStatusCommand(program: Command): void {
  answerCommand(program, "status")
    .summary("show the nodes of a running driver, its actors, and who waits for what")
    .description(
      "Shows a running driver at one moment: its nodes with what is used of their resources, its actors by state, and requests that wait for resources with the reason.",
    )
    .option(
      "--watch [seconds]",
      "show it again and again, until Ctrl-C (default: every 2 s)",
      secondsFlag,
    )
    .action(showStatus);
}

/** A switch without a number has the default. */
function secondsFlag(text: string): number {
  const value = number(text);
  if (value >= 0.1 && value <= 86_400) return value;
  throw new InvalidArgumentError("It must be a number of seconds, from 0.1 to 86400.");
}

export async function showStatus(flags: StatusFlags): Promise<void> {
  const { watch, timeout, format = "table" } = flags;
  await withDriver(flags, async (driver) => {
    const ask = (): Promise<SessionStatus> => driver.ask("status", [], answerLimitMs(timeout));
    if (watch !== undefined) {
      await watchStatus(ask, format, watch === true ? standardSeconds : watch);
      return;
    }
    const status = await ask();
    await print(status, format, () => statusLines(status));
  });
}

const standardSeconds = 2;

/** Shows it until a signal comes, or the driver ends. Each look is a line of JSON as json. */
async function watchStatus(
  ask: () => Promise<SessionStatus>,
  format: Format,
  seconds: number,
): Promise<void> {
  const stop = stopSignal();
  try {
    for (;;) {
      const status = await stop.race(ask());
      if (format === "table") clearScreen();
      await printPart(status, format, () => [...statusLines(status), ""]);
      await delay(seconds * 1000, undefined, { signal: stop.signal });
    }
  } catch (error) {
    if (!stop.signal.aborted && codeOf(error) !== "DRIVER_GONE") throw error;
  } finally {
    stop.close();
  }
}

/** Elsewhere than on a terminal looks stand below each other. */
function clearScreen(): void {
  if (!process.stdout.isTTY) return;
  cursorTo(process.stdout, 0, 0);
  clearScreenDown(process.stdout);
}

function statusLines(status: SessionStatus): readonly string[] {
  const { driver, timeMs, nodes, actors, placementGroups, pending, pendingLines } = status;
  const rows = nodes.map(nodeRow);
  const requests = pending.map(({ count }) => count).reduce((sum, one) => sum + one, 0);
  return [
    `${heading("driver")} ${driver.pid}, ${driver.jobId}, running for ${duration(timeMs - driver.startTimeMs)}: ${plain(driver.script)}`,
    "",
    ...tableLines(rows, columnsOf(rows)),
    "",
    `${heading("actors")}: ${countsText(actors)}`,
    `${heading("placement groups")}: ${countsText(placementGroups)}`,
    `${heading("waiting for resources")}: ${requests === 0 ? "nobody" : ""}`.trimEnd(),
    ...pending.map(pendingLine),
    ...(pendingLines > pending.length
      ? [`  and ${pendingLines - pending.length} other kinds of requests`]
      : []),
  ];
}

/** Ray's own resources come first. */
const firstOf = ["CPU", "GPU", "memory"];

/** Resources that only name a node are left out. */
function nodeRow(node: NodeStatus): object {
  const { nodeName, hostname, state, isHeadNode, resources, stateMessage } = node;
  const shown = Object.entries(resources)
    .filter(([name]) => !name.startsWith("node:"))
    .toSorted(([left], [right]) => rankOf(left) - rankOf(right));
  return {
    node: isHeadNode ? `${nodeName} (head)` : nodeName,
    machine: hostname,
    state,
    ...Object.fromEntries(shown.map(([name, use]) => [name, useText(name, use)])),
    ...(stateMessage === undefined ? {} : { reason: stateMessage }),
  };
}

function rankOf(name: string): number {
  const index = firstOf.indexOf(name);
  return index < 0 ? firstOf.length : index;
}

function useText(name: string, { used, total }: ResourceUse): string {
  return name === "memory" ? `${bytes(used)}/${bytes(total)}` : `${used}/${total}`;
}

function countsText(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.length === 0 ? "none" : some.map(([state, count]) => `${count} ${state}`).join(", ");
}

function pendingLine({ first, count, wants, reason, feasible, waitingMs }: PendingDemand): string {
  const what = wants.map((one) => JSON.stringify(one)).join(" + ");
  const never = feasible ? "" : ", more than any node has";
  return `  ${count} x ${plain(what)}: ${plain(reason)}${never}; first ${plain(first)}, for ${duration(waitingMs)}`;
}
