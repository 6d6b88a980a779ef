/**
 * Where a worker asks its loop whether another call may be paid for, and reports the usage of each:
 * the loop has the budget. The notes of one turn leave together; now and then none do, so that the
 * watching does not look stuck.
 */

import type { Use } from "../spend/cost-budget.ts";

/** A call that wants to begin, by its number, or, without one, a call that is over. */
export type SpendNote =
  | { readonly sample: number; readonly call: number }
  | { readonly sample: number; readonly use: Use };

/** Whether a call may begin. */
export type SpendAnswer = readonly [call: number, isAllowed: boolean];

const againMs = 5000;

export class SpendRequests {
  #notes: SpendNote[] = [];
  #noted = Promise.withResolvers<void>();
  readonly #asking: Map<number, (isAllowed: boolean) => void> = new Map();
  #calls = 0;

  /** @param sample the id under which it was given to this worker */
  mayBegin(sample: number): Promise<boolean> {
    this.#calls += 1;
    const call = this.#calls;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#asking.set(call, resolve);
    this.#note({ sample, call });
    return promise;
  }

  /** A call that may begin is over, or was not begun after all. */
  ended(sample: number, use: Use): void {
    this.#note({ sample, use });
  }

  /** The loop's answers. */
  answer(answers: readonly SpendAnswer[]): void {
    for (const [call, isAllowed] of answers) {
      this.#asking.get(call)?.(isAllowed);
      this.#asking.delete(call);
    }
  }

  /** Yields the notes since the last time. Never ends. */
  async *notes(): AsyncGenerator<readonly SpendNote[]> {
    for (;;) {
      const again = setTimeout(() => this.#noted.resolve(), againMs);
      again.unref();
      await this.#noted.promise;
      clearTimeout(again);
      this.#noted = Promise.withResolvers();
      const notes = this.#notes;
      this.#notes = [];
      yield notes;
    }
  }

  #note(note: SpendNote): void {
    this.#notes.push(note);
    this.#noted.resolve();
  }
}
