/**
 * Tells the driver what was noted in this host: a second after the first thing, and when it is asked.
 *
 * No timer runs while there is nothing to tell, and none keeps the host alive.
 */
import { type Metrics, threadMetrics } from "../inside/metrics.ts";
import type { TaskEvents } from "../inside/task-events.ts";
import type { HostReport } from "../rpc/state.ts";

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

  /** What was not told yet. */
  take(): HostReport {
    return { events: this.#events?.take() ?? [], metrics: this.#metrics.take() };
  }

  /** The host ends. */
  flush(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#tell(this.take());
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#tell(this.take());
    }, reportMs).unref();
  }
}
