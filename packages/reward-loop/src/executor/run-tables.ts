/** Which run table an executor has: threads share memory with their worker, processes a file. */

import { FileRunTable } from "./file-run-table.ts";
import type { RunTable, RunTablePlace } from "./run-table.ts";
import { SharedRunTable } from "./shared-run-table.ts";

/** For an executor that is to come. */
export function newRunTable(isolation: "thread" | "process", slots: number): RunTable {
  return isolation === "thread" ? SharedRunTable.withSlots(slots) : FileRunTable.create(slots);
}

/** That of a worker, in its executor. */
export function runTableAt(place: RunTablePlace): RunTable {
  return place.kind === "memory" ? SharedRunTable.over(place.memory) : FileRunTable.open(place);
}
