/**
 * Queues by lane: each lane is served in order, and lanes by their shares. An empty lane leaves its
 * share to the others, and does not save it up.
 */

import Queue from "yocto-queue";

export interface Place<Item> {
  readonly item: Item;
  readonly lane: string;
  /** The item no longer waits, and is skipped. */
  isGone: boolean;
}

export class Lanes<Item> {
  readonly #shares: ReadonlyMap<string, number>;
  readonly #queues: Map<string, Queue<Place<Item>>> = new Map();
  /** The service that each lane had, divided by its share. */
  readonly #served: Map<string, number> = new Map();
  /**
   * The service of the last served lane before its last item. It only grows, also while all lanes
   * are empty.
   */
  #reached = 0;

  /** @param shares lanes that are not named have 1 */
  constructor(shares: Readonly<Record<string, number>> = {}) {
    this.#shares = new Map(Object.entries(shares));
  }

  /** Returns its place, for who may want to leave. */
  push(lane: string, item: Item): Place<Item> {
    let queue = this.#queues.get(lane);
    if (queue === undefined) {
      // A new lane begins at the others' present service: it has not waited.
      this.#served.set(lane, Math.max(this.#servedOf(lane), this.#reached));
      queue = new Queue();
      this.#queues.set(lane, queue);
    }
    const place = { item, lane, isGone: false };
    queue.enqueue(place);
    return place;
  }

  /** Counts an item of the lane: also one that need not wait, because nothing does. */
  served(lane: string): void {
    this.#reached = Math.max(this.#servedOf(lane), this.#reached);
    this.#served.set(lane, this.#reached + 1 / (this.#shares.get(lane) ?? 1));
  }

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  /** Returns the next item: the first of the lane with the least service. */
  peek(): Place<Item> | undefined {
    for (;;) {
      const lane = this.#first();
      const queue = lane === undefined ? undefined : this.#queues.get(lane);
      if (lane === undefined || queue === undefined) return undefined;
      const place = queue.peek();
      if (place?.isGone === false) return place;
      this.#drop(lane, queue);
    }
  }

  /** Removes the next item and counts it as served. */
  shift(): Item | undefined {
    const place = this.peek();
    if (place === undefined) return undefined;
    const { lane, item } = place;
    this.served(lane);
    this.#drop(lane, this.#queues.get(lane));
    return item;
  }

  /** How many wait, with those who do no longer and have not been passed over yet. */
  get size(): number {
    let size = 0;
    for (const queue of this.#queues.values()) size += queue.size;
    return size;
  }

  /** `size` of one lane. */
  sizeOf(lane: string): number {
    return this.#queues.get(lane)?.size ?? 0;
  }

  /** Removes and returns the waiting items that the test is true for. */
  takeOut(test: (item: Item) => boolean): Item[] {
    const taken: Item[] = [];
    for (const queue of this.#queues.values()) {
      for (const place of queue) {
        if (place.isGone || !test(place.item)) continue;
        place.isGone = true;
        taken.push(place.item);
      }
    }
    return taken;
  }

  /** Removes and returns all waiting items, lane by lane. */
  drain(): Item[] {
    const places = [...this.#queues.values()].flatMap((queue) => [...queue]);
    this.#queues.clear();
    return places.filter(({ isGone }) => !isGone).map(({ item }) => item);
  }

  #first(): string | undefined {
    let first: string | undefined;
    for (const lane of this.#queues.keys()) {
      if (first === undefined || this.#servedOf(lane) < this.#servedOf(first)) first = lane;
    }
    return first;
  }

  #drop(lane: string, queue: Queue<Place<Item>> | undefined): void {
    queue?.dequeue();
    if (queue === undefined || queue.size === 0) this.#queues.delete(lane);
  }

  #servedOf(lane: string): number {
    return this.#served.get(lane) ?? 0;
  }
}
