/**
 * Limits concurrency; waiting callers get their turns in order.
 */

export class Turns {
  #free: number;
  readonly #waiting: Set<() => void> = new Set();

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Resolves at the caller's turn to a function that ends it. Rejects with the signal's reason. */
  async take(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#free >= 1) this.#free -= 1;
    else await this.#wait(signal);
    let isGivenBack = false;
    return () => {
      if (isGivenBack) return;
      isGivenBack = true;
      const [next] = this.#waiting;
      if (next === undefined) this.#free += 1;
      else next();
    };
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(next);
        reject(signal?.reason);
      };
      const next = (): void => {
        this.#waiting.delete(next);
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.add(next);
    });
  }
}
