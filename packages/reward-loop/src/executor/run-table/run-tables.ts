/** Which run table an executor has: threads share memory with their worker, processes a file. */

import { isOwnProcess } from "@rayling/core/code";
import { FileRunTable } from "./file-run-table.ts";
import type { RunTable, RunTablePlace } from "./run-table.ts";
import { SharedRunTable } from "./shared-run-table.ts";

/** Creates the table of an executor that is about to start. On other machines all are processes. */
export function newRunTable(isolation: "thread" | "process", slots: number): RunTable {
  return isolation === "thread" && !isOwnProcess()
    ? SharedRunTable.withSlots(slots)
    : FileRunTable.create(slots);
}

/** Opens a worker's table in its executor. */
export function runTableAt(place: RunTablePlace): RunTable {
  return place.kind === "memory" ? SharedRunTable.over(place.memory) : FileRunTable.open(place);
}
