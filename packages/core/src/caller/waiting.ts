/** Counts who waits for an answer, and tells when the first begins and the last ends. */
export class Waiting {
  #count = 0;
  #epoch = 0;
  readonly #onChange: (waiting: boolean) => void;

  constructor(onChange: (waiting: boolean) => void) {
    this.#onChange = onChange;
  }

  /** Returns the end of this wait; call it once. */
  begin(): () => void {
    const epoch = this.#epoch;
    this.#count += 1;
    if (this.#count === 1) this.#onChange(true);
    return () => {
      if (epoch !== this.#epoch) return;
      this.#count -= 1;
      if (this.#count === 0) this.#onChange(false);
    };
  }

  /** Forgets who waits now: they belong to work that is over. */
  reset(): void {
    this.#epoch += 1;
    this.#count = 0;
  }
}
