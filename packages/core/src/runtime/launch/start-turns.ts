/**
 * Whose turn it is to start a host: so many at once as the machine can start side by side, because a hundred at once are ready later than a hundred one
 * after the other, and nothing else runs meanwhile.
 */
import { availableParallelism } from "node:os";
import { Fifo } from "../../shared/fifo.ts";

/** A host that is not ready by then does not hold up the others. */
const longestMs = 5000;

/** How many hosts a machine with so many CPUs can start side by side. */
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

  /** Resolves when it is the caller's turn; whoever does not start a host then says `end`. */
  async next(): Promise<void> {
    if (this.isFull) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#starting += 1;
  }

  /** Takes a turn at once. */
  take(): void {
    this.#starting += 1;
  }

  /** The turn is over when what was started is ready. */
  until(ready: Promise<unknown>): void {
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      this.end();
    };
    const timer = setTimeout(end, longestMs);
    timer.unref();
    void ready.then(end, end);
  }

  end(): void {
    // The turn goes to the next one as it is.
    const next = this.#waiting.shift();
    if (next === undefined) this.#starting -= 1;
    else next();
  }

  /** Nobody waits any longer. */
  close(): void {
    for (const next of this.#waiting.drain()) next();
  }
}
