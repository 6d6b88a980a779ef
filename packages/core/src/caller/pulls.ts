/**
 * How many bytes of other runtimes' values are on their way into this one at once: a value that comes in parts waits until there is room for it. One that is
 * more than that comes alone.
 */
import { Fifo } from "../shared/fifo.ts";

interface Pull {
  readonly bytes: number;
  readonly begin: (end: () => void) => void;
}

export class Pulls {
  readonly #limitBytes: number;
  readonly #waiting: Fifo<Pull> = new Fifo();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** In order of asking. `begin` is called once, now or later, and calls `end` when the value is here or lost. */
  take(bytes: number, begin: (end: () => void) => void): void {
    this.#waiting.push({ bytes, begin });
    this.#next();
  }

  #next(): void {
    for (;;) {
      const first = this.#waiting.peek();
      if (first === undefined) return;
      if (this.#bytes > 0 && this.#bytes + first.bytes > this.#limitBytes) return;
      this.#waiting.shift();
      this.#bytes += first.bytes;
      let hasEnded = false;
      first.begin(() => {
        if (hasEnded) return;
        hasEnded = true;
        this.#bytes -= first.bytes;
        this.#next();
      });
    }
  }
}
