/**
 * Warns of the user's own SharedArrayBuffers that go to another process: they become copies there,
 * so changes are invisible. Each thread warns once, with the path of the first buffer, unless
 * NODE_ENV is "production".
 */
import { warn } from "../../shared/text/warning.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import { isOurs } from "../shared-memory.ts";

interface LiveMemory {
  readonly paths: WeakMap<SharedArrayBuffer, string>;
  isSaid: boolean;
}

const live: LiveMemory = threadSlot("live-memory", () => ({ paths: new WeakMap(), isSaid: false }));

function isQuiet(): boolean {
  return live.isSaid || process.env["NODE_ENV"] === "production";
}

/**
 * Records the place of memory in a value, for a later warning.
 *
 * @param find is called at most once for each memory
 */
export function notePath(memory: SharedArrayBuffer, find: () => string | undefined): void {
  if (isQuiet() || live.paths.has(memory)) return;
  const path = find();
  if (path !== undefined) live.paths.set(memory, path);
}

/** Warns if one of these buffers is the user's; their channel copies them. */
export function warnOfCopies(buffers: readonly SharedArrayBuffer[]): void {
  if (isQuiet()) return;
  const memory = buffers.find((buffer) => !isOurs(buffer));
  if (memory === undefined) return;
  live.isSaid = true;
  const what = live.paths.get(memory) ?? "a value";
  warn(
    `${what} contains a SharedArrayBuffer and goes to another process, which gets a copy: neither side sees later writes of the other. Use actors in threads (isolation "thread") to share memory, or pass changes in calls. This warning appears once, and not if NODE_ENV is "production"`,
  );
}
