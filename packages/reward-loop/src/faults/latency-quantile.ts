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
    agesMs: () => Iterable<number> = noAges,
  ): number | undefined {
    if (this.#answered < remembered / 10) return undefined;
    const most = Math.max(Math.min(stale, this.#seen / 8), underWay / 8);
    if (this.#since < most) return this.#value;
    this.#since = 0;
    const took = sorted(this.#ended.filter(({ isWhole }) => isWhole).map((one) => one.latencyMs));
    // Without an answered call the last quantile holds.
    if (took.length === 0) return this.#value;
    const share = 1 - this.#quantile;
    const ages = [...agesMs()];
    this.#value = this.#outlivedBy(share, took, nowMs, ages);
    if (this.#value !== undefined) return this.#value;
    const isGivenUp = this.#outlivedBy(share, took, nowMs, []) === undefined;
    const whole = Math.max(0, Math.ceil(this.#quantile * took.length) - 1);
    this.#value = isGivenUp ? took[whole] : 2 * itemAt(took, took.length - 1);
    return this.#value;
  }

  #remember(one: Ended): void {
    this.#ended[this.#seen % remembered] = one;
    this.#seen += 1;
    this.#since += 1;
  }

  /**
   * Returns the first of these times that no more than a share of all calls outlives; undefined:
   * more do.
   */
  #outlivedBy(
    share: number,
    took: Float64Array,
    nowMs: number,
    ages: readonly number[],
  ): number | undefined {
    const isAll = this.#seen <= remembered;
    // Just before the end of the oldest remembered call, if others are forgotten.
    const fromMs = isAll ? -Infinity : itemAt(this.#ended, this.#seen % remembered).atMs - 1e-6;
    const exits = sorted([...this.#ended.map(({ latencyMs }) => latencyMs), ...ages]);
    const entries = sorted([
      ...this.#ended.map(({ latencyMs, atMs }) => latencyMs - (atMs - fromMs)),
      ...ages.map((ms) => ms - (nowMs - fromMs)),
    ]);
    let gone = 0;
    let there = 0;
    let alive = 1;
    for (const ms of took) {
      while (itemAt(exits, gone) < ms) gone += 1;
      while (there < entries.length && itemAt(entries, there) < ms) there += 1;
      alive *= 1 - 1 / Math.max(1, there - gone);
      gone += 1;
      if (alive <= share + 1e-9) return ms;
    }
    return undefined;
  }
}

const noAges = (): Iterable<number> => [];

function sorted(times: readonly number[]): Float64Array {
  return Float64Array.from(times).toSorted();
}
