/**
 * Reports the records of this host to the driver: a second after the first one, and on request.
 *
 * No timer runs while there is nothing to report, and none keeps the host alive.
 */
import { type Metrics, threadMetrics } from "../telemetry/metrics.ts";
import type { TaskEvents } from "../telemetry/task-events.ts";
import type { HostReport } from "../rpc/state.ts";
import { timers } from "../shared/machine/timers.ts";

const reportMs = 1000;

export class Reporter {
  readonly #events: TaskEvents | undefined;
  readonly #metrics: Metrics = threadMetrics();
  readonly #tell: (report: HostReport) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(events: TaskEvents | undefined, tell: (report: HostReport) => void) {
    this.#events = events;
    this.#tell = tell;
    events?.whenDirty(() => this.#arm());
    this.#metrics.whenDirty(() => this.#arm());
  }

  /** Removes and returns the records that were not reported yet. */
  take(): HostReport {
    return { events: this.#events?.take() ?? [], metrics: this.#metrics.take() };
  }

  /** Reports at once, because the host ends. */
  flush(): void {
    if (this.#timer === undefined) return;
    timers.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#tell(this.take());
  }

  #arm(): void {
    this.#timer ??= timers
      .setTimeout(() => {
        this.#timer = undefined;
        this.#tell(this.take());
      }, reportMs)
      .unref();
  }
}
