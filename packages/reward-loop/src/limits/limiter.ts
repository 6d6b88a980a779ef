/**
 * The limits of one endpoint for all callers: requests and tokens a minute, concurrent calls (fixed
 * or adaptive), and the remainders that the endpoint announces in its answers.
 *
 * A call waits in its lane until all limits allow it. Its report (outcome, usage, announcements) is
 * heard once, when it has its outcome; its place among calls at once is free when it is over, which
 * may be much later for a call that timed out. Nothing is reserved ahead of time, so that a free
 * place goes to the call that is first in lane order at that moment. Pure except for the clock.
 */

import { isDeepStrictEqual } from "node:util";

import { type BreakerState, CircuitBreaker } from "../faults/circuit-breaker.ts";
import type { AnnouncedLimits } from "@rayling/reward-manager-registry/values";
import { limiterOptions, type LimiterTable } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf, SettingsOf } from "../options/table.ts";
import { AdaptiveLimit, type Answered, type Ticket } from "./adaptive-limit.ts";
import { AnnouncedBudget } from "./announced-budget.ts";
import type { TakenCall } from "./announced-budget.ts";
import { type Clock, realClock } from "../time/clock.ts";
import { Lanes } from "./lanes.ts";
import { RateLimit, type RateState } from "./rate-limit.ts";

/** Limits of one endpoint: calls at once, requests and tokens per minute. */
export type LimiterSettings = OptionsOf<LimiterTable>;

/** A call that waits to be let through. */
export interface LimitRequest {
  /** Default "training". */
  readonly lane?: string;
  /** The tokens that the call may use. Default 0. */
  readonly tokens?: number;
}

/** How a call went. */
export interface LimitReport {
  /**
   * "ok": its answer was a score; "answered": its answer was none (400), which says nothing about
   * how long a score takes; "malformed": its answer was of no use (no JSON, an error inside a 200),
   * a failure that says nothing about room; "refused": the endpoint had no room for it (429, 503);
   * "failed": no answer, or an error of the endpoint's own (timeout, 5xx); "unknown": nothing is
   * learned about the endpoint, as the call was given up here or never reached it.
   */
  readonly outcome: "ok" | "answered" | "malformed" | "refused" | "failed" | "unknown";
  /** The call was cut off here: its endpoint notices a little later. */
  readonly isCut?: boolean;
  /** The tokens that it used, if known. */
  readonly tokens?: number;
  /** The endpoint wants no call for so long. */
  readonly retryAfterMs?: number;
  /** The limits that its answer announced. */
  readonly announced?: Pick<AnnouncedLimits, "requests" | "tokens">;
}

/** For how long an endpoint wants no calls, and how many then, in its own words. */
export type EndpointWishes = Pick<LimitReport, "retryAfterMs" | "announced">;

export interface Lease {
  /** How long it was waited for. */
  readonly waitedMs: number;
  /** The call has its outcome, and goes on: it keeps its place. Once; later reports do nothing. */
  answered(report: LimitReport): void;
  /**
   * The call is over. Once; later calls do nothing.
   *
   * @param report not heard after an earlier one
   */
  release(report: LimitReport): void;
}

/** How much of the limits of an endpoint is used. */
export interface LimiterState {
  /** Calls that wait. */
  readonly waiting: number;
  /** Calls that are pending at the endpoint. */
  readonly inFlight: number;
  /** The most calls that may be pending now. */
  readonly limit: number;
  /** Calls that were let through so far. */
  readonly granted: number;
  /** Calls that the endpoint refused (429, 503) so far. */
  readonly refused: number;
  /** Undefined where they are not limited. */
  readonly requests: RateState | undefined;
  /** Tokens by their estimates, until the usage is known. */
  readonly tokens: RateState | undefined;
  /** The state of the circuit breaker; undefined where there is none. */
  readonly breaker: BreakerState | undefined;
}

