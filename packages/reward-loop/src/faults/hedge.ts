/**
 * Which calls get a second one beside them: those that take longer than most did, the oldest first, and no more than a share of all, so that an endpoint which is slow is not
 * called twice as often. One that is late while the budget is used up waits in line for it, as does one that went out before it was known how long most take.
 */

import { type Clock, realClock } from "../clock.ts";
import { LatencyQuantile } from "./latency-quantile.ts";

/** No deadline: a call that hangs and is not begun a second time, as the budget is used up and nothing else is called or too little is known, takes as long as it takes. */
export interface HedgeSettings {
  /** Of the latencies of the last calls. Default 0.95. */
  readonly quantile?: number;
  /** Second calls for each first one, at most. Default 0.1. */
  readonly budget?: number;
}

/** Second calls that may be saved up, or their share of what is under way, if that is more. */
const most = 20;

/** Told how it ended. What is told after that says nothing. */
export interface SentCall {
  /** It is known how long it took. */
  answered(): void;
  /** It took at least so long. */
  givenUp(): void;
  /** How long it took says nothing. */
  failed(): void;
}

interface UnderWay {
  readonly sentMs: number;
  readonly late: (() => void) | undefined;
}

export class HedgePolicy {
  readonly #latency: LatencyQuantile;
  readonly #budget: number;
  readonly #clock: Clock;
  readonly #underWay: Set<UnderWay> = new Set();
  /** Those without a second call, the oldest first. */
  readonly #line: Set<UnderWay> = new Set();
  #saved = 1;
  #next: { readonly atMs: number; readonly cancel: () => void } | undefined;

  constructor({ quantile = 0.95, budget = 0.1 }: HedgeSettings = {}, clock: Clock = realClock) {
    this.#latency = new LatencyQuantile(quantile);
    this.#budget = budget;
    this.#clock = clock;
  }

  /** A call goes out. @param late called at most once, while it is under way: its second call goes out now. Left out for a second call */
  sent(late?: () => void): SentCall {
    const call: UnderWay = { sentMs: this.#clock.now(), late };
    this.#underWay.add(call);
    if (late !== undefined) {
      this.#line.add(call);
      const saved = Math.max(most, this.#budget * this.#underWay.size);
      this.#saved = Math.min(Math.max(this.#saved, saved), this.#saved + this.#budget);
      this.#look();
    }
    const ended = (): number => {
      this.#underWay.delete(call);
      this.#line.delete(call);
      return this.#clock.now() - call.sentMs;
    };
    return {
      answered: () => {
        this.#latency.add(ended());
        this.#look();
      },
      givenUp: () => this.#latency.addAtLeast(ended()),
      failed: () => void ended(),
    };
  }

  /** Begins what is late, and comes back when the next one is. */
  #look(): void {
    if (this.#saved < 1) return;
    const lateMs = this.#latency.value(this.#underWay.size, () => this.#ages());
    if (lateMs === undefined) return;
    for (const call of this.#line) {
      const atMs = call.sentMs + lateMs;
      if (atMs > this.#clock.now()) return this.#lookAt(atMs);
      if (this.#saved < 1) return;
      this.#saved -= 1;
      this.#line.delete(call);
      call.late?.();
    }
  }

  /** Then, or sooner: a look that finds nothing is cheap. */
  #lookAt(atMs: number): void {
    if (this.#next !== undefined) {
      if (this.#next.atMs <= atMs) return;
      this.#next.cancel();
    }
    const look = (): void => {
      this.#next = undefined;
      this.#look();
    };
    this.#next = { atMs, cancel: this.#clock.after(atMs - this.#clock.now(), look) };
  }

  *#ages(): Iterable<number> {
    const nowMs = this.#clock.now();
    for (const { sentMs } of this.#underWay) yield nowMs - sentMs;
  }
}
