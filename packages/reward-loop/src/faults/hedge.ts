/**
 * Whether a second call of the same sample goes out while the first one is under way: when that takes longer than most did, and not for more than a share of all, so
 * that an endpoint which is slow is not called twice as often.
 */

import { LatencyQuantile } from "./latency-quantile.ts";

/** No deadline: a call that hangs and is not begun a second time, as the budget is used up or too little is known yet, takes as long as it takes. */
export interface HedgeSettings {
  /** Of the latencies of the last calls. Default 0.95. */
  readonly quantile?: number;
  /** Second calls for each first one, at most. Default 0.1. */
  readonly budget?: number;
}

/** Second calls saved up at most. */
const most = 20;

export class HedgePolicy {
  readonly #latency: LatencyQuantile;
  readonly #budget: number;
  #saved = 1;

  constructor({ quantile = 0.95, budget = 0.1 }: HedgeSettings = {}) {
    this.#latency = new LatencyQuantile(quantile);
    this.#budget = budget;
  }

  /** A first call goes out. Returns after how long a second one may; undefined: it may not. */
  began(): number | undefined {
    this.#saved = Math.min(most, this.#saved + this.#budget);
    return this.#latency.value;
  }

  /** Whether a second call goes out now; it is taken from the budget. */
  take(): boolean {
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }

  answered(latencyMs: number): void {
    this.#latency.add(latencyMs);
  }
}
