/**
 * Keeps the run table true in the executor's thread: it always names the run whose code is on the
 * stack.
 *
 * The synchronous part of a run is marked by `follow`; callbacks that run later because of it
 * (after an await, in a timer, when a socket answers) are marked by async hooks, which look up the
 * async context of each callback. So a function that blocks or ends the thread after its tenth
 * await is identified as surely as one that does so at once. Measured: 2 us on top of 9 awaits. The
 * user's code escapes only in callbacks that lost their context; for those the worker has its
 * quarantine.
 */

import { AsyncLocalStorage, createHook } from "node:async_hooks";
import type { RunTable } from "./run-table.ts";
import type { Run } from "./run.ts";

export class RunTracker {
  readonly #table: RunTable;
  readonly #context = new AsyncLocalStorage<Run>();
  /** The run below each open mark on the stack. */
  readonly #below: number[] = [];

  constructor(table: RunTable) {
    this.#table = table;
    createHook({
      before: () => this.#mark(this.#context.getStore()?.id ?? 0),
      after: () => this.#unmark(),
    }).enable();
  }

  /** Everything that `work` does, now and later, is done for this run. */
  follow<Result>(run: Run, work: () => Result): Result {
    this.#mark(run.id);
    try {
      return this.#context.run(run, work);
    } finally {
      this.#unmark();
    }
  }

  /** Runs `work` outside of any run. */
  outside<Result>(work: () => Result): Result {
    return this.#context.exit(work);
  }

  /** The run whose code is on the stack, or that started this callback. */
  get current(): Run | undefined {
    return this.#context.getStore();
  }

  /** The signal of the current run, aborted when its result is no longer needed. */
  get signal(): AbortSignal {
    const run = this.#context.getStore();
    if (run === undefined) return never;
    run.abort ??= new AbortController();
    if (run.isAborted) run.abort.abort();
    return run.abort.signal;
  }

  /** Wraps a function so that the clock of the calling run starts with it. */
  timed<Args extends unknown[], Result>(
    work: (...args: Args) => Result | PromiseLike<Result>,
    onThenable: () => void = ignore,
  ): (...args: Args) => Result | Promise<Result> {
    return (...args) => {
      const run = this.#context.getStore();
      if (run !== undefined) this.#enter(run);
      let result: Result | PromiseLike<Result>;
      try {
        result = work(...args);
      } catch (error) {
        if (run !== undefined) this.#leave(run);
        throw error;
      }
      if (!isThenable(result)) {
        if (run !== undefined) this.#leave(run);
        return result;
      }
      onThenable();
      const settled = Promise.resolve(result);
      if (run === undefined) return settled;
      return settled.then(
        (value) => {
          this.#leave(run);
          return value;
        },
        (error: unknown) => {
          this.#leave(run);
          throw error;
        },
      );
    };
  }

  #enter(run: Run): void {
    if (run.depth++ > 0) return;
    run.startedAt ??= performance.now();
    this.#table.start(run.slot);
  }

  /**
   * The clock goes on until the reply is made: reading a result may run user code (a getter, a
   * proxy).
   */
  #leave(run: Run): void {
    run.depth -= 1;
  }

  #mark(id: number): void {
    this.#below.push(this.#table.runningId);
    this.#table.runningId = id;
  }

  #unmark(): void {
    this.#table.runningId = this.#below.pop() ?? 0;
  }
}

const never: AbortSignal = new AbortController().signal;

function isThenable<Result>(value: Result | PromiseLike<Result>): value is PromiseLike<Result> {
  return (
    ((typeof value === "object" && value !== null) || typeof value === "function") &&
    "then" in value &&
    typeof value.then === "function"
  );
}

function ignore(): void {}
