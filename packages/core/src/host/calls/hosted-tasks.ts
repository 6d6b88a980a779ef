/**
 * The tasks of a worker. While all of them wait for others, its CPU is lent.
 */
import type { TaskScope } from "../../caller/waits/task-scope.ts";
import type { Waiting } from "../../caller/waits/waiting.ts";
import type { Idleness } from "./idleness.ts";
import type { RunningTasks } from "./task-runner.ts";

export interface HostedTasksParts {
  readonly waiting: Waiting;
  readonly idleness: Idleness;
  /** Whether a task waits for the values of its arguments. */
  readonly awaitsArguments: () => boolean;
  /** Called when the worker becomes blocked, or stops being blocked. */
  readonly onBlocked: (isBlocked: boolean) => void;
}

export class HostedTasks implements RunningTasks {
  readonly #parts: HostedTasksParts;
  readonly #running: Set<TaskScope> = new Set();
  #isBlocked = false;

  constructor(parts: HostedTasksParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#running.size;
  }

  begun(task: TaskScope): void {
    const { idleness } = this.#parts;
    idleness.look();
    idleness.begun();
    this.#running.add(task);
    this.look();
  }

  ended(task: TaskScope): void {
    this.#parts.idleness.ended(1);
    this.#running.delete(task);
    // Waits that an earlier task left behind do not count for the next one.
    this.look();
  }

  /** Reports a change of the blocked state. */
  look(): void {
    const isBlocked = this.#waits();
    if (isBlocked === this.#isBlocked) return;
    this.#isBlocked = isBlocked;
    this.#parts.onBlocked(isBlocked);
  }

  #waits(): boolean {
    const { waiting, awaitsArguments } = this.#parts;
    if (this.#running.size === 0) return awaitsArguments() && waiting.isWaitingIn(undefined);
    for (const task of this.#running) if (!waiting.isWaitingIn(task)) return false;
    return true;
  }
}
