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
import { timedBy } from "@rayling/reward-manager-registry";
import type { CallClock } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import type { RunTable } from "./run-table/run-table.ts";
import type { Run } from "./run.ts";

export class RunTracker {
  readonly #table: RunTable;
  readonly #context = new AsyncLocalStorage<Run>();
  /** When the run of each slot started; 0: not yet. As a field of it that would be an object. */
  readonly #startedAt: Float64Array;
  /** The run below each open mark on the stack. */
  readonly #below: number[] = [];

  constructor(table: RunTable) {
    this.#table = table;
    this.#startedAt = new Float64Array(table.slots);
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

  /** How long the run has been going on since its start; 0 before that. Called at its end, once. */
  takenMs({ slot }: Run): number {
    const startedAt = itemAt(this.#startedAt, slot);
    this.#startedAt[slot] = 0;
    return startedAt === 0 ? 0 : performance.now() - startedAt;
  }

  /** Runs `work` outside of any run. */
  outside<Result>(work: () => Result): Result {
    return this.#context.exit(work);
  }

  /** The run whose code is on the stack, or that started this callback. */
  get current(): Run | undefined {
    return this.#context.getStore();
  }

  /**
   * The signal of the current run, aborted when its result is no longer needed, and when its
   * function has ended.
   */
  get signal(): AbortSignal {
    const run = this.#context.getStore();
    if (run === undefined) return never;
    run.abort ??= new AbortController();
    if (run.isAborted && !run.abort.signal.aborted) run.abort.abort();
    return run.abort.signal;
  }

  /**
   * The clock of the run in whose context it is used, which starts with a call.
   *
   * It goes on until the reply is made: reading a result may run user code (a getter, a proxy).
   *
   * @param onThenable called when a call has returned a promise
   */
  clock(onThenable?: () => void): CallClock {
    return {
      enter: () => {
        const run = this.#context.getStore();
        if (run !== undefined && run.depth++ === 0) {
          this.#startedAt[run.slot] ||= performance.now();
          this.#table.start(run.slot);
        }
      },
      leave: () => {
        const run = this.#context.getStore();
        if (run !== undefined) run.depth -= 1;
      },
      onThenable,
    };
  }

  /** Wraps a function so that the clock of the calling run starts with it. */
  timed<Args extends unknown[], Result>(
    work: (...args: Args) => Result | PromiseLike<Result>,
    onThenable?: () => void,
  ): (...args: Args) => Result | Promise<Result> {
    return timedBy(this.clock(onThenable), work);
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
