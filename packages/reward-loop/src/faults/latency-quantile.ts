/**
 * Quantiles of the latencies of the last calls: a call that takes longer than most did may be
 * overtaken by a second one (hedging).
 *
 * A call that was given up, or is still pending, took at least its age so far. Such calls count,
 * too: without them only the quick calls would be known. Each counts at the ages that it had since
 * the oldest remembered call ended, as earlier ends are forgotten (the product-limit estimate of
 * Kaplan and Meier, with delayed entry).
 */

import { itemAt } from "@rayling/reward-manager-registry/values";

/** The number of remembered calls; a quantile needs a tenth of it answered. */
const remembered = 512;
/**
 * The quantile is computed again after so many calls, or an eighth of the remembered or pending
 * ones.
 */
const stale = 64;

interface Ended {
  readonly latencyMs: number;
  readonly atMs: number;
  /** The call was answered, not given up. */
  readonly isWhole: boolean;
}

export class LatencyQuantile {
  readonly #quantile: number;
  /** The last ones, in a ring. */
  readonly #ended: Ended[] = [];
  /** The latencies of the answered ones among them, in order. */
  readonly #took: Float64Array = new Float64Array(remembered);
  #tookCount = 0;
  #seen = 0;
  #answered = 0;
  #since = Infinity;
  #value: number | undefined;

  /** @param quantile 0.95: what 95 % of the calls do not exceed */
  constructor(quantile: number) {
    this.#quantile = quantile;
  }

  /** Records an answered call. @param atMs now */
  add(latencyMs: number, atMs: number): void {
    this.#answered += 1;
    this.#remember({ latencyMs, atMs, isWhole: true });
    const place = this.#placeOf(latencyMs);
    this.#took.copyWithin(place + 1, place, this.#tookCount);
    this.#took[place] = latencyMs;
    this.#tookCount += 1;
  }

  /** Records a call that was given up. @param atMs now */
  addAtLeast(latencyMs: number, atMs: number): void {
    this.#remember({ latencyMs, atMs, isWhole: false });
  }

  /**
   * Returns the quantile; undefined while too few latencies are known. Where more calls than that
   * share were given up it is the quantile of the answered ones; where more are pending for longer
   * than any answered call took, twice that latency.
   *
   * @param underWay the number of pending calls
   * @param agesMs the ages of pending calls
   */
  value(
    nowMs: number,
    underWay: number = 0,
    agesMs: () => readonly number[] = noAges,
  ): number | undefined {
    if (this.#answered < remembered / 10) return undefined;
    const most = Math.max(Math.min(stale, this.#seen / 8), underWay / 8);
    if (this.#since < most) return this.#value;
    this.#since = 0;
    const count = this.#tookCount;
    // Without an answered call the last quantile holds.
    if (count === 0) return this.#value;
    this.#value = this.#outlived(nowMs, agesMs());
    if (this.#value !== undefined) return this.#value;
    const isGivenUp = this.#outlived(nowMs, []) === undefined;
    const whole = Math.max(0, Math.ceil(this.#quantile * count) - 1);
    this.#value = isGivenUp ? this.#took[whole] : 2 * itemAt(this.#took, count - 1);
    return this.#value;
  }

  #remember(one: Ended): void {
    const at = this.#seen % remembered;
    const before = this.#ended[at];
    if (before?.isWhole === true) {
      const place = this.#placeOf(before.latencyMs);
      this.#took.copyWithin(place, place + 1, this.#tookCount);
      this.#tookCount -= 1;
    }
    this.#ended[at] = one;
    this.#seen += 1;
    this.#since += 1;
  }

  /** Returns the first place of a latency that is no less. */
  #placeOf(latencyMs: number): number {
    let [from, to] = [0, this.#tookCount];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (itemAt(this.#took, middle) < latencyMs) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /**
   * Returns the first latency that no more than the share of all calls outlives; undefined: more
   * do.
   *
   * @param ages of pending calls
   */
  #outlived(nowMs: number, ages: readonly number[]): number | undefined {
    const isAll = this.#seen <= remembered;
    // Just before the end of the oldest remembered call, if others are forgotten.
    const fromMs = isAll ? -Infinity : itemAt(this.#ended, this.#seen % remembered).atMs - 1e-6;
    // A call counts from the age that it had at that time. Most began later, and few are sorted.
    const entries: number[] = [];
    // Calls that were given up or are pending, beside the answered ones.
    const others = [...ages];
    for (const { latencyMs, atMs, isWhole } of this.#ended) {
      const entryMs = latencyMs - (atMs - fromMs);
      if (entryMs >= 0) entries.push(entryMs);
      if (!isWhole) others.push(latencyMs);
    }
    for (const ms of ages) if (ms >= nowMs - fromMs) entries.push(ms - (nowMs - fromMs));
    const there = this.#ended.length + ages.length - entries.length;
    const entered = Float64Array.from(entries).toSorted();
    const left = Float64Array.from(others).toSorted();
    const share = 1 - this.#quantile + 1e-9;
    let entering = 0;
    let leaving = 0;
    let alive = 1;
    for (let gone = 0; gone < this.#tookCount; gone++) {
      const ms = itemAt(this.#took, gone);
      while (leaving < left.length && itemAt(left, leaving) < ms) leaving += 1;
      while (entering < entered.length && itemAt(entered, entering) < ms) entering += 1;
      alive *= 1 - 1 / Math.max(1, there + entering - gone - leaving);
      if (alive <= share) return ms;
    }
    return undefined;
  }
}

const noAges = (): readonly number[] => [];
