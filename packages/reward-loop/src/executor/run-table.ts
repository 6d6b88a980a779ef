/**
 * Memory that an executor's thread shares with its worker: who runs there now, and since when each sample is at work.
 * It answers when the thread cannot: while user code blocks it, and after its death.
 *
 * Layout: one Int32 for the id of the run whose code is on the stack (0: nobody), one that is 1 once the thread ends, then one Int64 per slot with the time at which the
 * user's code last started on that run (0: not yet). Times are process.hrtime's nanoseconds, one clock for all threads of a process.
 */

export class RunTable {
  readonly memory: SharedArrayBuffer;
  readonly #thread: Int32Array;
  readonly #starts: BigInt64Array;

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.#thread = new Int32Array(memory, 0, 2);
    this.#starts = new BigInt64Array(memory, BigInt64Array.BYTES_PER_ELEMENT);
  }

  static withSlots(slots: number): RunTable {
    return new RunTable(new SharedArrayBuffer((slots + 1) * BigInt64Array.BYTES_PER_ELEMENT));
  }

  /** The table of another thread. */
  static over(memory: SharedArrayBuffer): RunTable {
    return new RunTable(memory);
  }

  get slots(): number {
    return this.#starts.length;
  }

  /** Id of the run whose code is on the stack; 0 for nobody. */
  get runningId(): number {
    return Atomics.load(this.#thread, 0);
  }

  set runningId(id: number) {
    Atomics.store(this.#thread, 0, id);
  }

  /** The thread is on its way out: exit handlers may still run, its end is still to be told. */
  get isExiting(): boolean {
    return Atomics.load(this.#thread, 1) === 1;
  }

  exiting(): void {
    Atomics.store(this.#thread, 1, 1);
  }

  start(slot: number): void {
    Atomics.store(this.#starts, slot, process.hrtime.bigint());
  }

  /** For the next run in this slot. */
  clear(slot: number): void {
    Atomics.store(this.#starts, slot, 0n);
  }

  hasStarted(slot: number): boolean {
    return Atomics.load(this.#starts, slot) !== 0n;
  }

  /** How long the user's code has been at work on the run in this slot; undefined before its start. */
  ageMs(slot: number): number | undefined {
    const start = Atomics.load(this.#starts, slot);
    return start === 0n ? undefined : Number(process.hrtime.bigint() - start) / 1e6;
  }
}