interface Waiting {
  readonly tokens: number;
  readonly sinceMs: number;
  readonly grant: (lease: Lease) => void;
}

/** A call that was let through. */
interface SentCall {
  readonly tokens: number;
  readonly sentMs: number;
  readonly taken: Taken;
  /** The adaptive limit's ticket; undefined: the limit is fixed. */
  readonly ticket: Ticket | undefined;
  /** The breaker's mark; undefined: it does not count there. */
  readonly sent: number | undefined;
}

/** The calls that were let through at one moment. */
export interface PastUse {
  readonly agoMs: number;
  readonly requests: number;
  readonly tokens: number;
}

export class Limiter {
  readonly #clock: Clock;
  readonly #requests: RateLimit | undefined;
  readonly #tokens: RateLimit | undefined;
  readonly #settings: Pick<SettingsOf<LimiterTable>, "breaker" | "concurrency">;
  #announced: Budgets = { requests: new AnnouncedBudget(), tokens: new AnnouncedBudget() };
  #breaker: CircuitBreaker | undefined;
  #concurrency: number | AdaptiveLimit;
  readonly #lanes: Lanes<Waiting>;
  /** Called when a further request of a call that has a lease may be sent, in order. */
  readonly #further: Set<() => void> = new Set();
  #waiting = 0;
  #inFlight = 0;
  #granted = 0;
  #refused = 0;
  #pausedUntilMs = 0;
  #stopTimer: (() => void) | undefined;

  constructor(settings: LimiterSettings, clock: Clock = realClock) {
    const { requestsPerMinute, tokensPerMinute, minuteMs, ...others } = withDefaults(
      limiterOptions,
      settings,
    );
    const { concurrency = Infinity, breaker, shares } = others;
    this.#clock = clock;
    this.#settings = { breaker, concurrency };
    this.#requests = rateOf(requestsPerMinute, minuteMs);
    this.#tokens = rateOf(tokensPerMinute, minuteMs);
    this.#breaker = breaker && new CircuitBreaker(breaker);
    this.#concurrency =
      typeof concurrency === "number" ? concurrency : new AdaptiveLimit(concurrency);
    this.#lanes = new Lanes(shares);
  }

  get state(): LimiterState {
    const nowMs = this.#clock.now();
    return {
      waiting: this.#waiting,
      inFlight: this.#inFlight,
      limit: limitOf(this.#concurrency),
      granted: this.#granted,
      refused: this.#refused,
      requests: this.#requests?.stateAt(nowMs),
      tokens: this.#tokens?.stateAt(nowMs),
      breaker: this.#breaker?.state,
    };
  }

  /** Lets no call through for that time. */
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#clock.now() + ms);
    this.#serve();
  }

  /**
   * Returns a lease for a call that is already pending: the limiter that this one replaces granted
   * it. It is no probe of a breaker that is not closed.
   */
  adopt(tokens: number = 0): Lease {
    const nowMs = this.#clock.now();
    const isClosed = this.#breaker?.state === "closed";
    return this.#lease({ tokens, sinceMs: nowMs }, nowMs, isClosed);
  }

