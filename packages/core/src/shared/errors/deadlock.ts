/**
 * The error of a wait that is part of a cycle.
 */
import { RayError } from "./base.ts";

/**
 * A `get`, a `wait` or a stream waits, through a cycle of calls, for the end of the call or task
 * that it runs in. Code "DEADLOCK".
 *
 * When a cycle is proved, the wait that began last rejects at once, and the others go on. A wait
 * with a `timeoutMs` or a `signal` is never part of a cycle.
 */
export class DeadlockError extends RayError {
  /** The call or task that waits. */
  readonly taskId: string;
  /** The call or task, by its name. */
  readonly taskName: string;
  /** One sentence for each step of the cycle: who waits for whom, back to the first. */
  readonly cycle: readonly string[];
  constructor(what: string, taskId: string, taskName: string, cycle: readonly string[]) {
    super(
      "DEADLOCK",
      `${what} in ${taskName} (${taskId}) waits for itself:\n${cycle.map((step) => `  ${step}`).join("\n")}\nLet the actor run more calls at a time (maxConcurrency, concurrencyGroups), call its method without .remote(), or return the ref and let the caller wait for it`,
    );
    this.taskId = taskId;
    this.taskName = taskName;
    this.cycle = cycle;
  }
}
