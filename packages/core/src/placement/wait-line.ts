/** A line in which people wait: first come first, and whoever gives up leaves from the middle at no cost. */

export interface Place<T> {
  readonly item: T;
  before: Place<T> | undefined;
  after: Place<T> | undefined;
  waiting: boolean;
}

export class WaitLine<T> {
  #first: Place<T> | undefined;
  #last: Place<T> | undefined;
  #size = 0;

  get first(): T | undefined {
    return this.#first?.item;
  }

  get size(): number {
    return this.#size;
  }

  join(item: T): Place<T> {
    const place: Place<T> = { item, before: this.#last, after: undefined, waiting: true };
    if (this.#last === undefined) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
    this.#size += 1;
    return place;
  }

  /** Does nothing for who has left. */
  leave(place: Place<T>): void {
    if (!place.waiting) return;
    place.waiting = false;
    if (place.before === undefined) this.#first = place.after;
    else place.before.after = place.after;
    if (place.after === undefined) this.#last = place.before;
    else place.after.before = place.before;
    this.#size -= 1;
  }

  shift(): T | undefined {
    const place = this.#first;
    if (place !== undefined) this.leave(place);
    return place?.item;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let place = this.#first; place !== undefined; place = place.after) yield place.item;
  }
}
