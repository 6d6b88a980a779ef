/**
 * Counts the deaths of an actor that is replaced, in all and in a row: a death without one result
 * since the one before.
 */

/** Five, as Erlang's supervisors allow a handful: the next start would very likely end alike. */
const MOST_IN_A_ROW = 5;

export class DeathCount {
  #total = 0;
  #inARow = 0;

  get total(): number {
    return this.#total;
  }

  get inARow(): number {
    return this.#inARow;
  }

  get areTooMany(): boolean {
    return this.#inARow > MOST_IN_A_ROW;
  }

  add(): void {
    this.#total += 1;
    this.#inARow += 1;
  }

  /** There was a result. */
  reset(): void {
    this.#inARow = 0;
  }
}
