/** Counts who waits for an answer, and tells when the first begins and the last ends. */
export class Waiting {
  #count = 0;
  readonly #onChange: (waiting: boolean) => void;

  constructor(onChange: (waiting: boolean) => void) {
    this.#onChange = onChange;
  }

  begin(): void {
    this.#count += 1;
    if (this.#count === 1) this.#onChange(true);
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#onChange(false);
  }
}
