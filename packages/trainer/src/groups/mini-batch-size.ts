/**
 * The size of the next mini-batch of a schedule that trains as rewards come. It follows the exposed
 * wait: how long the trainer had nothing to do but wait for the mini-batch before.
 *
 * A small mini-batch begins early and leaves little to do after the last reward, but each one costs
 * a fixed time: the recipe's pipelines lose to one large update where rewards are fast. If the wait
 * took longer than a tenth of the update after it, the next size is half of the last one, else it
 * is twice the last one, between a quarter of `ppoMiniBatchSize` and all of it. Groups that are
 * scored by then come along, up to the rest of the batch, so that where all rewards are there a
 * batch is one update. The rule is ours; a simulation of verl's recorded runs over all numbers of
 * slots shows that the number of mini-batches is to follow the exposed wait.
 */

/** In groups. */
export interface GroupRange {
  readonly least: number;
  /** Groups that are scored by then come along, up to this number. */
  readonly most: number;
}

/** Share of the update's time; a shorter wait is just a turn of the loop. */
const tolerance = 0.1;

export class AdaptiveMiniBatchSize {
  readonly #most: number;
  readonly #least: number;
  #size: number;
  #waitMs = 0;

  /**
   * @param size of the next mini-batch where a run is resumed; a new run begins with the largest
   */
  constructor(ppoMiniBatchSize: number, size: number = ppoMiniBatchSize) {
    this.#most = ppoMiniBatchSize;
    this.#least = Math.max(1, Math.floor(ppoMiniBatchSize / 4));
    this.#size = Math.min(this.#most, Math.max(this.#least, size));
  }

  /** Size of the next mini-batch, in groups. */
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

  /** Adds the time of the mini-batch's advantages and updates, in milliseconds. */
  worked(ms: number): void {
    const isExposed = this.#waitMs > tolerance * ms;
    this.#waitMs = 0;
    this.#size = isExposed
      ? Math.max(this.#least, Math.floor(this.#size / 2))
      : Math.min(this.#most, this.#size * 2);
  }
}
