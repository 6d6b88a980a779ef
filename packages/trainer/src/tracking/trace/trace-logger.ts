/** Writes the trace of a run when it ends, of what the logger `file` wrote. */

import type { TrackedRun, TrackingLogger } from "../tracking-logger.ts";
import { writeTrace } from "./trace.ts";

export class TraceLogger implements TrackingLogger {
  readonly name = "trace";
  #directory: string | undefined;

  open({ directory }: TrackedRun): void {
    this.#directory = directory;
  }

  async close(): Promise<void> {
    if (this.#directory !== undefined) await writeTrace({ directory: this.#directory });
  }
}
