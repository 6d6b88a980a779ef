/** How soon an actor is started again: at once after a life, later after each failed start. */

/** Milliseconds: the pause doubles from the second failed start on. */
const first = 100;
const longest = 10_000;

export class RestartPause {
  #failedStarts = 0;

  /** Returns the pause before the next start, in ms, after a life or a failed start. */
  next(lived: boolean): number {
    this.#failedStarts = lived ? 0 : this.#failedStarts + 1;
    const doublings = this.#failedStarts - 2;
    return doublings < 0 ? 0 : Math.min(longest, first * 2 ** doublings);
  }
}
