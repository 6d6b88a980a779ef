/** The times of a step's phases by verl's timers; a phase may run several times in a step. */

import type { PhaseRecord } from "../tracking/tracking-logger.ts";

export interface ClockListeners {
  readonly begins: (name: string) => void;
  /** Now and then, of the phase that began last. */
  readonly goesOn: (name: string) => void;
  readonly ended: (phase: PhaseRecord) => void;
}

/** For people who look. */
const everyMs = 250;

export class StepClock {
  readonly step: number;
  readonly #startMs: number = now();
  readonly #listeners: ClockListeners;
  readonly #seconds = new Map<string, number>();
  #ticking: NodeJS.Timeout | undefined;

  constructor(step: number, listeners: ClockListeners) {
    this.step = step;
    this.#listeners = listeners;
  }

  /** Runs it and adds its time to the phase's. A name may be used again. */
  async time<Result>(name: string, run: () => Result | PromiseLike<Result>): Promise<Result> {
    const { begins, goesOn, ended } = this.#listeners;
    const startMs = now();
    begins(name);
    clearInterval(this.#ticking);
    const ticking = setInterval(() => goesOn(name), everyMs).unref();
    this.#ticking = ticking;
    try {
      return await run();
    } finally {
      clearInterval(ticking);
      const endMs = now();
      this.#seconds.set(name, (this.#seconds.get(name) ?? 0) + (endMs - startMs) / 1000);
      ended({ step: this.step, name, startMs, endMs });
    }
  }

  /**
   * Seconds of all phases so far, and `step`, which is all of the time since it began but for
   * `testing`: as in verl, validation comes behind the step.
   */
  timings(): Record<string, number> {
    const testing = this.#seconds.get("testing") ?? 0;
    return { ...Object.fromEntries(this.#seconds), step: (now() - this.#startMs) / 1000 - testing };
  }
}

/** In ms since 1970; it never goes back. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
