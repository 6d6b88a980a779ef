/**
 * A rate per minute: spread over the minute by a token bucket that holds a second's worth, and
 * never exceeded in any minute by a window.
 */

import { RateWindow } from "./rate-window.ts";
import { TokenBucket } from "./token-bucket.ts";

/** The limit of a minute, and the use in the last one. */
export interface RateState {
  /** The most per minute. */
  readonly limit: number;
  /** The use in the last minute. */
  readonly used: number;
}

export class RateLimit {
  readonly #bucket: TokenBucket;
  readonly #window: RateWindow;

  /** @param minuteMs how long a minute is */
  constructor(perMinute: number, minuteMs: number) {
    // Slower by the ratio of window to minute: else calls would stop at the end of each window.
    const rate = (perMinute * 1000 * 60) / (minuteMs * 61);
    this.#bucket = new TokenBucket({ rate, capacity: Math.max(1, perMinute / 60) });
    this.#window = new RateWindow(perMinute, minuteMs);
  }

  stateAt(nowMs: number): RateState {
    return { limit: this.#window.limit, used: this.#window.usedAt(nowMs) };
  }

  waitMs(count: number, nowMs: number): number {
    const inBucket = Math.min(count, this.#bucket.capacity);
    return Math.max(this.#bucket.waitMs(inBucket, nowMs), this.#window.waitMs(count, nowMs));
  }

  take(count: number, nowMs: number): void {
    this.#bucket.take(count, nowMs);
    this.#window.take(count, nowMs);
  }

  /** Counts the use of the rate limit that this one replaces. */
  takeOver(before: RateLimit, nowMs: number): void {
    for (const { count, takenMs } of before.#window.past(nowMs)) {
      this.tookBefore(count, takenMs, nowMs);
    }
  }

  /** Counts a use of the limit that this one replaces. */
  tookBefore(count: number, takenMs: number, nowMs: number): void {
    // The bucket holds a second's worth.
    if (nowMs - takenMs < 1000) this.#bucket.take(count, nowMs);
    this.#window.tookBefore(count, takenMs, nowMs);
  }

  /** Gives back unused tokens of that time (or takes more, if negative). */
  giveBack(count: number, takenMs: number, nowMs: number): void {
    this.#bucket.giveBack(count, nowMs);
    this.#window.giveBack(count, takenMs, nowMs);
  }
}
