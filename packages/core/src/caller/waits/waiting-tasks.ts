/**
 * Knows which tasks wait for an answer, and reports the begin and the end of their waits. It stops
 * the waits of a cancelled task and, at the end of the session, all of them, and watches for waits
 * that last too long. Code that belongs to no task counts as one.
 */
import type { TaskEvents } from "../../telemetry/task-events.ts";
import { clockMs } from "../../shared/clock.ts";
import { SessionEndedError } from "../../shared/errors.ts";
import type { StuckWatch, Wait } from "./stuck-watch.ts";
import { currentTask, type TaskScope } from "./task-scope.ts";

export class Waiting {
  /** The number of tasks that wait; code without a task is one. */
  #waiters = 0;
  /** For how much code without a task waits. A task knows it of itself (`TaskScope.waitCount`). */
  #outside = 0;
  /** Questions about the session, which no task waits for as for others' work. */
  #asking = 0;
  /** Ends those. */
  readonly #askers: Set<(error: SessionEndedError) => void> = new Set();
  /** Why the session has ended. */
  #ended: string | undefined;
  #waves = 0;
  #stuck: StuckWatch | undefined;
  #events: TaskEvents | undefined;
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Whether anybody waits. */
  get isWaiting(): boolean {
    return this.#waiters > 0 || this.#asking > 0;
  }

  isWaitingIn(task: TaskScope | undefined): boolean {
    return this.countIn(task) > 0;
  }

  /** For how much that task waits. */
  countIn(task: TaskScope | undefined): number {
    return task === undefined ? this.#outside : task.waitCount;
  }

  /** Whether somebody waits for an answer about the session, which comes. */
  get isAsking(): boolean {
    return this.#asking > 0;
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

  /** @throws SessionEndedError when nothing will be ready any more */
  begin(wait: Wait): void {
    if (this.#ended !== undefined) throw endedIn(wait.what, this.#ended);
    const task = currentTask();
    wait.task = task;
    this.#stuck?.begin(wait);
    this.#add(task);
    if (wait.stop === undefined || wait.isToTheEnd) return;
    wait.endStopping = task?.waits(wait.stop);
  }

  /** Ends a wait that has begun. Call it once. */
  ended(wait: Wait): void {
    wait.endStopping?.();
    this.#stuck?.end(wait);
    if (this.#events !== undefined) noteWait(this.#events, wait);
    this.#remove(wait.task);
  }

  /** Waits for something that ends by itself and that no ref stands for: an actor's end. */
  during<T>(work: Promise<T>): Promise<T> {
    const task = currentTask();
    this.#add(task);
    return work.finally(() => this.#remove(task));
  }

  /**
   * Waits for an answer about the session. That keeps the process alive as any wait does, and lends
   * nobody's CPU.
   */
  async asking<T>(answer: Promise<T> | T): Promise<T> {
    if (this.#ended !== undefined) throw endedIn("a question about the session", this.#ended);
    this.#asking += 1;
    if (this.#asking === 1) this.#onChange();
    const { promise: ended, reject } = Promise.withResolvers<never>();
    this.#askers.add(reject);
    try {
      return await Promise.race([answer, ended]);
    } finally {
      this.#askers.delete(reject);
      this.#asking -= 1;
      if (this.#asking === 0) this.#onChange();
    }
  }

  /** Every wait rejects with SessionEndedError, and so does every later one. */
  end(why: string): void {
    this.#ended ??= why;
    for (const reject of this.#askers) reject(endedIn("a question about the session", why));
    const waits = Array.from(this.#stuck?.waits() ?? []);
    for (const { what, stop } of waits) stop?.(endedIn(what, why));
  }

  #add(task: TaskScope | undefined): void {
    if (this.#count(task, 1) > 1) return;
    this.#waiters += 1;
    this.#onChange();
  }

  #remove(task: TaskScope | undefined): void {
    if (this.#count(task, -1) > 0) return;
    this.#waiters -= 1;
    this.#onChange();
  }

  /**
   * Not in a Map: V8 makes a new table when a Map loses its last entry, and the old one points to
   * it. So one old table keeps all later ones until the next major collection, with what was in
   * them.
   */
  #count(task: TaskScope | undefined, change: 1 | -1): number {
    if (task === undefined) return (this.#outside += change);
    return (task.waitCount += change);
  }
}

function endedIn(what: string, why: string): SessionEndedError {
  return new SessionEndedError(`${what} cannot be answered: the session has ended (${why})`);
}

function noteWait(events: TaskEvents, { what, waitables, sinceMs, task }: Wait): void {
  const [startMs, endMs] = [sinceMs, clockMs()];
  events.add({ kind: "wait", what, count: waitables.length, taskId: task?.taskId, startMs, endMs });
}
