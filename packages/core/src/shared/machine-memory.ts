/** How much memory there is to share: of the machine, or of the container that limits it. Parts of it are defaults of `init` and of an agent. */
import { totalmem } from "node:os";

/** Ray's parts of it: what may be asked for, and what big values may take. */
const parts = { memory: 0.7, objectStore: 0.3 } as const;

/**
 * In bytes.
 *
 * @param limit of the container; where there is none, Node says 0 or, with cgroups that set no limit, more than any machine has
 */
export function machineMemory(
  limit: number = process.constrainedMemory(),
  total: number = totalmem(),
): number {
  return limit > 0 ? Math.min(limit, total) : total;
}

/** What actors and tasks may ask for on a machine of which nobody said more. */
export function standardMemory(memory: number = machineMemory()): number {
  return Math.floor(parts.memory * memory);
}

/** What big values may take there. */
export function standardObjectStoreMemory(memory: number = machineMemory()): number {
  return Math.floor(parts.objectStore * memory);
}
