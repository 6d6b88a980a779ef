/**
 * Finds out how many calls an endpoint takes at once while it is used: the limit grows while all
 * goes well, and falls back to a known good value when it does not.
 *
 * - It doubles with each round trip until the first refusal: each answer allows one call more.
 * - A refusal (429, 503) means that there was no room beyond the calls that were pending, both then
 * and when the refused call was sent. (Either alone would mislead: where answers come in a burst,
 * most pending calls are over already, and calls that are refused together count as pending until
 * their refusals arrive.) Calls that were sent before the limit was last lowered can only lower it
 * further.
 * - Then it probes: one more with each round trip, less often for a number that was refused again
 * and again. Where that works there may be more room than before: it grows by one, two, four with
 * each round trip, up to a tenth.
 * - Failures, and slow answers if latencyTolerance is set, lower it by a tenth for each round trip
 * in which a tenth of the calls fail: an endpoint that queues or breaks instead of refusing has no
 * room either. Fewer failures say nothing about room. Otherwise a judge that fails in one of 100
 * calls, however few there are, would keep the limit at a tenth of what the endpoint takes.
 * - A round trip takes as long as good answers do. Refused connections fail within milliseconds:
 * the limit would be at its minimum before a server has restarted.
 * - With the first good round trip it returns to the last value that was good, doubling.
 * - The quickest latency is forgotten after some round trips, as an endpoint may become slower for
 * good.
 *
 * It grows only while it is used up. Pure: knows no calls and no clock.
 */

import { adaptiveOptions, type AdaptiveTable } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf } from "../options/table.ts";

/** Bounds of a limit that adapts to the endpoint. */
export type AdaptiveLimitSettings = OptionsOf<AdaptiveTable>;

export interface Answered {
  /** The ticket that `sent` returned. */
  readonly ticket: Ticket;
  readonly latencyMs: number;
  /**
   * "ok": with a score. Calls that say nothing about the endpoint's room are not reported here:
   * given up, malformed, answered with an error of the request.
   */
  readonly outcome: "ok" | "refused" | "failed";
}

/** Facts about a call, recorded when it is sent. */
export interface Ticket {
  readonly inFlight: number;
  readonly epoch: number;
}

const lowered = 0.9;
/**
 * The failures of a round trip that lower the limit: this share of its answers, but no fewer than
 * `few`, or all in a smaller round trip. With a larger share, an endpoint whose excess calls time
 * out would be kept that far above its room; with a smaller one, failures that come at any load
 * cost.
 */
const much = { share: 0.1, few: 5 } as const;
/** The most round trips between two probes of a number that was refused again and again. */
const longestProbeGap = 16;
/**
 * Answers without a refusal after which it is believed that there is more room, and round trips
 * without many failures after which a number is believed to be good.
 */
const enough = 20;
/**
 * Round trips for which the quickest answer is remembered, at least, and twice as many at most:
 * more than the 44 in which a limit falls to a hundredth.
 */
const remembered = 50;
/**
 * The limit's growth with each round trip: until the first refusal, and at most when a number that
 * was refused works again.
 */
const growth = { atFirst: 1, found: 0.1 } as const;

export class AdaptiveLimit {
  readonly #min: number;
  readonly #max: number;
  readonly #latencyTolerance: number;
  #limit: number;
  /** There was no refusal so far. */
  #isFirst = true;
  /** How many calls more with the next round trip, where more is found; it doubles. */
  #step = 0;
  /** Counts how often it was lowered. */
  #epoch = 0;
  /** The number of calls that was refused last, and the round trips before it is tried again. */
  #refusedAt = Infinity;
  #probeGap = 1;
  /** Calls in a row that were taken since the last refusal. */
  #taken = 0;
  /** It was lowered by failures, and there was no good round trip since. */
  #isFailing = false;
  /** The limit at the start of the last good round trip. */
  #proved: number;
  /** The value to which it returns by doubling; 0: none. */
  #good = 0;
  /** The mean latency of good answers in the last round trip; 0: there was none. */
  #usualMs = 0;
  /** Good round trips since the last one that lowered it. */
  #calm = Infinity;
  /** The current round trip: answers to calls that were sent since the limit was last lowered. */
  #trip = { from: 0, answers: 0, bad: 0, busyMs: 0 };
  /**
   * The quickest latency of the current period of so many round trips, and of the period before it.
   */
  #quickest = { nowMs: Infinity, beforeMs: Infinity, roundTrips: 0 };

  constructor(settings: AdaptiveLimitSettings = {}) {
    const { min, max, initial, latencyTolerance } = withDefaults(adaptiveOptions, settings);
    this.#min = min;
    this.#max = Math.max(min, max);
    this.#limit = Math.min(this.#max, Math.max(min, initial));
    this.#latencyTolerance = latencyTolerance ?? Infinity;
    this.#proved = this.#limit;
    this.#begin();
  }

