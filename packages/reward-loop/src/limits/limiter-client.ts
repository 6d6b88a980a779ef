/**
 * A holder's side of a RewardLimiter: asks for leases and releases them, all of one turn in one
 * call, and after a restart of the limiter reports the leases that it holds, the calls that wait,
 * its use in the last minute and what the endpoint asked for. The lease of a call that was given up
 * and never ends is released after a while. If the limiter is gone for good, requests reject; they
 * are never let through.
 */

import { AsyncResource } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import type { ActorHandle, ObjectRef } from "@rayling/core";
import { RewardLoopClosedError } from "../errors.ts";
import type { SignalOfCall } from "../faults/call-signal.ts";
import { limiterOptions } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import { PATIENT } from "../time/stuck-warning.ts";
import { type Clock, realClock } from "../time/clock.ts";
import type { GrantedCalls } from "./lease-holder.ts";
import type { LimitReport, LimitRequest } from "./limiter.ts";
import { HeardWishes, PastUses } from "./past-uses.ts";
import type {
  AskedCall,
  CallReport,
  RewardLimiter,
  RewardLimiterSettings,
} from "./reward-limiter.ts";

export interface RemoteLease {
  readonly waitedMs: number;
  /**
   * The result of the call is no longer needed, so it may go on for ever: the lease is released
   * after OVERDUE_MS at the latest.
   */
  givenUp(): void;
  /**
   * The call has its outcome, and may go on, as one that was given up. The limiter hears of it even
   * then, but frees its place with `release`. Once; later reports do nothing.
   *
   * @param further requests beyond the first, which a restarted limiter hears of
   */
  answered(report: LimitReport, further?: number): void;
  /**
   * The call is over. Once; later calls do nothing.
   *
   * @param report not heard after an earlier one
   */
  release(report: LimitReport): void;
}

/**
 * A client that gave up a request holds it for a few minutes at most (undici: 300 s), and this is
 * twice that. Without an end a fixed limit would be used up by a few calls that never end.
 */
export const OVERDUE_MS = 600_000;

/** A call that waits for its lease. */
interface Waiting {
  readonly request: LimitRequest;
  /** Ends the listening to its signal. */
  readonly stop: (() => void) | undefined;
  readonly granted: (lease: RemoteLease) => void;
  readonly failed: (error: unknown) => void;
}

export class LimiterClient {
  readonly #limiter: ActorHandle<RewardLimiter>;
  readonly #holder: string;
  readonly #settings: RewardLimiterSettings;
  readonly #clock: Clock;
  /**
   * The async context in which the client was made. Its calls run in it, and not in that of the
   * sample that asked first: if that one is cancelled, others have asked, too.
   */
  readonly #context = new AsyncResource("LimiterClient");
  readonly #held: Map<number, HeldLease> = new Map();
  readonly #waiting: Map<number, Waiting> = new Map();
  /** Messages for the limiter that are not sent yet: calls that wait, and calls that are over. */
  #news: News = noNews();
  /** For a limiter that is restarted. */
  readonly #past: { readonly uses: PastUses | undefined; readonly wishes: HeardWishes };
  #count = 0;
  /** How often it has registered at the limiter. */
  #epoch = 0;
  /** `sent`: messages that the limiter may not have heard. */
  readonly #flushes = { isScheduled: false, sent: new Set<Promise<void>>() };
  #isOpening = false;
  #opened: Promise<void> = Promise.resolve();
  /** Why nothing more is let through. */
  #ended: { readonly error: unknown } | undefined;

  /** @param holder unlike all others, also those of earlier lives */
  constructor(
    limiter: ActorHandle<RewardLimiter>,
    holder: string,
    settings: RewardLimiterSettings,
    clock: Clock = realClock,
  ) {
    this.#limiter = limiter;
    this.#holder = holder;
    this.#settings = settings;
    this.#clock = clock;
    const { requestsPerMinute, tokensPerMinute, minuteMs } = withDefaults(limiterOptions, settings);
    const isRated = requestsPerMinute !== undefined || tokensPerMinute !== undefined;
    const uses = isRated ? new PastUses(minuteMs) : undefined;
    this.#past = { uses, wishes: new HeardWishes() };
    this.#open();
    void this.#listen();
  }

