/**
 * A queue that elements may also leave from the middle, and return to at their old place.
 *
 * A Set would do, but finding its first element skips every one that left before it. Here each place is skipped once.
 */
export class Line<T> {
  readonly #items: Map<number, T> = new Map();
  #first = 0;
  #end = 0;

  get size(): number {
    return this.#items.size;
  }

  /** Returns the place of the item, which stays its own. */
  add(item: T): number {
    const place = this.#end;
    this.#end += 1;
    this.#items.set(place, item);
    return place;
  }

  /** The first place that is not empty. */
  first(): number | undefined {
    if (this.#items.size === 0) return undefined;
    while (!this.#items.has(this.#first)) this.#first += 1;
    return this.#first;
  }

  /** What stands first. */
  peek(): T | undefined {
    const place = this.first();
    return place === undefined ? undefined : this.#items.get(place);
  }

  /** Whether the item of that place is still there. */
  has(place: number): boolean {
    return this.#items.has(place);
  }

  /** Takes out what stands at a place, if it is still there. */
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

  /** In no order. */
  entries(): Iterable<readonly [place: number, item: T]> {
    return this.#items.entries();
  }
}
