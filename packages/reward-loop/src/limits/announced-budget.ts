/**
 * The rest of one limit that an endpoint announced, and its reset time: no more calls are let
 * through until then, or until a new announcement. Pure: the caller has the clock.
 *
 * An announcement is as old as its answer. Calls that were sent after the answered one may not be
 * counted in it yet, nor earlier ones that are still on their way, as they may arrive later: the
 * rest is at least the announced number without all of them (except calls whose answers came
 * earlier), and at most the announced number; an answer to a later call is more accurate. At the
 * reset time the announcement is forgotten.
 */

import type { AnnouncedLimit } from "@rayling/reward-manager-registry/values";

/** A call that was let through. */
export interface TakenCall {
  readonly number: number;
  /** The use of all calls up to this one. */
  readonly taken: number;
}

export class AnnouncedBudget {
  /** Undefined: nothing is known. */
  #left: number | undefined;
  #untilMs = 0;
  /** The use of all calls so far. */
  #taken = 0;
  #calls = 0;
  /** The use of pending calls, by their numbers, in order. */
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

  /** A call has its answer, or is over. @param said undefined: nothing of this limit */
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

  /** Hears of an announcement that was made some time ago: calls since then may not be in it. */
  saidBefore({ remaining, resetMs }: AnnouncedLimit, nowMs: number): void {
    this.#left = Math.min(this.#leftAt(nowMs) ?? remaining, remaining);
    this.#untilMs = Math.max(this.#untilMs, nowMs + resetMs);
  }

  #leftAt(nowMs: number): number | undefined {
    if (nowMs >= this.#untilMs) this.#left = undefined;
    return this.#left;
  }
}
