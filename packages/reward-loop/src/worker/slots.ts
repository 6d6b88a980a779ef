/**
 * Bounds how many samples of a worker run at once, and how many stand ready behind them; the others
 * wait in order.
 */

import Queue from "yocto-queue";
import type { ExecutorSettings } from "../settings/settings.ts";

/** The share of slots for which a further sample stands ready. */
export const readyPerSlot = 0.25;

/**
 * Returns how many samples stand ready in the thread of an executor, so that a freed slot there
 * waits for no message. None where a call needs more than a slot (a lease of its endpoint's
 * limiter), and none where another executor may be free earlier.
 */
export function readyOf({
  concurrency,
  executors,
  policy,
}: Pick<ExecutorSettings, "concurrency" | "executors" | "policy">): number {
  if (executors > 1 || policy.limits !== undefined) return 0;
  return Math.floor(readyPerSlot * concurrency);
}

export interface SlotUser {
  /** It has to wait for its slot. */
  waits?(): void;
  /** These are given up: it may be one of them. */
  givenUp?(ids: ReadonlySet<number>): void;
  begin(): void;
}

export class Slots {
  readonly #waiting = new Queue<SlotUser>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Calls `begin` when there is a slot: now, or, after `waits`, when one is given back. It is to be
   * given back by `leave`, once.
   */
  enter(user: SlotUser): void {
    if (this.#free === 0) {
      user.waits?.();
      this.#waiting.enqueue(user);
    } else {
      this.#free -= 1;
      user.begin();
    }
  }

  /** Tells those who wait which of them are given up: they take their slot in their turn. */
  giveUp(ids: ReadonlySet<number>): void {
    for (const user of this.#waiting) user.givenUp?.(ids);
  }

  leave(): void {
    const next = this.#waiting.dequeue();
    if (next === undefined) this.#free += 1;
    else next.begin();
  }

  /** Resolves to what `work` does when there is a slot for it: now, or when one is given back. */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) {
      this.#free -= 1;
      return this.#begin(work);
    }
    return new Promise((resolve) => {
      this.enter({ begin: () => resolve(this.#begin(work)) });
    });
  }

  /** Runs `work` and passes its slot on before its result is seen. */
  #begin<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      // Not `finally`, which makes two more promises, and no functions of its own: many wait.
      return work().then(this.#passOn, this.#passOnAfter);
    } catch (error) {
      this.leave();
      return Promise.reject(error);
    }
  }

  readonly #passOn = <Result>(result: Result): Result => {
    this.leave();
    return result;
  };

  readonly #passOnAfter = (error: unknown): never => {
    this.leave();
    throw error;
  };
}
