/**
 * What an endpoint has said is left of one of its limits, and until when: no more is let through until then, or until it says more. Pure: the caller has the clock.
 *
 * What it says is as of when it answered. Calls that were let through behind the one that was answered may not have been counted there yet, nor those before it that are still on their way, as they may come to it later:
 * what is left is at least what it said without them (but for calls whose answers overtook its own), and at most what it said; an answer to a later call knows better. When the time has come nothing is known any more, and nothing held back.
 */

import type { AnnouncedLimit } from "../faults/rate-limit-headers.ts";

/** A call that was let through. */
export interface TakenCall {
  readonly number: number;
  /** By all calls up to it. */
  readonly taken: number;
}

export class AnnouncedBudget {
  /** Undefined: nothing is known. */
  #left: number | undefined;
  #untilMs = 0;
  /** By all calls so far. */
  #taken = 0;
  #calls = 0;
  /** What calls have taken that are not over, by their numbers, in their order. */
  readonly #underWay: Map<number, number> = new Map();

  /** How long until so many may be taken. */
  waitMs(count: number, nowMs: number): number {
    const left = this.#leftAt(nowMs);
    return left === undefined || left >= count ? 0 : this.#untilMs - nowMs;
  }

  /** A call is let through. */
  take(count: number): TakenCall {
    this.#calls += 1;
    this.#taken += count;
    this.#underWay.set(this.#calls, count);
    if (this.#left !== undefined) this.#left -= count;
    return { number: this.#calls, taken: this.#taken };
  }

  /** A call is over. @param said undefined: nothing of this limit */
  over({ number, taken }: TakenCall, said: AnnouncedLimit | undefined, nowMs: number): void {
    this.#underWay.delete(number);
    if (said === undefined) return;
    const { remaining, resetMs } = said;
    let uncounted = this.#taken - taken;
    for (const [other, count] of this.#underWay) {
      if (other > number) break;
      uncounted += count;
    }
    const least = remaining - uncounted;
    const left = this.#leftAt(nowMs) ?? least;
    this.#left = Math.min(remaining, Math.max(left, least));
    // Answers overtake each other: one that was given before may say an earlier time.
    this.#untilMs = Math.max(this.#untilMs, nowMs + resetMs);
  }

  #leftAt(nowMs: number): number | undefined {
    if (nowMs >= this.#untilMs) this.#left = undefined;
    return this.#left;
  }
}
