/**
 * Histograms of calls, made of their events: how long a call took for its caller, and how long it
 * ran. They exist where events are recorded.
 */
import { OldestFirst } from "../shared/fifo.ts";
import { callHistograms, type MetricInfo, type Metrics } from "./metrics.ts";
import { keptEvents, type TaskEvent, TaskEvents } from "./task-events.ts";

/** Calls with names of their own share one series beyond so many. */
const maxNames = 200;

/**
 * Returns the events of this thread, which are noted in its histograms, too.
 *
 * @param metrics have the histograms
 */
export function timedEvents(metrics: Metrics): TaskEvents {
  const times = new CallTimes(metrics);
  return new TaskEvents(keptEvents, (event) => times.add(event));
}

class CallTimes {
  readonly #metrics: Metrics;
  readonly #names: Set<string> = new Set();
  /** When unanswered calls began, by their numbers. */
  readonly #begun: Map<number, number> = new Map();
  readonly #oldest: OldestFirst<number, number> = new OldestFirst(this.#begun);

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  add(event: TaskEvent): void {
    switch (event.kind) {
      case "submit":
        this.#begin(event.sequence, event.startMs);
        return;
      case "settle": {
        const startMs = this.#begun.get(event.sequence);
        if (startMs === undefined) return;
        this.#begun.delete(event.sequence);
        return this.#note(callHistograms.latency, event.name, event.atMs - startMs);
      }
      case "execute":
        return this.#note(callHistograms.execution, event.name, event.endMs - event.startMs);
      default:
    }
  }

  /** A call that failed at once is settled before: it would stay. */
  #begin(sequence: number, startMs: number): void {
    if (this.#begun.size >= keptEvents) this.#oldest.take();
    this.#begun.set(sequence, startMs);
  }

  #note(info: MetricInfo, name: string, ms: number): void {
    const isKnown = this.#names.has(name) || this.#names.size < maxNames;
    if (isKnown) this.#names.add(name);
    this.#metrics.note(info, [isKnown ? name : "other"], ms / 1000);
  }
}
