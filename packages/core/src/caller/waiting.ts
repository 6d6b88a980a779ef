/** Counts who waits for an answer, tells when the first begins and the last ends, and watches for those that wait too long. */
import type { TaskEvents } from "../inside/task-events.ts";
import { clockMs } from "../shared/clock.ts";
import type { StuckWatch, Wait } from "./stuck.ts";
import type { Waitable } from "./waitable.ts";

export class Waiting {
  #count = 0;
  #epoch = 0;
  #waves = 0;
  #stuck: StuckWatch | undefined;
  #events: TaskEvents | undefined;
  readonly #onChange: (waiting: boolean) => void;

  constructor(onChange: (waiting: boolean) => void) {
    this.#onChange = onChange;
  }

  watchedBy(stuck: StuckWatch, events: TaskEvents | undefined): void {
    this.#stuck = stuck;
    this.#events = events;
  }

  /** A number of its own for each `wait`. */
  nextWave(): number {
    this.#waves += 1;
    return this.#waves;
  }

  /** Returns the end of this wait; call it once. */
  begin(what: string, waitables: readonly Waitable[], stuckWarningMs?: number): () => void {
    const stuck = this.#stuck;
    const wait = stuck?.begin(what, waitables, stuckWarningMs);
    const end = this.#begin();
    return () => {
      if (wait !== undefined) {
        stuck?.end(wait);
        if (this.#events !== undefined) noteWait(this.#events, wait);
      }
      end();
    };
  }

  /** Waits for something that ends by itself and that no ref stands for: an actor's end. */
  during<T>(work: Promise<T>): Promise<T> {
    return work.finally(this.#begin());
  }

  /** Forgets who waits now: they belong to work that is over. */
  reset(): void {
    this.#epoch += 1;
    this.#count = 0;
  }

  #begin(): () => void {
    const epoch = this.#epoch;
    this.#count += 1;
    if (this.#count === 1) this.#onChange(true);
    return () => {
      if (epoch !== this.#epoch) return;
      this.#count -= 1;
      if (this.#count === 0) this.#onChange(false);
    };
  }
}

function noteWait(events: TaskEvents, { what, waitables, sinceMs, task }: Wait): void {
  const endMs = clockMs();
  const startMs = endMs - (performance.now() - sinceMs);
  events.add({ kind: "wait", what, count: waitables.length, taskId: task?.taskId, startMs, endMs });
}