  /**
   * Takes the place of a limiter with other settings that nobody uses any more: counts its use of
   * the last minute, and keeps the endpoint's pause and announced remainders; and the findings of
   * its breaker and of its adaptive limit, where they have the same settings here.
   */
  takeOver(before: Limiter): void {
    const nowMs = this.#clock.now();
    if (before.#requests !== undefined) this.#requests?.takeOver(before.#requests, nowMs);
    if (before.#tokens !== undefined) this.#tokens?.takeOver(before.#tokens, nowMs);
    this.#announced = before.#announced;
    const { breaker, concurrency } = before.#settings;
    if (isDeepStrictEqual(breaker, this.#settings.breaker)) {
      this.#breaker = before.#breaker;
      // Its pending probes belong to holders that have left.
      this.#breaker?.forgetPending();
    }
    if (isDeepStrictEqual(concurrency, this.#settings.concurrency)) {
      this.#concurrency = before.#concurrency;
    }
    this.pause(before.#pausedUntilMs - nowMs);
  }

  /** Hears of a pause and of remainders that were reported to the limiter before this one. */
  heardBefore({ retryAfterMs = 0, announced = {} }: EndpointWishes): void {
    const nowMs = this.#clock.now();
    for (const what of ["requests", "tokens"] as const) {
      const said = announced[what];
      if (said !== undefined) this.#announced[what].saidBefore(said, nowMs);
    }
    this.pause(retryAfterMs);
  }

  /** Counts calls that the limiter before this one let through, and that are over. */
  remember({ agoMs, requests, tokens }: PastUse): void {
    const nowMs = this.#clock.now();
    this.#requests?.tookBefore(requests, nowMs - agoMs, nowMs);
    this.#tokens?.tookBefore(tokens, nowMs - agoMs, nowMs);
  }

  /**
   * Calls back once, with a lease, when the call may be sent: at once where nothing keeps it.
   * Returns how to give up its place; after the lease it does nothing.
   */
  ask(
    { lane = "training", tokens = 0 }: LimitRequest,
    granted: (lease: Lease) => void,
  ): () => void {
    let isWaiting = true;
    const grant = (lease: Lease): void => {
      isWaiting = false;
      granted(lease);
    };
    const place = this.#lanes.push(lane, { tokens, sinceMs: this.#clock.now(), grant });
    this.#waiting += 1;
    this.#serve();
    return () => {
      if (!isWaiting) return;
      isWaiting = false;
      place.isGone = true;
      this.#waiting -= 1;
      // Requests behind it may need less.
      this.#serve();
    };
  }

  /**
   * Calls back when a call that has a lease may send one more request: at once where no rate keeps
   * it. It waits for no place among calls at once, because its call has one, nor behind calls that
   * have none and may wait for that place. Returns how to give it up.
   */
  askFurther(granted: () => void): () => void {
    const one = (): void => granted();
    this.#further.add(one);
    this.#serve();
    return () => {
      if (this.#further.delete(one)) this.#serve();
    };
  }

  #serve(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    for (const granted of this.#further) {
      const nowMs = this.#clock.now();
      if (this.#waits(this.#waitMs(0, nowMs))) return;
      this.#further.delete(granted);
      over(this.#announced, this.#take(0, nowMs), nowMs);
      granted();
    }
    while (this.#inFlight < limitOf(this.#concurrency)) {
      const next = this.#lanes.peek()?.item;
      if (next === undefined) return;
      const nowMs = this.#clock.now();
      const breakerMs = this.#breaker?.waitMs(nowMs) ?? 0;
      if (this.#waits(Math.max(breakerMs, this.#waitMs(next.tokens, nowMs)))) return;
      this.#lanes.shift();
      this.#waiting -= 1;
      next.grant(this.#lease(next, nowMs));
    }
  }

  /** Whether the next one has to wait; it is served later. */
  #waits(ms: number): boolean {
    // Where that is Infinity the answers of others will tell.
    if (ms > 0 && ms < Infinity) this.#stopTimer = this.#clock.after(ms, () => this.#serve());
    return ms > 0;
  }

  /**
   * Returns the time until every bucket has enough; for more than a bucket's capacity it has to be
   * full.
   */
  #waitMs(tokens: number, nowMs: number): number {
    return Math.max(
      this.#pausedUntilMs - nowMs,
      this.#requests?.waitMs(1, nowMs) ?? 0,
      this.#tokens?.waitMs(tokens, nowMs) ?? 0,
      this.#announced.requests.waitMs(1, nowMs),
      // A call without an estimate needs at least one token.
      this.#announced.tokens.waitMs(Math.max(1, tokens), nowMs),
    );
  }

  #take(tokens: number, sentMs: number): Taken {
    this.#requests?.take(1, sentMs);
    this.#tokens?.take(tokens, sentMs);
    return {
      requests: this.#announced.requests.take(1),
      tokens: this.#announced.tokens.take(tokens),
    };
  }

  /** @param isJudged whether the breaker learns from the call */
  #lease(
    { tokens, sinceMs }: Pick<Waiting, "tokens" | "sinceMs">,
    sentMs: number,
    isJudged: boolean = true,
  ): Lease {
    const taken = this.#take(tokens, sentMs);
    this.#inFlight += 1;
    this.#granted += 1;
    const adaptive = typeof this.#concurrency === "number" ? undefined : this.#concurrency;
    const ticket = adaptive?.sent(this.#inFlight);
    const sent = isJudged ? this.#breaker?.sent() : undefined;
    const call: SentCall = { tokens, sentMs, taken, ticket, sent };
    let state: "pending" | "answered" | "over" = "pending";
    return {
      waitedMs: sentMs - sinceMs,
      answered: (report) => {
        if (state !== "pending") return;
        state = "answered";
        this.#hear(call, report);
        this.#serve();
      },
      release: (report) => {
        if (state === "over") return;
        if (state === "pending") this.#hear(call, report);
        state = "over";
        // Until now it could still come to the endpoint, and be counted there.
        over(this.#announced, taken, this.#clock.now());
        this.#inFlight -= 1;
        this.#serve();
      },
    };
  }

  /** A call that is still counted among the pending ones has its outcome. */
  #hear({ tokens: estimate, sentMs, taken, ticket, sent }: SentCall, report: LimitReport): void {
    const { outcome, tokens, retryAfterMs, announced = {} } = report;
    const nowMs = this.#clock.now();
    if (ticket !== undefined && typeof this.#concurrency !== "number" && teaches(outcome)) {
      const answer = { ticket, latencyMs: nowMs - sentMs, outcome };
      this.#concurrency.answered(answer, this.#inFlight);
    }
    if (sent !== undefined) judge(this.#breaker, sent, report, nowMs);
    for (const what of ["requests", "tokens"] as const) {
      const said = announced[what];
      if (said !== undefined) this.#announced[what].over(taken[what], said, nowMs);
    }
    if (tokens !== undefined) this.#tokens?.giveBack(estimate - tokens, sentMs, nowMs);
    if (outcome === "refused") this.#refused += 1;
    if (retryAfterMs !== undefined) {
      this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + retryAfterMs);
    }
  }
}

/** Whether an outcome says something about the endpoint's room. */
function teaches(outcome: LimitReport["outcome"]): outcome is Answered["outcome"] {
  return outcome === "ok" || outcome === "refused" || outcome === "failed";
}

function limitOf(concurrency: number | AdaptiveLimit): number {
  return typeof concurrency === "number" ? concurrency : concurrency.limit;
}

type Budgets = Readonly<Record<"requests" | "tokens", AnnouncedBudget>>;
type Taken = Readonly<Record<"requests" | "tokens", TakenCall>>;

/** A call is over; what its answer announced was heard before. */
function over(budgets: Budgets, taken: Taken, nowMs: number): void {
  budgets.requests.over(taken.requests, undefined, nowMs);
  budgets.tokens.over(taken.tokens, undefined, nowMs);
}

function judge(
  breaker: CircuitBreaker | undefined,
  sent: number,
  { outcome }: LimitReport,
  nowMs: number,
): void {
  if (outcome === "unknown") return breaker?.givenUp(sent);
  // An endpoint that refuses for lack of room is alive.
  breaker?.answered(sent, outcome !== "failed" && outcome !== "malformed", nowMs);
}

function rateOf(perMinute: number | undefined, minuteMs: number): RateLimit | undefined {
  return perMinute === undefined ? undefined : new RateLimit(perMinute, minuteMs);
}
