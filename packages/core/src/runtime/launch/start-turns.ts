/**
 * Limits how many hosts start at once: a hundred that start side by side are ready later than a
 * hundred in a row, and nothing else runs meanwhile.
 */
import { availableParallelism } from "node:os";
import { Fifo } from "../../shared/fifo.ts";
import { timers } from "../../shared/machine/timers.ts";

/** A host that is not ready after this time, in ms, no longer delays the others. */
const longestMs = 5000;

/** Returns how many hosts a machine with this many CPUs can start side by side. */
export function startsAtOnce(cpus: number = availableParallelism()): number {
  return 2 * cpus;
}

export class StartTurns {
  readonly #most: number;
  readonly #waiting: Fifo<() => void> = new Fifo();
  #starting = 0;

  constructor(most: number = startsAtOnce()) {
    this.#most = most;
  }

  /** Whether a start would have to wait. */
  get isFull(): boolean {
    return this.#starting >= this.#most;
  }

  /** Whether no host is starting. */
  get isIdle(): boolean {
    return this.#starting === 0;
  }

  /**
   * Resolves when it is the caller's turn; a caller that does not start a host then calls `end`.
   */
  async next(): Promise<void> {
    if (this.isFull) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#starting += 1;
  }

  /** Takes a turn at once. */
  take(): void {
    this.#starting += 1;
  }

  /** Ends the turn when the started host is ready. */
  until(ready: Promise<unknown>): void {
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      timers.clearTimeout(timer);
      this.end();
    };
    const timer = timers.setTimeout(end, longestMs);
    timer.unref();
    void ready.then(end, end);
  }

  end(): void {
    // The turn passes to the next one.
    const next = this.#waiting.shift();
    if (next === undefined) this.#starting -= 1;
    else next();
  }

  /** Resolves all waits. */
  close(): void {
    for (const next of this.#waiting.drain()) next();
  }
}
