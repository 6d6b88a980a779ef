/**
 * A holder's side of a RewardLimiter: acquires and releases leases, and after a restart of the
 * limiter reports the leases that it holds and its use in the last minute. The lease of a call that
 * was given up and never ends is released after a while. If the limiter is gone for good, requests
 * reject; they are never let through.
 */

import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import { RewardLoopClosedError } from "../errors.ts";
import type { SignalOfCall } from "../faults/call-signal.ts";
import { limiterOptions } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import { PATIENT, WHENEVER } from "../time/stuck-warning.ts";
import { type Clock, realClock } from "../time/clock.ts";
import type { LimitReport, LimitRequest } from "./limiter.ts";
import { PastUses } from "./past-uses.ts";
import type { RewardLimiter, RewardLimiterSettings } from "./reward-limiter.ts";

export interface RemoteLease {
  readonly waitedMs: number;
  /**
   * The result of the call is no longer needed, so it may go on for ever: the lease is released
   * after OVERDUE_MS at the latest.
   */
  givenUp(): void;
  /** Once; later calls do nothing. */
  release(report: LimitReport): void;
}

/**
 * A client that gave up a request holds it for a few minutes at most (undici: 300 s), and this is
 * twice that. Without an end a fixed limit would be used up by a few calls that never end.
 */
export const OVERDUE_MS = 600_000;

interface Held {
  /** The call's estimated tokens. */
  readonly tokens: number;
  readonly sentMs: number;
  /** Takes back that it is given back later. */
  keep: (() => void) | undefined;
}

export class LimiterClient {
  readonly #limiter: ActorHandle<RewardLimiter>;
  readonly #holder: string;
  readonly #settings: RewardLimiterSettings;
  readonly #clock: Clock;
  readonly #held: Map<number, Held> = new Map();
  readonly #past: PastUses | undefined;
  #count = 0;
  #isOpen: Promise<void>;
  #isClosed = false;

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
    this.#past = isRated ? new PastUses(minuteMs) : undefined;
    this.#isOpen = this.#open();
    void this.#watch();
  }

  /** Asks for nothing more and is not announced again: its leases are for others to give back. */
  close(): void {
    this.#isClosed = true;
    this.#isOpen = Promise.reject(new RewardLoopClosedError());
    this.#isOpen.catch(() => undefined);
  }

  /** Rejects with RewardLimiterConflictError, or why the limiter is gone. */
  ready(): Promise<void> {
    return this.#isOpen;
  }

  /** Rejects with the signal's reason when it is aborted before, and as `ready` does. */
  async acquire(request: LimitRequest, signal?: SignalOfCall): Promise<RemoteLease> {
    signal?.throwIfAborted();
    const id = ++this.#count;
    const leave = (): void => void this.#limiter.leave.remote(this.#holder, id);
    signal?.addEventListener("abort", leave, { once: true });
    try {
      const waitedMs = await this.#ask(id, request, signal);
      if (signal?.aborted === true) {
        // The limiter granted it before it processed `leave`, or was restarted in between.
        leave();
        throw signal.reason;
      }
      const sentMs = this.#clock.now();
      this.#held.set(id, { tokens: request.tokens ?? 0, sentMs, keep: undefined });
      const release = (report: LimitReport): void => this.#release(id, report);
      return { waitedMs, givenUp: () => this.#givenUp(id), release };
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  async #ask(id: number, request: LimitRequest, signal?: SignalOfCall): Promise<number> {
    for (;;) {
      await this.#isOpen;
      signal?.throwIfAborted();
      try {
        const granted = this.#limiter.acquire.remote(this.#holder, id, request);
        const waitedMs = await ray.get(granted, PATIENT);
        if (waitedMs !== undefined) return waitedMs;
      } catch (error) {
        // A restarted limiter has forgotten its waiting requests.
        if (!(error instanceof ray.ActorUnavailableError)) throw error;
      }
    }
  }

  #givenUp(id: number): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    held.keep ??= this.#clock.after(OVERDUE_MS, () => this.#release(id, { outcome: "unknown" }));
  }

  #release(id: number, report: LimitReport): void {
    const held = this.#held.get(id);
    held?.keep?.();
    if (held === undefined || !this.#held.delete(id)) return;
    const { sentMs, tokens } = held;
    this.#past?.add({ atMs: sentMs, tokens: report.tokens ?? tokens }, this.#clock.now());
    void this.#limiter.release.remote(this.#holder, id, report);
  }

  #open(): Promise<void> {
    const opened = this.#openUntilDone();
    // Callers of ready and acquire get the rejection.
    opened.catch(() => undefined);
    return opened;
  }

  async #openUntilDone(): Promise<void> {
    for (;;) {
      await turn();
      if (this.#isClosed) throw new RewardLoopClosedError();
      try {
        const held = [...this.#held].map(([id, { tokens }]) => [id, tokens] as const);
        const used = this.#past?.at(this.#clock.now()) ?? [];
        await ray.get(this.#limiter.open.remote(this.#holder, this.#settings, held, used));
        return;
      } catch (error) {
        if (!(error instanceof ray.ActorUnavailableError)) throw error;
      }
    }
  }

  /**
   * Announces the holder, and again after each restart and where the limiter has dropped it: with
   * the leases it holds, also those granted just before, which are recorded a turn later.
   */
  async #watch(): Promise<void> {
    for (;;) {
      try {
        await this.#isOpen;
        const isKnown = await ray.get(this.#limiter.watch.remote(this.#holder), WHENEVER);
        if (!isKnown && !this.#isClosed) this.#isOpen = this.#open();
      } catch (error) {
        if (this.#isClosed || !(error instanceof ray.ActorUnavailableError)) return;
        this.#isOpen = this.#open();
      }
    }
  }
}
