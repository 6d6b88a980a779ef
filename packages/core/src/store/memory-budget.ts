/**
 * Counts, in shared memory, the memory that the kept objects of a process take in all of its
 * threads.
 *
 * Each process has one budget, and any thread may use its free room. Each thread also counts its
 * own objects in a word of its own, so that the memory of a terminated thread is returned. A
 * process host has a budget of its own.
 *
 * This file says from which share of the budget on values move to disk; object-memory.ts moves
 * them.
 */

/** A thread's access to the budget, as plain data for structured clone. */
export interface BudgetShare {
  readonly limitBytes: number;
  readonly total: SharedArrayBuffer;
  readonly own: SharedArrayBuffer;
}

/**
 * The shares of the budget at which values begin to move to disk, and down to which they move, so
 * that they leave in groups.
 */
const spillFrom = 0.8;
const spillTo = 0.7;

export class Budget {
  readonly limitBytes: number;
  readonly #total: BigInt64Array;
  readonly #own: BigInt64Array;

  constructor({ limitBytes, total, own }: BudgetShare) {
    this.limitBytes = limitBytes;
    this.#total = new BigInt64Array(total);
    this.#own = new BigInt64Array(own);
  }

  /** The bytes in memory, of all threads. */
  get used(): number {
    return Number(Atomics.load(this.#total, 0));
  }

  /** The bytes in memory, of this thread. */
  get own(): number {
    return Number(Atomics.load(this.#own, 0));
  }

  /** Whether values should move to disk. */
  get isHigh(): boolean {
    return this.used > this.limitBytes * spillFrom;
  }

  /** The bytes that should move to disk once it is high. */
  get excessBytes(): number {
    return this.used - this.limitBytes * spillTo;
  }

  add(change: number): void {
    Atomics.add(this.#own, 0, BigInt(change));
    Atomics.add(this.#total, 0, BigInt(change));
  }

  /** Returns a share for another thread of this process. */
  share(): BudgetShare {
    return {
      limitBytes: this.limitBytes,
      total: this.#total.buffer as SharedArrayBuffer,
      own: new SharedArrayBuffer(8),
    };
  }

  /** Gives back the memory of a thread that is gone. */
  close(share: BudgetShare): void {
    Atomics.sub(this.#total, 0, Atomics.exchange(new BigInt64Array(share.own), 0, 0n));
  }
}

export function newBudget(limitBytes: number): Budget {
  return new Budget({
    limitBytes,
    total: new SharedArrayBuffer(8),
    own: new SharedArrayBuffer(8),
  });
}
