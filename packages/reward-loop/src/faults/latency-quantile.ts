/** How long calls take, of the last ones: when one takes longer than most did, a second one of it may be quicker (hedging). */

/** So many are remembered; with fewer than a tenth of it nothing is said. */
const remembered = 512;
/** It is worked out again after so many. */
const stale = 32;

export class LatencyQuantile {
  readonly #quantile: number;
  readonly #latencies: Float64Array = new Float64Array(remembered);
  #seen = 0;
  #since = stale;
  #value: number | undefined;

  /** @param quantile 0.95: what 95 % of the calls do not exceed */
  constructor(quantile: number) {
    this.#quantile = quantile;
  }

  add(latencyMs: number): void {
    this.#latencies[this.#seen % remembered] = latencyMs;
    this.#seen += 1;
    this.#since += 1;
  }

  /** Undefined while too little is known. */
  get value(): number | undefined {
    if (this.#seen < remembered / 10) return undefined;
    if (this.#since < stale) return this.#value;
    this.#since = 0;
    const sorted = this.#latencies.slice(0, Math.min(this.#seen, remembered)).toSorted();
    this.#value = sorted[Math.max(0, Math.ceil(this.#quantile * sorted.length) - 1)];
    return this.#value;
  }
}
