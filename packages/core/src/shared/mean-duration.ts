/** How long something takes, in ms: a running mean that forgets. */

/** How much the last duration counts. */
const share = 0.05;

export class MeanDuration {
  #ms = Infinity;

  /** In ms; Infinity before the first. */
  get ms(): number {
    return this.#ms;
  }

  note(ms: number): void {
    this.#ms = this.#ms === Infinity ? ms : this.#ms + (ms - this.#ms) * share;
  }
}
