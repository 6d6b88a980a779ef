/**
 * Listens to the signals of those who wait for scores: to each of them once, however many samples
 * it is for, and no longer than one of them waits.
 */

export class AbortWatch {
  readonly #giveUp: (signal: AbortSignal) => void;
  /** How to end the waiting, of all that wait with a signal. */
  readonly #waiting: Map<AbortSignal, Set<() => void>> = new Map();

  /** @param giveUp called once when a signal is aborted that somebody waits with */
  constructor(giveUp: (signal: AbortSignal) => void) {
    this.#giveUp = giveUp;
  }

  /** Settles as `work` does. Rejects with the signal's reason as soon as that is aborted. */
  until<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const end = (): void => reject(signal.reason);
      const leave = this.#enter(signal, end);
      work().then(
        (result) => {
          leave();
          resolve(result);
        },
        (error: unknown) => {
          leave();
          reject(error);
        },
      );
    });
  }

  #enter(signal: AbortSignal, end: () => void): () => void {
    const ends = this.#waiting.get(signal) ?? this.#listen(signal);
    ends.add(end);
    return () => {
      ends.delete(end);
      if (ends.size > 0 || this.#waiting.get(signal) !== ends) return;
      this.#waiting.delete(signal);
      signal.removeEventListener("abort", this.#aborted);
    };
  }

  #listen(signal: AbortSignal): Set<() => void> {
    const ends = new Set<() => void>();
    this.#waiting.set(signal, ends);
    signal.addEventListener("abort", this.#aborted, { once: true });
    return ends;
  }

  readonly #aborted = ({ target }: Event): void => {
    if (!(target instanceof AbortSignal)) return;
    const ends = this.#waiting.get(target);
    this.#waiting.delete(target);
    this.#giveUp(target);
    for (const end of ends ?? []) end();
  };
}