  /** Gives back all leases; what waits rejects with RewardLoopClosedError. */
  close(): void {
    if (this.#ended !== undefined) return;
    this.#end(new RewardLoopClosedError());
    try {
      this.#context.runInAsyncScope(() => void this.#limiter.leave.remote(this.#holder));
    } catch (error) {
      // With the session its limiters end as well.
      if (!(error instanceof ray.RayError)) throw error;
    }
  }

  /** Rejects with RewardLimiterConflictError, or why the limiter is gone. */
  ready(): Promise<void> {
    return this.#opened;
  }

  /** Rejects with the signal's reason when it is aborted before, and as `ready` does. */
  acquire(request: LimitRequest, signal?: SignalOfCall): Promise<RemoteLease> {
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    if (this.#ended !== undefined) return Promise.reject(this.#ended.error);
    const id = ++this.#count;
    this.#news.asked.set(id, request);
    this.#scheduleFlush();
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(id);
        reject(signal?.reason);
        if (this.#news.asked.delete(id)) return;
        // If it is granted later, nobody wants that any more.
        this.#news.over.push([id, unwantedReport]);
        this.#scheduleFlush();
      };
      signal?.addEventListener("abort", leave, { once: true });
      const stop = signal && ((): void => signal.removeEventListener("abort", leave));
      this.#waiting.set(id, { request, stop, granted: resolve, failed: reject });
    });
  }

  /** One object for all leases. */
  readonly #ends: LeaseEnds = {
    answered: (lease, report, further) => {
      if (this.#ended !== undefined) return;
      const nowMs = this.#clock.now();
      this.#past.wishes.add(report, nowMs);
      // They were sent before: later than it was, so that they are not forgotten too early.
      if (further > 0) this.#past.uses?.add({ atMs: nowMs, tokens: 0 }, nowMs, further);
      this.#news.answered.push(lease);
      this.#scheduleFlush();
    },
    released: ({ id, sentMs, tokens }, report) => {
      const nowMs = this.#clock.now();
      this.#past.wishes.add(report, nowMs);
      if (!this.#held.delete(id) || this.#ended !== undefined) return;
      this.#past.uses?.add({ atMs: sentMs, tokens }, nowMs);
      this.#news.over.push([id, report]);
      this.#scheduleFlush();
    },
  };

  #scheduleFlush(): void {
    if (this.#flushes.isScheduled) return;
    this.#flushes.isScheduled = true;
    process.nextTick(() => this.#context.runInAsyncScope(() => this.#flush()));
  }

  #flush(): void {
    this.#flushes.isScheduled = false;
    // They are sent when the registration is done.
    if (this.#isOpening || this.#ended !== undefined) return;
    const { asked, answered, over } = this.#news;
    this.#news = noNews();
    // Most calls are over by now: their reports go with their leases.
    const goingOn = answered.filter(({ id }) => this.#held.has(id));
    const reports = [...goingOn.map((lease) => lease.reported()), ...over];
    if (asked.size + reports.length === 0) return;
    const sent = this.#update([...asked], reports, goingOn);
    this.#flushes.sent.add(sent);
    void sent.finally(() => this.#flushes.sent.delete(sent));
  }

  async #update(
    asked: readonly AskedCall[],
    over: readonly CallReport[],
    goingOn: readonly HeldLease[],
  ): Promise<void> {
    const { isHeard, error } = await this.#hear(() =>
      this.#limiter.update.remote(this.#holder, this.#epoch, asked, over),
    );
    if (isHeard) return;
    if (error === undefined || error instanceof ray.ActorUnavailableError) {
      this.#news.over.unshift(...over);
      // A limiter that does not know the holder hears of them when it knows their leases.
      this.#news.answered.push(...goingOn);
    } else for (const [id] of asked) this.#take(id)?.failed(error);
  }

  /** Asks for grants until the end, which also shows the limiter that this holder is alive. */
  async #listen(): Promise<void> {
    while (this.#ended === undefined) {
      await this.#opened.catch(() => undefined);
      await this.#hear(() => this.#limiter.nextGrants.remote(this.#holder, this.#epoch));
    }
  }

  /**
   * Takes the grants of an answer. Registers again if the limiter does not know this holder, or if
   * the call failed: then it may not have heard what was said.
   */
  async #hear(ask: () => ObjectRef<GrantedCalls | undefined>): Promise<Heard> {
    try {
      const granted = await ray.get(ask(), PATIENT);
      if (granted === undefined) this.#open();
      else for (const one of granted) this.#grant(one);
      return { isHeard: granted !== undefined };
    } catch (error) {
      if (isFinal(error)) this.#end(error);
      else this.#open();
      return { isHeard: false, error };
    }
  }

  #grant(one: GrantedCalls[number]): void {
    const [id] = one;
    const waiting = this.#take(id);
    // It has left, or was told of twice.
    if (waiting === undefined) return;
    const { tokens = 0 } = waiting.request;
    const lease = new HeldLease(one, tokens, this.#clock, this.#ends);
    this.#held.set(id, lease);
    waiting.granted(lease);
  }

