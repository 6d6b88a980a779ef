/**
 * Facts about an executor that can be read without asking it: which run is on its stack, and since
 * when each sample is being scored. They stay readable while user code blocks the executor, and
 * after its death.
 *
 * The executor writes the table, its worker reads it. A thread and its worker share memory; a
 * process and its worker share a file (file-run-table), which the kernel keeps as it was written
 * whatever ends the process. Times are process.hrtime's, one clock for all threads and processes of
 * a machine.
 */

export interface RunTable {
  /** How many runs may be at work at once. */
  readonly slots: number;
  /** The place that the executor opens. */
  readonly place: RunTablePlace;
  /** Id of the run whose code is on the stack; 0 for none. */
  runningId: number;
  /** The executor is exiting: exit handlers may still run, its death is not reported yet. */
  readonly isExiting: boolean;
  exiting(): void;
  start(slot: number): void;
  /** Clears a slot for its next run. */
  clear(slot: number): void;
  hasStarted(slot: number): boolean;
  /**
   * How long the user's code has been at work on the run in this slot; undefined before its start.
   */
  ageMs(slot: number): number | undefined;
  /** Closes the table for good. */
  close(): void;
}

/** Plain data: travels to the executor. */
export type RunTablePlace =
  | { readonly kind: "memory"; readonly memory: SharedArrayBuffer }
  | { readonly kind: "file"; readonly path: string; readonly slots: number };
