/** Writes the report of a run when it ends, of what the logger `file` wrote. */

import type { TrackedRun, TrackingLogger } from "../tracking-logger.ts";
import { writeReport } from "./report.ts";

export class ReportLogger implements TrackingLogger {
  readonly name = "report";
  #run: TrackedRun | undefined;

  open(run: TrackedRun): void {
    this.#run = run;
  }

  async close(): Promise<void> {
    if (this.#run === undefined) return;
    const { directory, projectName, experimentName } = this.#run;
    await writeReport({ directory, title: `${projectName} / ${experimentName}` });
  }
}
