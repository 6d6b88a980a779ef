/**
 * A queue with O(1) push and shift.
 *
 * `Array.prototype.shift` moves every element of a large array; mailboxes and submit queues hold a
 * million.
 */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Puts an item before all others. */
  unshift(item: T): void {
    if (this.#head === 0) this.#items.unshift(item);
    else this.#items[(this.#head -= 1)] = item;
  }

  /**
   * Puts an item before the first item that `isBehind` accepts, or at the end. The search is
   * linear.
   */
  insert(item: T, isBehind: (other: T) => boolean): void {
    for (let index = this.#head; index < this.#items.length; index++) {
      if (isBehind(this.#items[index] as T)) return void this.#items.splice(index, 0, item);
    }
    this.push(item);
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let index = this.#head; index < this.#items.length; index++) {
      yield this.#items[index] as T;
    }
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Removes and returns all items, the oldest first. */
  drain(): T[] {
    const items = this.#items.slice(this.#head) as T[];
    this.#items = [];
    this.#head = 0;
    return items;
  }
}
