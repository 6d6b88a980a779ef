/**
 * Where a caller keeps the promises that wait for an answer: by number in a Map, as everybody does,
 * or in slots that are used again.
 *
 * The Map costs half of the throughput of many calls in flight. It is rebuilt as entries come and
 * go, the old tables reach the old generation, and everything that they still point to survives
 * each scavenge until the next full collection (seen with --trace-gc).
 */

export interface PendingTable<T> {
  /** Returns the id under which `take` finds it, once. */
  add(value: T): number;
  take(id: number): T | undefined;
}

export class PendingMap<T> implements PendingTable<T> {
  readonly #entries: Map<number, T> = new Map();
  #nextId = 0;

  add(value: T): number {
    const id = this.#nextId++;
    this.#entries.set(id, value);
    return id;
  }

  take(id: number): T | undefined {
    const value = this.#entries.get(id);
    this.#entries.delete(id);
    return value;
  }
}

export class PendingSlots<T> implements PendingTable<T> {
  readonly #slots: (T | undefined)[] = [];
  readonly #free: number[] = [];

  add(value: T): number {
    const id = this.#free.pop() ?? this.#slots.length;
    this.#slots[id] = value;
    return id;
  }

  take(id: number): T | undefined {
    const value = this.#slots[id];
    this.#slots[id] = undefined;
    this.#free.push(id);
    return value;
  }
}
