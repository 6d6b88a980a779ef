/**
 * Who has a call that was sent ahead of its turn, in memory that caller and host share: the host,
 * once it begins it, or again the caller, which may take it back before that. A host whose thread
 * is held can be asked for nothing, so messages would not do.
 */

/** Calls with larger ids cannot be claimed. */
export const mostClaims = 1024;

const open = 0;
const begun = 1;
const takenBack = 2;

export class Claims {
  readonly #cells: Int32Array;

  /** @param cells one for each id of a call, the same at both sides */
  constructor(cells: Int32Array) {
    this.#cells = cells;
  }

  /** For the caller, before it sends a call. */
  open(id: number): void {
    Atomics.store(this.#cells, id, open);
  }

  /** For the host. Returns whether the call may begin. */
  begins(id: number): boolean {
    return Atomics.compareExchange(this.#cells, id, open, begun) === open;
  }

  /** For the caller. Returns whether the call is its own again: the host will not begin it. */
  takesBack(id: number): boolean {
    return Atomics.compareExchange(this.#cells, id, open, takenBack) === open;
  }
}
