/**
 * `rayling memory`: big values by their stores, and objects by size.
 */
import type { Command } from "commander";
import type { MemoryStatus, StoreUse } from "@rayling/core/control";
import { count } from "../flag-values.ts";
import { withDriver } from "./drivers.ts";
import { forPeople } from "./row-text.ts";
import { heading, print, tellMissing } from "../output/formats.ts";
import { bytes } from "../output/numbers.ts";
import { answerCommand, answerLimitMs, type AnswerFlags, maxRows } from "../session-flags.ts";
import { tableLines } from "../output/table.ts";

export interface MemoryFlags extends AnswerFlags {
  readonly limit: number;
}

/** Adds `rayling memory`. */
export function addMemoryCommand(program: Command): void {
  answerCommand(program, "memory")
    .summary("show what objects take of the memory of a running driver")
    .description(
      "Shows what each runtime keeps of big values (of 64 KiB and more), in memory and on disk, and the objects, the largest first.",
    )
    .option("--limit <count>", "objects at most, up to 10,000", count(1), 100)
    .action((flags: MemoryFlags) =>
      showMemory({ ...flags, limit: Math.min(flags.limit, maxRows) }),
    );
}

export async function showMemory(flags: MemoryFlags): Promise<void> {
  const { limit, timeout: timeoutMs } = flags;
  const memory = await withDriver(flags, (driver) =>
    driver.ask("memory", [{ limit, timeoutMs }], answerLimitMs(timeoutMs)),
  );
  await print(memory, flags.format ?? "table", () => memoryLines(memory));
  tellMissing(memory.missing);
}

function memoryLines(memory: MemoryStatus): readonly string[] {
  const { processBytes, processLimitBytes, stores, objects, totalObjects } = memory;
  return [
    `${heading("the driver's process")}: ${bytes(processBytes)} of ${bytes(processLimitBytes)}`,
    "",
    ...tableLines(stores.map(storeRow), ["workerId", "pid", "nodeId", "in memory", "spilled"]),
    "",
    ...(objects.length === 0
      ? [`${heading("objects")}: none`]
      : tableLines(objects.map(forPeople), [
          "objectId",
          "name",
          "objectSize",
          "taskStatus",
          "referenceType",
          "ownerId",
        ])),
    ...(objects.length === totalObjects
      ? []
      : [`${objects.length} of ${totalObjects}; --limit for more`]),
  ];
}

function storeRow({ bytesInMemory, bytesSpilled, ...store }: StoreUse): object {
  return { ...store, "in memory": bytes(bytesInMemory), spilled: bytes(bytesSpilled) };
}
