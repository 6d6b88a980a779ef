/**
 * The run table of a thread, in memory that it shares with its worker.
 *
 * Layout: one Int32 for the id of the run whose code is on the stack (0: none), one that is 1 once
 * the thread exits, then one Int64 per slot with the time at which the user's code last started on
 * that run (0: not yet), in nanoseconds.
 */

import type { RunTable, RunTablePlace } from "./run-table.ts";

export class SharedRunTable implements RunTable {
  readonly place: RunTablePlace;
  readonly #thread: Int32Array;
  readonly #starts: BigInt64Array;

  private constructor(memory: SharedArrayBuffer) {
    this.place = { kind: "memory", memory };
    this.#thread = new Int32Array(memory, 0, 2);
    this.#starts = new BigInt64Array(memory, BigInt64Array.BYTES_PER_ELEMENT);
  }

  static withSlots(slots: number): SharedRunTable {
    return new SharedRunTable(new SharedArrayBuffer((slots + 1) * BigInt64Array.BYTES_PER_ELEMENT));
  }

  /** The table of another thread. */
  static over(memory: SharedArrayBuffer): SharedRunTable {
    return new SharedRunTable(memory);
  }

  get slots(): number {
    return this.#starts.length;
  }

  get runningId(): number {
    return Atomics.load(this.#thread, 0);
  }

  set runningId(id: number) {
    Atomics.store(this.#thread, 0, id);
  }

  get isExiting(): boolean {
    return Atomics.load(this.#thread, 1) === 1;
  }

  exiting(): void {
    Atomics.store(this.#thread, 1, 1);
  }

  start(slot: number): void {
    Atomics.store(this.#starts, slot, process.hrtime.bigint());
  }

  clear(slot: number): void {
    Atomics.store(this.#starts, slot, 0n);
  }

  hasStarted(slot: number): boolean {
    return Atomics.load(this.#starts, slot) !== 0n;
  }

  ageMs(slot: number): number | undefined {
    const start = Atomics.load(this.#starts, slot);
    return start === 0n ? undefined : Number(process.hrtime.bigint() - start) / 1e6;
  }

  close(): void {
    // Memory is collected.
  }
}
