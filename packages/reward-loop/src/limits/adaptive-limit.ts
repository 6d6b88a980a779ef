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
 * - Failures, and slow answers if latencyTolerance is set, lower it by a tenth, once for a round
 * trip: an endpoint that queues instead of refusing has no room either. The quickest latency is
 * forgotten after some round trips, as an endpoint may become slower for good.
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
  /** "ok": with a score. Calls without an answer of the endpoint are not reported here. */
  readonly outcome: "ok" | "refused" | "failed";
}

/** Facts about a call, recorded when it is sent. */
export interface Ticket {
  readonly inFlight: number;
  readonly epoch: number;
}

const lowered = 0.9;
/** The most round trips between two probes of a number that was refused again and again. */
const longestProbeGap = 16;
/** Answers without a refusal after which it is believed that there is more room. */
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
    if (outcome === "failed") return this.#lower(ticket, this.#limit * lowered);
    if (latencyMs > this.#latencyTolerance * this.#quickestMs(latencyMs)) {
      return this.#lower(ticket, this.#limit * lowered);
    }
    if (ticket.inFlight >= this.#refusedAt && ticket.epoch === this.#epoch) this.#found();
    // A limit that is never reached proves nothing.
    if (inFlight < this.limit - 1) return;
    const roundTrip = 1 / this.#limit;
    const found = Math.min(this.#step, growth.found * this.#limit);
    const more = this.#isFirst ? growth.atFirst * this.#limit : Math.max(1 / this.#probeGap, found);
    this.#step += this.#step * roundTrip;
    this.#limit = Math.min(this.#max, this.#limit + more * roundTrip);
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
    if (ticket.epoch === this.#epoch && ticket.inFlight >= this.#refusedAt) {
      this.#probeGap = Math.min(longestProbeGap, 2 * this.#probeGap);
    }
    this.#refusedAt = room + 1;
    this.#lower(ticket, Math.min(room, this.#limit), true);
  }

  #lower(ticket: Ticket, limit: number, isCertain = false): void {
    if (!isCertain && ticket.epoch !== this.#epoch) return;
    this.#isFirst = false;
    this.#step = 0;
    this.#taken = 0;
    this.#epoch += 1;
    this.#limit = Math.max(this.#min, limit);
  }
}
