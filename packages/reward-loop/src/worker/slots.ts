/** How many samples of a worker are at work at once; the others wait in order. */

import Queue from "yocto-queue";

export class Slots {
  readonly #waiting = new Queue<() => void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves to what `work` does when there is a slot for it: now, or when one is given back. */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free === 0) {
      return new Promise((resolve) => this.#waiting.enqueue(() => resolve(this.#begin(work))));
    }
    this.#free -= 1;
    return this.#begin(work);
  }

  /** Its slot is free, or goes on to who waits, before anybody hears of what it came to. */
  #begin<Result>(work: () => Promise<Result>): Promise<Result> {
    return work().finally(() => this.#release());
  }

  #release(): void {
    const next = this.#waiting.dequeue();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
