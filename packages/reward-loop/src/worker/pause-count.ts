/**
 * A watched number: its watcher is told when it has changed, and now and then, so that the watching
 * does not look stuck.
 */

import { setTimeout as delay } from "node:timers/promises";

const againMs = 5000;

export class PauseCount {
  #count = 0;
  #changed = Promise.withResolvers<void>();

  add(change: 1 | -1): void {
    this.#count += change;
    this.#changed.resolve();
  }

  /** Yields the number after changes; several changes between two reads are one. */
  async *changes(): AsyncGenerator<number> {
    for (;;) {
      const count = this.#count;
      yield count;
      const later = new AbortController();
      const again = delay(againMs, undefined, { ref: false, signal: later.signal });
      await Promise.race([this.#changed.promise, again.catch(() => undefined)]);
      later.abort();
      this.#changed = Promise.withResolvers();
    }
  }
}
