/**
 * The slots of one executor's run table, as its worker hands them out: which are free, and when the
 * run of each was sent. Knows no runs.
 */

import { itemAt } from "@rayling/reward-manager-registry/values";

export class RunSlots {
  readonly count: number;
  /** Slots that were given back. */
  readonly #free: number[] = [];
  /** The first slot that was never taken: they are taken in order, so that tables by slot grow. */
  #fresh = 0;
  /** As a field of a run the time would take 24 bytes. */
  readonly #sentAt: Float64Array;

  constructor(count: number) {
    this.count = count;
    this.#sentAt = new Float64Array(count);
  }

  get hasFree(): boolean {
    return this.#free.length > 0 || this.#fresh < this.count;
  }

  /** Takes a slot for a run that is sent now. */
  take(): number {
    if (!this.hasFree) throw new Error("an executor was given more samples than it has slots");
    const slot = this.#free.pop() ?? this.#fresh++;
    this.#sentAt[slot] = performance.now();
    return slot;
  }

  giveBack(slot: number): void {
    this.#free.push(slot);
  }

  /** Returns when the run of a slot was sent, as of performance.now(). */
  sentAt(slot: number): number {
    return itemAt(this.#sentAt, slot);
  }
}
