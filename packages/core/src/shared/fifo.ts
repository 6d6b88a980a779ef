/**
 * A queue with O(1) push and shift, and the way to take the oldest entries of a Map as fast.
 *
 * `Array.prototype.shift` moves every element of a large array; mailboxes and submit queues hold a
 * million. A queue that empties with every item keeps its array: a new one would be made for each.
 */

/** An array of at most so many places is kept when the queue is empty. */
const keptPlaces = 1024;

export class Fifo<T> {
  /** Places before the head and from the tail on hold nothing. */
  #items: (T | undefined)[] = [];
  #head = 0;
  #tail = 0;

  get size(): number {
    return this.#tail - this.#head;
  }

  push(item: T): void {
    this.#items[this.#tail++] = item;
  }

  /** Puts an item before all others. */
  unshift(item: T): void {
    if (this.#head > 0) {
      this.#items[(this.#head -= 1)] = item;
      return;
    }
    this.#items.unshift(item);
    this.#tail += 1;
  }

  /**
   * Puts an item before the first item that `isBehind` accepts, or at the end. The search is
   * linear.
   */
  insert(item: T, isBehind: (other: T) => boolean): void {
    for (let index = this.#head; index < this.#tail; index++) {
      if (!isBehind(this.#items[index] as T)) continue;
      this.#items.splice(index, 0, item);
      this.#tail += 1;
      return;
    }
    this.push(item);
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let index = this.#head; index < this.#tail; index++) {
      yield this.#items[index] as T;
    }
  }

  peek(): T | undefined {
    return this.#head === this.#tail ? undefined : this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.#head === this.#tail) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head === this.#tail) {
      if (this.#items.length > keptPlaces) this.#items = [];
      this.#head = 0;
      this.#tail = 0;
    } else if (this.#head > keptPlaces && this.#head * 2 > this.#tail) {
      this.#items = this.#items.slice(this.#head, this.#tail);
      this.#tail -= this.#head;
      this.#head = 0;
    }
    return item;
  }

  /** Removes and returns all items, the oldest first. */
  drain(): T[] {
    const items = this.#items.slice(this.#head, this.#tail) as T[];
    this.#items = [];
    this.#head = 0;
    this.#tail = 0;
    return items;
  }
}

/**
 * Takes entries from a Map, the oldest first.
 *
 * Each new iterator of a Map passes over all entries that were deleted since V8 made its table, so
 * that `const [oldest] = map` costs as many steps. This one keeps an iterator, which passes over
 * each once.
 */
export class OldestFirst<Key, Value> {
  readonly #map: Map<Key, Value>;
  #entries: Iterator<[Key, Value], undefined> | undefined;

  constructor(map: Map<Key, Value>) {
    this.#map = map;
  }

  /** Removes the oldest entry and returns it; undefined where there is none. */
  take(): [Key, Value] | undefined {
    const oldest = this.#entries?.next().value ?? this.#begin();
    if (oldest !== undefined) this.#map.delete(oldest[0]);
    return oldest;
  }

  /** An iterator that has ended does not see what comes later. */
  #begin(): [Key, Value] | undefined {
    this.#entries = this.#map.entries();
    return this.#entries.next().value;
  }
}
