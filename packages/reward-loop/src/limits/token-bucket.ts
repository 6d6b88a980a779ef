/**
 * So many a second, and some at once: verl's AsyncTokenBucket as arithmetic, for whoever keeps the order of those who wait.
 *
 * It starts full, is refilled at `rate` up to `capacity`, and may be overdrawn by one who takes more than it ever holds, which the next one pays for. Two of verl's
 * defects are not here: those who wait are served in their order, and a rest of 1e-16 that floating point leaves keeps nobody waiting.
 */

export interface BucketSettings {
  /** Tokens a second. */
  readonly rate: number;
  /** What it holds. Default: a second's worth, but at least one. */
  readonly capacity?: number;
}

/** Of a token. */
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

  /** Below zero where it is overdrawn. */
  tokensAt(nowMs: number): number {
    const elapsedMs = nowMs - (this.#updatedMs ?? nowMs);
    this.#updatedMs = nowMs;
    this.#tokens = Math.min(this.capacity, this.#tokens + (elapsedMs / 1000) * this.rate);
    return this.#tokens;
  }

  /** How long until so many can be taken; more than it holds can be when it has made up for all of them but what it held. */
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

  /** Some were not needed (or more were, if negative). */
  giveBack(count: number, nowMs: number): void {
    this.#tokens = Math.min(this.capacity, this.tokensAt(nowMs) + count);
  }
}
