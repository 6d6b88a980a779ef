/**
 * A queue that items may also leave from the middle and return to at their old place.
 *
 * A Set skips every removed item again each time it finds its first one. This queue skips each
 * empty place once.
 */
export class Line<T> {
  readonly #items: Map<number, T> = new Map();
  #first = 0;
  #end = 0;

  get size(): number {
    return this.#items.size;
  }

  /** Returns the place of the item; the item keeps it. */
  add(item: T): number {
    const place = this.#end;
    this.#end += 1;
    this.#items.set(place, item);
    return place;
  }

  /** Returns the first place that is not empty. */
  first(): number | undefined {
    if (this.#items.size === 0) return undefined;
    while (!this.#items.has(this.#first)) this.#first += 1;
    return this.#first;
  }

  /** Returns the first item and leaves it in the queue. */
  peek(): T | undefined {
    const place = this.first();
    return place === undefined ? undefined : this.#items.get(place);
  }

  /** Whether the item of that place is still in the queue. */
  has(place: number): boolean {
    return this.#items.has(place);
  }

  /** Removes and returns the item at a place, if it is still there. */
  take(place: number): T | undefined {
    const item = this.#items.get(place);
    this.#items.delete(place);
    return item;
  }

  shift(): T | undefined {
    const place = this.first();
    return place === undefined ? undefined : this.take(place);
  }

  putBack(place: number, item: T): void {
    this.#items.set(place, item);
    this.#first = Math.min(this.#first, place);
  }

  /** Returns all items in no particular order. */
  entries(): Iterable<readonly [place: number, item: T]> {
    return this.#items.entries();
  }

  /** As `entries`, without their places. */
  items(): Iterable<T> {
    return this.#items.values();
  }
}
