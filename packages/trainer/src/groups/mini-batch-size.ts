/**
 * How large the next mini-batch of a schedule is that trains as rewards come, chosen by the exposed wait for the one before: how long the trainer had nothing to do but to wait for it.
 *
 * A small mini-batch begins early and leaves little to do behind the last reward; each one costs a fixed time of its own, which is why the recipe's pipelines lose to one large update where
 * rewards are fast. So: a part that was waited for longer than a tenth of what its update then took is followed by one that asks for half as much, any other by one that asks for twice as much,
 * between a quarter of `ppoMiniBatchSize` and all of it. Whatever else is done by then comes along, up to what the batch has left: growing is never waited for, and where all rewards are there
 * a batch is one update. The rule is ours; that the number of mini-batches is to follow the exposed wait comes from the simulation of verl's recorded runs over all numbers of slots.
 */

/** In groups. */
export interface GroupRange {
  readonly least: number;
  /** What is done anyway comes along, up to so many. */
  readonly most: number;
}

/** Of its update's time: less is what a turn of the loop takes. */
const tolerance = 0.1;

export class AdaptiveMiniBatchSize {
  readonly #most: number;
  readonly #least: number;
  #size: number;
  #waitMs = 0;

  /** @param size of the next one, where a run goes on; it begins with the largest */
  constructor(ppoMiniBatchSize: number, size: number = ppoMiniBatchSize) {
    this.#most = ppoMiniBatchSize;
    this.#least = Math.max(1, Math.floor(ppoMiniBatchSize / 4));
    this.#size = Math.min(this.#most, Math.max(this.#least, size));
  }

  /** Of the next one, in groups. */
  get size(): number {
    return this.#size;
  }

  /** @param left groups of the batch that no mini-batch has had */
  next(left: number): GroupRange {
    return { least: Math.min(this.#size, left), most: left };
  }

  /** For the next mini-batch; several waits for one are one. */
  waited(ms: number): void {
    this.#waitMs += ms;
  }

  /** What its advantages and updates took. */
  worked(ms: number): void {
    const isExposed = this.#waitMs > tolerance * ms;
    this.#waitMs = 0;
    this.#size = isExposed
      ? Math.max(this.#least, Math.floor(this.#size / 2))
      : Math.min(this.#most, this.#size * 2);
  }
}
