/**
 * Where suspects are tried, one at a time: an executor of its own, there only while there are some.
 * A suspect that was lost alone runs in a thread that has run nothing else.
 */

import type { SupervisedExecutor } from "../supervised-executor.ts";
import type { Job } from "../job.ts";

export class Quarantine {
  readonly #newExecutor: () => SupervisedExecutor | undefined;
  readonly #isPaused: () => boolean;
  #executor: SupervisedExecutor | undefined;
  #suspects: Job[] = [];

  /**
   * @param newExecutor undefined: none can be created now
   *
   * @param isPaused whether no executor may be started now
   */
  constructor(newExecutor: () => SupervisedExecutor | undefined, isPaused: () => boolean) {
    this.#newExecutor = newExecutor;
    this.#isPaused = isPaused;
  }

  push(...suspects: readonly Job[]): void {
    this.#suspects.push(...suspects);
  }

  /** Puts suspects before all others. */
  unshift(...suspects: readonly Job[]): void {
    this.#suspects.unshift(...suspects);
  }

  /** Runs the next suspect where there is room for it. */
  pump(): void {
    if (this.#isPaused()) return;
    if (this.#executor !== undefined && this.#executor.load > 0) return;
    const [suspect] = this.#suspects;
    if (suspect === undefined) {
      void this.stop();
      return;
    }
    if (this.#executor?.isFitFor(suspect) === false) void this.stop();
    this.#executor ??= this.#newExecutor();
    if (this.#executor?.hasRoom !== true) return;
    this.#suspects.shift();
    this.#executor.run(suspect);
  }

  /** An executor of the pool has ended, which may be this one. */
  ended(executor: SupervisedExecutor): void {
    if (this.#executor === executor) this.#executor = undefined;
  }

  /** Ends the executor; its job comes back to the pool. */
  async stop(): Promise<void> {
    const executor = this.#executor;
    this.#executor = undefined;
    await executor?.stop();
  }

  /** The present executor, if there is one. */
  get executors(): readonly SupervisedExecutor[] {
    return this.#executor === undefined ? [] : [this.#executor];
  }

  /** Takes the suspects out that the test is true for. */
  takeOut(test: (suspect: Job) => boolean): Job[] {
    const taken = this.#suspects.filter(test);
    this.#suspects = this.#suspects.filter((suspect) => !test(suspect));
    return taken;
  }

  /** Takes all suspects out. */
  drain(): Job[] {
    return this.#suspects.splice(0);
  }
}