  /** Removes a call from those that wait, and returns it. */
  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.stop?.();
    return waiting;
  }

  /** Registers at the limiter, unless that is under way. */
  #open(): void {
    if (this.#isOpening || this.#ended !== undefined) return;
    this.#isOpening = true;
    this.#opened = this.#openUntilDone();
    // Callers of ready and acquire get the rejection.
    this.#opened.catch((error: unknown) => this.#end(error));
  }

  /** Registers with all leases and all calls that wait. */
  async #openUntilDone(): Promise<void> {
    for (;;) {
      // Also a pause where an attempt has failed at once. A call that is over without its report
      // would count as not sent.
      await Promise.all([turn(), ...this.#flushes.sent]);
      if (this.#ended !== undefined) throw this.#ended.error;
      const held = [...this.#held.values()].map(({ id, tokens }) => [id, tokens] as const);
      const asked = [...this.#waiting].map(([id, { request }]) => [id, request] as const);
      const nowMs = this.#clock.now();
      const used = this.#past.uses?.at(nowMs) ?? [];
      const wishes = this.#past.wishes.at(nowMs);
      const { answered, over } = this.#news;
      // The limiter hears of these when it knows their leases.
      this.#news = { ...noNews(), answered };
      try {
        // If only the connection was lost, the limiter still has these leases; a restarted one
        // passes them over.
        if (over.length > 0) void this.#limiter.update.remote(this.#holder, this.#epoch, [], over);
        this.#epoch += 1;
        const report = { epoch: this.#epoch, held, asked, used, wishes };
        await ray.get(this.#limiter.open.remote(this.#holder, this.#settings, report));
        this.#isOpening = false;
        this.#scheduleFlush();
        return;
      } catch (error) {
        if (!(error instanceof ray.ActorUnavailableError)) throw error;
        this.#news.over.unshift(...over);
      }
    }
  }

  #end(reason: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = { error: reason };
    this.#opened = Promise.reject(reason);
    this.#opened.catch(() => undefined);
    for (const id of this.#waiting.keys()) this.#take(id)?.failed(reason);
  }
}

interface Heard {
  readonly isHeard: boolean;
  /** Why the call failed. */
  readonly error?: unknown;
}

interface News {
  readonly asked: Map<number, LimitRequest>;
  /** Calls that have their outcome, and may be over by now. */
  readonly answered: HeldLease[];
  readonly over: CallReport[];
}

const noNews = (): News => ({ asked: new Map(), answered: [], over: [] });

/** Nothing can be asked any more. */
function isFinal(error: unknown): boolean {
  return error instanceof ray.ActorDiedError || error instanceof ray.SessionEndedError;
}

/** The report of a call that did not begin. */
const unwantedReport: LimitReport = { outcome: "unknown", tokens: 0 };

const overdueReport: LimitReport = { outcome: "unknown" };

/** Hears what becomes of the leases of a holder. */
interface LeaseEnds {
  readonly answered: (lease: HeldLease, report: LimitReport, further: number) => void;
  readonly released: (lease: HeldLease, report: LimitReport) => void;
}

class HeldLease implements RemoteLease {
  readonly id: number;
  readonly waitedMs: number;
  /** The call's estimated tokens, until it is known how many it used. */
  tokens: number;
  readonly sentMs: number;
  readonly #clock: Clock;
  readonly #ends: LeaseEnds;
  #report: LimitReport | undefined;
  /** The report was sent to the limiter. */
  #isReported = false;
  #isOver = false;
  /** Takes back that it is released later. */
  #cancelOverdue: (() => void) | undefined;

  constructor([id, waitedMs]: GrantedCalls[number], tokens: number, clock: Clock, ends: LeaseEnds) {
    this.id = id;
    this.waitedMs = waitedMs;
    this.tokens = tokens;
    this.sentMs = clock.now();
    this.#clock = clock;
    this.#ends = ends;
  }

  givenUp(): void {
    if (this.#isOver) return;
    this.#cancelOverdue ??= this.#clock.after(OVERDUE_MS, () => this.release(overdueReport));
  }

  answered(report: LimitReport, further = 0): void {
    if (this.#isOver || this.#report !== undefined) return;
    this.givenUp();
    this.#report = report;
    this.tokens = report.tokens ?? this.tokens;
    this.#ends.answered(this, report, further);
  }

  /** Returns the report of a call that goes on. */
  reported(): CallReport {
    this.#isReported = true;
    return [this.id, this.#report ?? overdueReport, true];
  }

  release(report: LimitReport): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelOverdue?.();
    const heard = this.#report ?? report;
    this.tokens = heard.tokens ?? this.tokens;
    // Reported once: a limiter that was restarted since would count it again, and much later.
    const end = { outcome: "unknown", isCut: heard.isCut === true } as const;
    this.#ends.released(this, this.#isReported ? end : heard);
  }
}
