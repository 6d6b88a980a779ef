/**
 * How much memory the kept objects of a process take, counted by all its threads in shared memory.
 *
 * One budget per process: whoever needs room takes it, wherever it is. Each thread counts what it keeps in a word of its own too, so that what a
 * thread kept that was ended is given back. A process host has a budget of its own.
 */

/** What a thread needs to take part. Plain data for structured clone. */
export interface BudgetShare {
  readonly limitBytes: number;
  readonly total: SharedArrayBuffer;
  readonly own: SharedArrayBuffer;
}

export class Budget {
  readonly limitBytes: number;
  readonly #total: BigInt64Array;
  readonly #own: BigInt64Array;

  constructor({ limitBytes, total, own }: BudgetShare) {
    this.limitBytes = limitBytes;
    this.#total = new BigInt64Array(total);
    this.#own = new BigInt64Array(own);
  }

  /** Bytes in memory, of all threads. */
  get used(): number {
    return Number(Atomics.load(this.#total, 0));
  }

  /** Of this thread. */
  get own(): number {
    return Number(Atomics.load(this.#own, 0));
  }

  add(change: number): void {
    Atomics.add(this.#own, 0, BigInt(change));
    Atomics.add(this.#total, 0, BigInt(change));
  }

  /** A share for another thread of this process. */
  share(): BudgetShare {
    return {
      limitBytes: this.limitBytes,
      total: this.#total.buffer as SharedArrayBuffer,
      own: new SharedArrayBuffer(8),
    };
  }

  /** That thread is gone, and what it kept with it. */
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
