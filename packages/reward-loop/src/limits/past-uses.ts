/**
 * A holder's knowledge of its endpoint, for a limiter that has lost it: its use of the limits in
 * the last minute, by the tenth of a second, and the pause and the remainders that were announced.
 */

import type { AnnouncedLimit } from "@rayling/reward-manager-registry/values";
import type { EndpointWishes, LimitReport, PastUse } from "./limiter.ts";

/** Tenths of a second in a minute; the resolution of a rate window (rate-window.ts). */
const slots = 600;

/** A minute is looked at a sixtieth longer there. */
const margin = 61 / 60;

interface Use {
  requests: number;
  tokens: number;
}

export class PastUses {
  readonly #slotMs: number;
  readonly #minuteMs: number;
  /** Uses by slot, counted from the clock's zero. */
  readonly #uses: Map<number, Use> = new Map();

  /** @param minuteMs how long a minute is */
  constructor(minuteMs: number) {
    this.#minuteMs = minuteMs * margin;
    this.#slotMs = minuteMs / slots;
  }

  /** Requests of a call that were let through then have been answered. */
  add(
    { atMs, tokens }: { readonly atMs: number; readonly tokens: number },
    nowMs: number,
    requests = 1,
  ): void {
    if (this.#isPast(atMs, nowMs)) return;
    const slot = Math.floor(atMs / this.#slotMs);
    let use = this.#uses.get(slot);
    if (use === undefined) {
      // Done for each new slot, so that there are never many more slots than in a minute.
      this.#forget(nowMs);
      use = { requests: 0, tokens: 0 };
      this.#uses.set(slot, use);
    }
    use.requests += requests;
    use.tokens += tokens;
  }

  at(nowMs: number): PastUse[] {
    this.#forget(nowMs);
    return [...this.#uses].map(([slot, use]) => ({ agoMs: nowMs - slot * this.#slotMs, ...use }));
  }

  #forget(nowMs: number): void {
    for (const slot of this.#uses.keys()) {
      if (this.#isPast(slot * this.#slotMs, nowMs)) this.#uses.delete(slot);
    }
  }

  #isPast(atMs: number, nowMs: number): boolean {
    return nowMs - atMs >= this.#minuteMs;
  }
}

/** The remainder that was announced last, until the latest time that was announced. */
interface Said {
  readonly remaining: number;
  readonly untilMs: number;
}

export class HeardWishes {
  #pausedUntilMs = 0;
  #requests: Said | undefined;
  #tokens: Said | undefined;

  add({ retryAfterMs, announced }: LimitReport, nowMs: number): void {
    if (retryAfterMs !== undefined) {
      this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + retryAfterMs);
    }
    if (announced === undefined) return;
    this.#requests = later(this.#requests, announced.requests, nowMs);
    this.#tokens = later(this.#tokens, announced.tokens, nowMs);
  }

  /** Returns them as if they were announced at that time. */
  at(nowMs: number): EndpointWishes {
    const retryAfterMs = this.#pausedUntilMs - nowMs;
    const requests = stillSaid(this.#requests, nowMs);
    const tokens = stillSaid(this.#tokens, nowMs);
    return {
      ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
      announced: {
        ...(requests === undefined ? {} : { requests }),
        ...(tokens === undefined ? {} : { tokens }),
      },
    };
  }
}

function later(
  before: Said | undefined,
  said: AnnouncedLimit | undefined,
  nowMs: number,
): Said | undefined {
  if (said === undefined) return before;
  const untilMs = Math.max(before?.untilMs ?? 0, nowMs + said.resetMs);
  return { remaining: said.remaining, untilMs };
}

function stillSaid(said: Said | undefined, nowMs: number): AnnouncedLimit | undefined {
  if (said === undefined || said.untilMs <= nowMs) return undefined;
  return { remaining: said.remaining, resetMs: said.untilMs - nowMs };
}
