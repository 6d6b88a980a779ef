/** Finds who ended an executor, as far as its death cause tells. */

import type { DeathCause } from "@rayling/core";

/**
 * - "own": the code that ran there.
 * - "outside": another process or user that ended the actor.
 * - "unclear": unknown. A signal may come from the kernel, which is short of memory because of a
 * sample; a process may have closed its sockets itself.
 */
export type DeathOrigin = "own" | "outside" | "unclear";

/** Signals that the kernel sends to a process for what its own code did. */
const ownSignals: ReadonlySet<string> = new Set([
  "SIGABRT",
  "SIGBUS",
  "SIGFPE",
  "SIGILL",
  "SIGSEGV",
  "SIGSYS",
  "SIGTRAP",
]);

const ownKinds: ReadonlySet<DeathCause["kind"]> = new Set([
  "exited",
  "uncaught-exception",
  "out-of-memory",
]);

export function originOf({ kind, signal = "" }: DeathCause): DeathOrigin {
  if (kind === "signal") return ownSignals.has(signal) ? "own" : "unclear";
  if (kind === "unreachable") return "unclear";
  return ownKinds.has(kind) ? "own" : "outside";
}
