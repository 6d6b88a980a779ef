/**
 * A rate per second with bursts: verl's AsyncTokenBucket as arithmetic; the caller keeps the order
 * of waiting calls.
 *
 * It starts full, is refilled at `rate` up to `capacity`, and may be overdrawn by a call that takes
 * more than its capacity; the next call then waits longer. Tokens that are given back may stand
 * above the capacity, because they were waited for: they leave at `rate` where nobody takes them.
 * Two of verl's defects are fixed: waiting calls are served in order, and a remainder of 1e-16 from
 * floating point delays no call.
 */

export interface BucketSettings {
  /** Tokens a second. */
  readonly rate: number;
  /** The most tokens that it holds. Default: a second's worth, but at least one. */
  readonly capacity?: number;
}

/** The tolerated rounding error, in tokens. */
const epsilon = 1e-9;

export class TokenBucket {
  readonly rate: number;
  readonly capacity: number;
  #tokens: number;
  #updatedMs: number | undefined;

  constructor({ rate, capacity = Math.max(1, rate) }: BucketSettings) {
    this.rate = rate;
    this.capacity = capacity;
    this.#tokens = capacity;
  }

  /** Returns the tokens held; below zero where it is overdrawn. */
  tokensAt(nowMs: number): number {
    const gained = ((nowMs - (this.#updatedMs ?? nowMs)) / 1000) * this.rate;
    this.#updatedMs = nowMs;
    this.#tokens =
      this.#tokens > this.capacity
        ? Math.max(this.capacity, this.#tokens - gained)
        : Math.min(this.capacity, this.#tokens + gained);
    return this.#tokens;
  }

  /**
   * Returns the time until `count` can be taken: until the difference to the tokens held has been
   * refilled, also for a count above the capacity.
   */
  waitMs(count: number, nowMs: number): number {
    const missing = count - this.tokensAt(nowMs);
    return missing <= epsilon ? 0 : (missing / this.rate) * 1000;
  }

  /** Takes them, whatever is there. */
  take(count: number, nowMs: number): void {
    this.#tokens = this.tokensAt(nowMs) - count;
  }

  /** Takes them ahead of time. Returns how long to wait before they are used. */
  reserve(count: number, nowMs: number): number {
    const waitMs = this.waitMs(count, nowMs);
    this.take(count, nowMs);
    return waitMs;
  }

  /** Gives back unused tokens (or takes more, if negative). */
  giveBack(count: number, nowMs: number): void {
    this.#tokens = this.tokensAt(nowMs) + count;
  }
}
