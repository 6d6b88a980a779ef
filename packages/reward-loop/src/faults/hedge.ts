/**
 * Decides which calls get a second one beside them: calls that take longer than most did, the
 * oldest first, and no more than a share of all, so that a slow endpoint does not get twice the
 * load. A late call waits for its second one while the budget is used up, or while too few
 * latencies are known.
 */

import { type Clock, realClock } from "../time/clock.ts";
import { hedgeOptions, type HedgeTable } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf } from "../options/table.ts";
import { LatencyQuantile } from "./latency-quantile.ts";

/**
 * A hedge is no deadline: a call that hangs takes as long as it takes if no second one is begun,
 * because the budget is used up and no other call fills it, or too few latencies are known.
 */
export type HedgeSettings = OptionsOf<HedgeTable>;

/**
 * The most second calls that may be saved up; or their share of the pending calls, if that is more.
 */
const most = 20;

/** Takes the end of a call. Only the first report counts. */
export interface SentCall {
  /** The call was answered after that latency. */
  answered(latencyMs: number): void;
  /** The call was given up after that time. */
  givenUp(latencyMs: number): void;
  /** How long it took says nothing. */
  failed(): void;
}

/** A call under way, which tells its policy of its end. One object: as many wait as are asked. */
class UnderWay implements SentCall {
  /** Undefined while it is not at work. */
  readonly ageMs: () => number | undefined;
  readonly late: (() => void) | undefined;
  readonly #policy: HedgeEnds;

  constructor(policy: HedgeEnds, ageMs: () => number | undefined, late: (() => void) | undefined) {
    this.#policy = policy;
    this.ageMs = ageMs;
    this.late = late;
  }

  answered(latencyMs: number): void {
    this.#policy.answered(this, latencyMs);
  }

  givenUp(latencyMs: number): void {
    this.#policy.givenUp(this, latencyMs);
  }

  failed(): void {
    this.#policy.over(this);
  }
}

interface HedgeEnds {
  readonly answered: (call: UnderWay, latencyMs: number) => void;
  readonly givenUp: (call: UnderWay, latencyMs: number) => void;
  readonly over: (call: UnderWay) => void;
}

export class HedgePolicy {
  readonly #latency: LatencyQuantile;
  readonly #budget: number;
  readonly #clock: Clock;
  readonly #underWay: Set<UnderWay> = new Set();
  /** Calls without a second one, the oldest first. */
  readonly #line: Set<UnderWay> = new Set();
  #saved = 1;
  /** The next look, and after what time calls were late when it was last put to its time. */
  #next: { readonly atMs: number; lateMs: number; readonly cancel: () => void } | undefined;

  constructor(settings: HedgeSettings = {}, clock: Clock = realClock) {
    const { quantile, budget } = withDefaults(hedgeOptions, settings);
    this.#latency = new LatencyQuantile(quantile);
    this.#budget = budget;
    this.#clock = clock;
  }

  /**
   * Records a call that is sent.
   *
   * @param ageMs how long it has been running; undefined before its start
   * @param late called at most once, while the call is pending: its second call is sent now. Left
   * out for a second call
   */
  sent(ageMs: () => number | undefined, late?: () => void): SentCall {
    const call = new UnderWay(this.#ends, ageMs, late);
    this.#underWay.add(call);
    if (late !== undefined) {
      this.#line.add(call);
      const wasUsedUp = this.#saved < 1;
      const saved = Math.max(most, this.#budget * this.#underWay.size);
      this.#saved = Math.min(Math.max(this.#saved, saved), this.#saved + this.#budget);
      // The next look, where there is one, comes before this call can be late.
      if (wasUsedUp || this.#next === undefined) this.#look();
    }
    return call;
  }

  readonly #ends: HedgeEnds = {
    answered: (call, latencyMs) => {
      this.#ends.over(call);
      const nowMs = this.#clock.now();
      this.#latency.add(latencyMs, nowMs);
      const lateMs = this.#lateMs(nowMs);
      // Calls are late no earlier than they were at the last look, which set the time of the next.
      if (this.#next !== undefined && lateMs !== undefined && lateMs >= this.#next.lateMs) return;
      this.#look();
    },
    givenUp: (call, latencyMs) => {
      this.#ends.over(call);
      this.#latency.addAtLeast(latencyMs, this.#clock.now());
    },
    over: (call) => {
      this.#underWay.delete(call);
      this.#line.delete(call);
    },
  };

  /** Begins what is late, and comes back when the next one may be. */
  #look(): void {
    if (this.#saved < 1) return;
    const nowMs = this.#clock.now();
    const lateMs = this.#lateMs(nowMs);
    if (lateMs === undefined) return;
    let inMs = Infinity;
    for (const call of this.#line) {
      const ageMs = call.ageMs();
      const leftMs = lateMs - (ageMs ?? 0);
      if (leftMs > 0) inMs = Math.min(inMs, leftMs);
      // Calls that were sent later may have started already.
      if (ageMs === undefined) continue;
      if (leftMs > 0) break;
      if (this.#saved < 1) return;
      this.#saved -= 1;
      this.#line.delete(call);
      call.late?.();
    }
    if (inMs < Infinity) this.#lookIn(inMs, lateMs);
  }

  #lateMs(nowMs: number): number | undefined {
    return this.#latency.value(nowMs, this.#underWay.size, this.#ages);
  }

  /** Schedules a look at that time, or earlier: a look without a result is cheap. */
  #lookIn(ms: number, lateMs: number): void {
    const atMs = this.#clock.now() + ms;
    if (this.#next !== undefined) {
      if (this.#next.atMs <= atMs) {
        this.#next.lateMs = lateMs;
        return;
      }
      this.#next.cancel();
    }
    const look = (): void => {
      this.#next = undefined;
      this.#look();
    };
    this.#next = { atMs, lateMs, cancel: this.#clock.after(ms, look) };
  }

  readonly #ages = (): number[] => {
    const ages: number[] = [];
    for (const { ageMs } of this.#underWay) ages.push(ageMs() ?? 0);
    return ages;
  };
}
