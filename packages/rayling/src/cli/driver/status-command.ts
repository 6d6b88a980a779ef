/**
 * `rayling status`: the current state of a running driver.
 */
import type { NodeStatus, PendingDemand, ResourceUse, SessionStatus } from "@rayling/core/control";
import { withDriver } from "./drivers.ts";
import { heading, print } from "../output/formats.ts";
import { bytes, duration } from "../output/numbers.ts";
import { plain } from "../output/output.ts";
import { answerLimitMs, type AnswerFlags } from "../session-flags.ts";
import { columnsOf, tableLines } from "../output/table.ts";

export async function showStatus(flags: AnswerFlags): Promise<void> {
  const status = await withDriver(flags, (driver) =>
    driver.ask("status", [], answerLimitMs(flags.timeout)),
  );
  await print(status, flags.format ?? "table", () => statusLines(status));
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
