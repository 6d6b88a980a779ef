/** Where the time of a step goes: phases by verl's timers, each of which may run several times in a step. */

import type { PhaseRecord } from "../tracking/tracking-logger.ts";

export class StepClock {
  readonly step: number;
  readonly #startMs: number = now();
  readonly #onPhase: (phase: PhaseRecord) => void;
  readonly #onBegin: (name: string) => void;
  readonly #seconds = new Map<string, number>();

  constructor(
    step: number,
    onPhase: (phase: PhaseRecord) => void,
    onBegin: (name: string) => void,
  ) {
    this.step = step;
    this.#onPhase = onPhase;
    this.#onBegin = onBegin;
  }

  /** Runs it and adds its time to the phase's. A name may be used again. */
  async time<Result>(name: string, run: () => Result | PromiseLike<Result>): Promise<Result> {
    const startMs = now();
    this.#onBegin(name);
    try {
      return await run();
    } finally {
      const endMs = now();
      this.#seconds.set(name, (this.#seconds.get(name) ?? 0) + (endMs - startMs) / 1000);
      this.#onPhase({ step: this.step, name, startMs, endMs });
    }
  }

  /** Seconds of all phases so far, and `step`, which is all of the time since it began. */
  timings(): Record<string, number> {
    return { ...Object.fromEntries(this.#seconds), step: (now() - this.#startMs) / 1000 };
  }
}

/** In ms since 1970; it never goes back. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
