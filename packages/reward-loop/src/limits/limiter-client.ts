/**
 * A holder's side of a RewardLimiter: asks for leases, gives them back, and says what it holds again when the limiter was restarted.
 * A limiter that is gone for good rejects who asks; it never lets them through.
 */

import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import { PATIENT, WHENEVER } from "../patience.ts";
import type { LimitReport, LimitRequest } from "./limiter.ts";
import type { RewardLimiter, RewardLimiterSettings } from "./reward-limiter.ts";

export interface RemoteLease {
  readonly waitedMs: number;
  /** Once; later calls do nothing. */
  release(report: LimitReport): void;
}

export class LimiterClient {
  readonly #limiter: ActorHandle<RewardLimiter>;
  readonly #holder: string;
  readonly #settings: RewardLimiterSettings;
  /** With the tokens estimated for them. */
  readonly #held: Map<number, number> = new Map();
  #count = 0;
  #isOpen: Promise<void>;

  /** @param holder unlike all others, also those of earlier lives */
  constructor(
    limiter: ActorHandle<RewardLimiter>,
    holder: string,
    settings: RewardLimiterSettings,
  ) {
    this.#limiter = limiter;
    this.#holder = holder;
    this.#settings = settings;
    this.#isOpen = this.#open();
    void this.#watch();
  }

  /** Rejects with RewardLimiterConflictError, or why the limiter is gone. */
  ready(): Promise<void> {
    return this.#isOpen;
  }

  /** Rejects with the signal's reason when it is aborted before, and as `ready` does. */
  async acquire(request: LimitRequest, signal?: AbortSignal): Promise<RemoteLease> {
    signal?.throwIfAborted();
    const id = ++this.#count;
    const leave = (): void => void this.#limiter.leave.remote(this.#holder, id);
    signal?.addEventListener("abort", leave, { once: true });
    try {
      const waitedMs = await this.#ask(id, request);
      signal?.throwIfAborted();
      this.#held.set(id, request.tokens ?? 0);
      return { waitedMs, release: (report) => this.#release(id, report) };
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  async #ask(id: number, request: LimitRequest): Promise<number> {
    for (;;) {
      await this.#isOpen;
      try {
        const granted = this.#limiter.acquire.remote(this.#holder, id, request);
        const waitedMs = await ray.get(granted, PATIENT);
        if (waitedMs !== undefined) return waitedMs;
      } catch (error) {
        // It was restarted over it, and has forgotten who waits.
        if (!(error instanceof ray.ActorUnavailableError)) throw error;
      }
    }
  }

  #release(id: number, report: LimitReport): void {
    if (!this.#held.delete(id)) return;
    void this.#limiter.release.remote(this.#holder, id, report);
  }

  #open(): Promise<void> {
    const opened = this.#openUntilDone();
    // Whoever asks hears of it.
    opened.catch(() => undefined);
    return opened;
  }

  async #openUntilDone(): Promise<void> {
    for (;;) {
      await turn();
      try {
        const held = [...this.#held];
        await ray.get(this.#limiter.open.remote(this.#holder, this.#settings, held));
        return;
      } catch (error) {
        if (!(error instanceof ray.ActorUnavailableError)) throw error;
      }
    }
  }

  /** Says again what it holds, after each restart: also what was granted just before, which is noted a turn later. */
  async #watch(): Promise<void> {
    for (;;) {
      try {
        await this.#isOpen;
        await ray.get(this.#limiter.watch.remote(this.#holder), WHENEVER);
      } catch (error) {
        if (!(error instanceof ray.ActorUnavailableError)) return;
        this.#isOpen = this.#open();
      }
    }
  }
}
