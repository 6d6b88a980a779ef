/** Time that goes on when a test says so. */
import type { Clock } from "../src/time/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

export class VirtualClock implements Clock {
  #nowMs = 0;
  #timers: Timer[] = [];

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, ms), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }

  /** Runs what is due until then, in order of time and then of its making; promises settle in between. */
  async advanceTo(ms: number): Promise<void> {
    for (;;) {
      await settled();
      const next = this.#timers.reduce<Timer | undefined>(
        (first, one) => (first === undefined || one.atMs < first.atMs ? one : first),
        undefined,
      );
      if (next === undefined || next.atMs > ms) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
    }
    this.#nowMs = Math.max(this.#nowMs, ms);
  }

  async sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }
}

/** Reactions of reactions, too. */
async function settled(): Promise<void> {
  for (let round = 0; round < 10; round++) await Promise.resolve();
}
