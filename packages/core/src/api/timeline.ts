/**
 * The trace of a session.
 */
import { writeFile } from "node:fs/promises";
import { InvalidOptionError } from "../shared/errors.ts";
import { show } from "../shared/text/show.ts";
import type { TraceEvent } from "../rpc/state.ts";
import { asked } from "./session.ts";
import { asError } from "../shared/errors/thrown.ts";

/**
 * Returns the events of calls and tasks in Chrome's trace format, and writes them to `path`, if
 * given, for Perfetto (ui.perfetto.dev) or chrome://tracing.
 *
 * A process of the trace is a node, and a thread is the driver or a host; arrows lead from the
 * submission of a call to its execution. Times are microseconds of one clock. It needs
 * `init({ taskEvents: true })`, and is empty without it. Events of the last second of a killed host
 * may be missing. Rejects with InvalidOptionError when it cannot write to `path`.
 */
export async function timeline(path?: string): Promise<readonly TraceEvent[]> {
  const trace = await asked((directory) => directory.timeline());
  if (path === undefined) return trace;
  try {
    await writeFile(path, textOf(trace));
  } catch (cause) {
    const why = asError(cause).message;
    throw new InvalidOptionError("path", `timeline: ${show(path)} cannot be written: ${why}`, {
      cause,
    });
  }
  return trace;
}

/** So many events are one write. */
const eventsAtOnce = 1000;

/** Yields a line for each event. All of them may be longer than a string can be. */
function* textOf(trace: readonly TraceEvent[]): Generator<string, void, undefined> {
  yield "[";
  for (let start = 0; start < trace.length; start += eventsAtOnce) {
    const events = trace.slice(start, start + eventsAtOnce);
    const text = events.map((event) => JSON.stringify(event)).join(",\n");
    yield start === 0 ? `\n${text}` : `,\n${text}`;
  }
  yield "\n]\n";
}
