/** The trace of a session. */
import { writeFile } from "node:fs/promises";
import { InvalidOptionError } from "../shared/errors.ts";
import { show } from "../shared/text/show.ts";
import type { TraceEvent } from "../rpc/state.ts";
import { asked, isDriverCode, never } from "./session.ts";

/**
 * What happened to calls and tasks, as a list of events in Chrome's trace format; written to `path`, if that is given, for Perfetto (ui.perfetto.dev) or chrome://tracing.
 *
 * A process of it is a node, a thread of it the driver or a host; arrows go from where a call was submitted to where it ran. Times in microseconds, on one
 * clock. Rejects with InvalidOptionError when it cannot be written there. Needs `init({ taskEvents: true })`, and is empty without it. What a killed host noted in its last second may be missing.
 */
export async function timeline(path?: string): Promise<readonly TraceEvent[]> {
  if (isDriverCode()) return never();
  const trace = await asked((directory) => directory.timeline());
  if (path === undefined) return trace;
  try {
    await writeFile(path, JSON.stringify(trace));
  } catch (cause) {
    const why = (cause as Error).message;
    throw new InvalidOptionError("path", `timeline: ${show(path)} cannot be written: ${why}`, {
      cause,
    });
  }
  return trace;
}
