/** The calls of an actor that have no answer, and the handle that keeps the actor until then. */

/** The handle by which an actor is called, which is alive as long as this is. */
export interface Hold {
  readonly handle: object;
  /** Whether it keeps its actor alive. */
  readonly isCounted: boolean;
}

export class UnansweredCalls {
  /** How many there are, sent or not. */
  count = 0;
  #hold: Hold | undefined;

  /** The handle that is kept now. */
  get held(): Hold | undefined {
    return this.#hold;
  }

  /** The handle of a call that was just made. */
  keep(hold: Hold): void {
    if (this.count > 0 && (this.#hold === undefined || hold.isCounted)) this.#hold = hold;
  }

  settled(): void {
    this.count -= 1;
    if (this.count === 0) this.#hold = undefined;
  }
}