  /** The most calls that may be pending. */
  get limit(): number {
    return Math.floor(this.#limit);
  }

  /** @param inFlight pending calls, including this one */
  sent(inFlight: number): Ticket {
    return { inFlight, epoch: this.#epoch };
  }

  /** @param inFlight pending calls, including this one */
  answered({ ticket, latencyMs, outcome }: Answered, inFlight: number): void {
    if (outcome === "refused") return this.#refused(ticket, inFlight);
    const isBad =
      outcome === "failed" || latencyMs > this.#latencyTolerance * this.#quickestMs(latencyMs);
    if (!isBad) {
      const share = this.#usualMs === 0 ? 1 : 1 / this.#limit;
      this.#usualMs += share * (latencyMs - this.#usualMs);
    }
    if (ticket.epoch === this.#epoch) this.#count(ticket, latencyMs, isBad);
    if (isBad) return;
    if (ticket.inFlight >= this.#refusedAt && ticket.epoch === this.#epoch) this.#found();
    // A limit that is never reached proves nothing.
    if (!this.#isFailing && inFlight >= this.limit - 1) this.#grow();
  }

  #grow(): void {
    const roundTrip = 1 / this.#limit;
    if (this.#limit < this.#good) {
      this.#limit = Math.min(this.#good, this.#limit + growth.atFirst);
      return;
    }
    const found = Math.min(this.#step, growth.found * this.#limit);
    const more = this.#isFirst ? growth.atFirst * this.#limit : Math.max(1 / this.#probeGap, found);
    this.#step += this.#step * roundTrip;
    this.#limit = Math.min(this.#max, this.#limit + more * roundTrip);
  }

  /** Counts an answer, and ends the round trip with the last one. */
  #count(ticket: Ticket, latencyMs: number, isBad: boolean): void {
    const trip = this.#trip;
    trip.answers += 1;
    trip.busyMs += latencyMs;
    if (isBad) trip.bad += 1;
    const most = Math.max(much.few, much.share * Math.max(this.limit, trip.answers));
    const isMuch = trip.bad >= Math.min(this.limit, most);
    // So many calls side by side have taken so long together: Little's law.
    const isOver = trip.answers >= this.limit && trip.busyMs >= this.limit * this.#usualMs;
    // The first failures are heard at once, later ones once for a round trip.
    if (isMuch && (isOver || !this.#isFailing)) return this.#failing(ticket);
    if (!isOver) return;
    if (!isMuch) {
      this.#isFailing = false;
      this.#proved = trip.from;
      this.#calm += 1;
    }
    this.#begin();
  }

  #failing(ticket: Ticket): void {
    if (!this.#isFailing) {
      // While it doubles for the first time, an outage is no finding about room, unless it repeats.
      this.#isFirst &&= this.#good === 0;
      // Where it fails soon again, the failures may come later than a round trip (timeouts), and
      // the number to which it returned was not good.
      const isSoon = this.#calm < enough;
      this.#good = isSoon ? Math.min(this.#proved, this.#limit * lowered) : this.#proved;
      this.#calm = 0;
      this.#isFailing = true;
      this.#refusedFrom(ticket, Math.min(this.#refusedAt, Math.floor(this.#good) + 1));
    }
    this.#lower(this.#limit * lowered);
  }

  /** Begins a round trip. */
  #begin(): void {
    this.#trip = { from: this.#limit, answers: 0, bad: 0, busyMs: 0 };
  }

  /** Returns the quickest latency, including this answer's. */
  #quickestMs(latencyMs: number): number {
    const { nowMs, beforeMs, roundTrips } = this.#quickest;
    this.#quickest =
      roundTrips < remembered
        ? { nowMs: Math.min(nowMs, latencyMs), beforeMs, roundTrips: roundTrips + 1 / this.#limit }
        : { nowMs: latencyMs, beforeMs: nowMs, roundTrips: 0 };
    return Math.min(this.#quickest.nowMs, this.#quickest.beforeMs);
  }

  /**
   * A number that was refused works again; a few answers are weak evidence, as calls that were
   * refused on the way counted as pending, too.
   */
  #found(): void {
    this.#taken += 1;
    if (this.#taken < enough) return;
    this.#refusedAt = Infinity;
    this.#probeGap = 1;
    if (this.#step === 0) this.#step = 1;
  }

  #refused(ticket: Ticket, inFlight: number): void {
    const room = Math.min(ticket.inFlight, inFlight) - 1;
    // Later refusals of the burst may show less room than the first one.
    if (ticket.epoch !== this.#epoch && room >= this.#limit) return;
    this.#refusedFrom(ticket, room + 1);
    this.#isFirst = false;
    this.#lower(Math.min(room, this.#limit));
    this.#proved = Math.min(this.#proved, this.#limit);
    this.#good = Math.min(this.#good, this.#limit);
  }

  /** From that number on there was no room; it is tried again less often each time. */
  #refusedFrom(ticket: Ticket, number: number): void {
    if (ticket.epoch === this.#epoch && ticket.inFlight >= this.#refusedAt) {
      this.#probeGap = Math.min(longestProbeGap, 2 * this.#probeGap);
    }
    this.#refusedAt = number;
  }

  #lower(limit: number): void {
    this.#step = 0;
    this.#taken = 0;
    this.#epoch += 1;
    this.#limit = Math.max(this.#min, limit);
    this.#begin();
  }
}
