/**
 * Who has a call that was sent ahead of its turn, in memory that caller and host share: the host,
 * once it begins it, or again the caller, which may take it back before that. A host whose thread
 * is held can be asked for nothing, so messages would not do.
 */

const open = 0;
const begun = 1;
const takenBack = 2;

export class Claims {
  readonly #memory: () => Int32Array | undefined;

  /**
   * @param memory a number for each of the first ids of calls, the same at both sides; undefined
   * where nothing is shared
   */
  constructor(memory: () => Int32Array | undefined) {
    this.#memory = memory;
  }

  /** For the caller, before it sends a call. Returns whether it can take that call back. */
  opens(id: number): boolean {
    const cells = this.#memory();
    if (cells === undefined || id >= cells.length) return false;
    Atomics.store(cells, id, open);
    return true;
  }

  /**
   * For the host. Returns whether the call may begin. The number may be left from an earlier call,
   * if the caller did not have the memory when it sent this one.
   */
  begins(id: number): boolean {
    const cells = this.#memory();
    if (cells === undefined || id >= cells.length) return true;
    return Atomics.exchange(cells, id, begun) !== takenBack;
  }

  /** For the caller, of a call whose claim it opened. */
  hasBegun(id: number): boolean {
    const cells = this.#memory();
    return cells !== undefined && Atomics.load(cells, id) === begun;
  }

  /** For the caller. Returns whether the call is its own again: the host will not begin it. */
  takesBack(id: number): boolean {
    const cells = this.#memory();
    if (cells === undefined || id >= cells.length) return false;
    return Atomics.compareExchange(cells, id, open, takenBack) === open;
  }
}
