/**
 * Knows which tasks wait for an answer, tells when one begins to and when it waits for nothing more, stops what a cancelled one waits for, and watches for
 * those that wait too long. Code that belongs to no task counts as one.
 */
import type { TaskEvents } from "../inside/task-events.ts";
import { clockMs } from "../shared/clock.ts";
import type { StuckWatch, Wait } from "./stuck.ts";
import { currentTask, type Stop, type TaskScope } from "./task-scope.ts";
import type { Waitable } from "./waitable.ts";

export class Waiting {
  /** For how much each waits. */
  readonly #counts: Map<TaskScope | undefined, number> = new Map();
  /** Questions about the session, which no task waits for as for others' work. */
  #asking = 0;
  #waves = 0;
  #stuck: StuckWatch | undefined;
  #events: TaskEvents | undefined;
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Whether anybody waits. */
  get isWaiting(): boolean {
    return this.#counts.size > 0 || this.#asking > 0;
  }

  isWaitingIn(task: TaskScope | undefined): boolean {
    return this.#counts.has(task);
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

  /**
   * Returns the end of this wait; call it once.
   *
   * @param stop called when the task is cancelled that waits
   */
  begin(
    what: string,
    waitables: readonly Waitable[],
    stuckWarningMs?: number,
    stop?: Stop,
  ): () => void {
    const stuck = this.#stuck;
    const wait = stuck?.begin(what, waitables, stuckWarningMs);
    const task = wait === undefined ? currentTask() : wait.task;
    const end = this.#begin(task);
    const endStopping = stop === undefined ? undefined : task?.waits(stop);
    return () => {
      endStopping?.();
      if (wait !== undefined) {
        stuck?.end(wait);
        if (this.#events !== undefined) noteWait(this.#events, wait);
      }
      end();
    };
  }

  /** Waits for something that ends by itself and that no ref stands for: an actor's end. */
  during<T>(work: Promise<T>): Promise<T> {
    return work.finally(this.#begin(currentTask()));
  }

  /** Waits for an answer about the session, which keeps the process alive as any wait does, and lends nobody's CPU. */
  async asking<T>(answer: Promise<T> | T): Promise<T> {
    this.#asking += 1;
    if (this.#asking === 1) this.#onChange();
    try {
      return await answer;
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#onChange();
    }
  }

  #begin(task: TaskScope | undefined): () => void {
    const count = this.#counts.get(task) ?? 0;
    this.#counts.set(task, count + 1);
    if (count === 0) this.#onChange();
    return () => {
      const left = (this.#counts.get(task) ?? 1) - 1;
      if (left > 0) this.#counts.set(task, left);
      else {
        this.#counts.delete(task);
        this.#onChange();
      }
    };
  }
}

function noteWait(events: TaskEvents, { what, waitables, sinceMs, task }: Wait): void {
  const endMs = clockMs();
  const startMs = endMs - (performance.now() - sinceMs);
  events.add({ kind: "wait", what, count: waitables.length, taskId: task?.taskId, startMs, endMs });
}
