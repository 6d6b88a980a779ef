/** What waits for itself. */
import { RayError } from "./base.ts";

/**
 * A `get`, a `wait` or the next of a stream waits, through calls that wait for each other, for the end of the call or task that it stands in. Code "DEADLOCK".
 *
 * Of the waits of such a cycle the last one to begin rejects, as soon as the cycle is proved; the others go on. A wait with a `timeoutMs` or a `signal` is never part of one.
 */
export class DeadlockError extends RayError {
  /** The call or task that waits. */
  readonly taskId: string;
  readonly taskName: string;
  /** Who waits for whom, one sentence for each step, around to the first. */
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
