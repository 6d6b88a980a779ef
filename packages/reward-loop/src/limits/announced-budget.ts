/**
 * What an endpoint has said is left of one of its limits, and until when: no more is let through until then, or until it says more. Pure: the caller has the clock.
 *
 * What it says is as of when it answered. Calls that were let through behind the one that was answered may not have been counted there yet, so that what is left is at least what it said without
 * them, and at most what it said; an answer to a later call knows better. When the time has come nothing is known any more, and nothing held back.
 */

import type { AnnouncedLimit } from "../faults/rate-limit-headers.ts";

export class AnnouncedBudget {
  /** Undefined: nothing is known. */
  #left: number | undefined;
  #untilMs = 0;
  /** By all calls so far. */
  #taken = 0;

  /** How long until so many may be taken. */
  waitMs(count: number, nowMs: number): number {
    const left = this.#leftAt(nowMs);
    return left === undefined || left >= count ? 0 : this.#untilMs - nowMs;
  }

  /** A call is let through. Returns what `hear` wants to know of it. */
  take(count: number): number {
    this.#taken += count;
    if (this.#left !== undefined) this.#left -= count;
    return this.#taken;
  }

  /** @param taken of the call that was answered so */
  hear({ remaining, resetMs }: AnnouncedLimit, taken: number, nowMs: number): void {
    const least = remaining - (this.#taken - taken);
    const left = this.#leftAt(nowMs) ?? least;
    this.#left = Math.min(remaining, Math.max(left, least));
    this.#untilMs = nowMs + resetMs;
  }

  #leftAt(nowMs: number): number | undefined {
    if (nowMs >= this.#untilMs) this.#left = undefined;
    return this.#left;
  }
}
