/**
 * The memory that the machine, or the container around it, has to share. Fractions of it are
 * defaults of `init` and of an agent.
 */
import { totalmem } from "node:os";

/** Ray's fractions of it: the memory that may be requested, and the memory for big values. */
const parts = { memory: 0.7, objectStore: 0.3 } as const;

/**
 * Returns the available memory in bytes.
 *
 * @param limit the container's limit. Without a container Node reports 0 or, with cgroups that set
 * no limit, more than any machine has
 */
export function machineMemory(
  limit: number = process.constrainedMemory(),
  total: number = totalmem(),
): number {
  return limit > 0 ? Math.min(limit, total) : total;
}

/**
 * Returns the bytes that actors and tasks may request on a machine that sets no limit of its own.
 */
export function standardMemory(memory: number = machineMemory()): number {
  return Math.floor(parts.memory * memory);
}

/** Returns the bytes that big values may take on a machine that sets no limit of its own. */
export function standardObjectStoreMemory(memory: number = machineMemory()): number {
  return Math.floor(parts.objectStore * memory);
}
