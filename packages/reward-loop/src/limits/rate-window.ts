/**
 * A limit for any minute, wherever it begins: uses are kept by the tenth of a second until their
 * minute is over. Exact, unlike a token bucket, which lets its capacity through on top of a
 * minute's worth.
 *
 * The window is a sixtieth longer than a minute, so that calls with different latencies do not meet
 * at the endpoint.
 */

/** Tenths of a second in a window. */
const slots = 610;
const margin = 61 / 60;

export class RateWindow {
  readonly limit: number;
  readonly #slotMs: number;
  readonly #used: Float64Array = new Float64Array(slots);
  /** Number of the newest slot, counted from the clock's zero. */
  #newest = 0;
  #sum = 0;

  /** @param windowMs how long a minute is */
  constructor(limit: number, windowMs: number) {
    this.limit = limit;
    this.#slotMs = (windowMs * margin) / (slots - 1);
  }

  /** How long until so many more are allowed; more than the limit are when there are no others. */
  waitMs(count: number, nowMs: number): number {
    this.#goOn(nowMs);
    let excess = this.#sum + Math.min(count, this.limit) - this.limit;
    if (excess <= epsilon) return 0;
    for (let slot = this.#newest - slots + 1; slot <= this.#newest; slot++) {
      excess -= this.#used[at(slot)] ?? 0;
      if (excess <= epsilon) return (slot + slots) * this.#slotMs - nowMs;
    }
    return slots * this.#slotMs;
  }

  /** Returns the use of the last minute. */
  usedAt(nowMs: number): number {
    this.#goOn(nowMs);
    return this.#sum;
  }

  take(count: number, nowMs: number): void {
    this.#goOn(nowMs);
    this.#add(this.#newest, count);
  }

  /** Yields the uses of the last minute with their times, by the tenth of a second. */
  *past(nowMs: number): Generator<{ readonly count: number; readonly takenMs: number }> {
    this.#goOn(nowMs);
    for (let slot = this.#newest - slots + 1; slot <= this.#newest; slot++) {
      const count = this.#used[at(slot)] ?? 0;
      if (count > 0) yield { count, takenMs: slot * this.#slotMs };
    }
  }

  /** Adds a use that is reported late. */
  tookBefore(count: number, takenMs: number, nowMs: number): void {
    this.#goOn(nowMs);
    const slot = Math.floor(takenMs / this.#slotMs);
    if (slot > this.#newest - slots) this.#add(slot, count);
  }

  /** Gives back unused tokens of that time (or takes more, if negative). */
  giveBack(count: number, takenMs: number, nowMs: number): void {
    this.#goOn(nowMs);
    const slot = Math.floor(takenMs / this.#slotMs);
    if (slot > this.#newest - slots) this.#add(slot, -count);
    else if (count < 0) this.#add(this.#newest, -count);
  }

  #add(slot: number, count: number): void {
    const used = this.#used[at(slot)] ?? 0;
    const sum = Math.max(0, used + count);
    this.#used[at(slot)] = sum;
    this.#sum += sum - used;
  }

  #goOn(nowMs: number): void {
    const newest = Math.floor(nowMs / this.#slotMs);
    const gone = Math.min(slots, newest - this.#newest);
    for (let step = 1; step <= gone; step++) {
      const slot = at(newest - gone + step);
      this.#sum -= this.#used[slot] ?? 0;
      this.#used[slot] = 0;
    }
    if (gone >= slots) this.#sum = 0;
    this.#newest = Math.max(this.#newest, newest);
  }
}

/** The rounding error that floating point may leave in a sum. */
const epsilon = 1e-6;

function at(slot: number): number {
  return ((slot % slots) + slots) % slots;
}
