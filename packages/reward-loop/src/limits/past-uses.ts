/**
 * A holder's use of its endpoint's limits in the last minute, by the tenth of a second, for a
 * limiter that has forgotten it.
 */

import type { PastUse } from "./limiter.ts";

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

  /** A call that was let through then is over. */
  add({ atMs, tokens }: { readonly atMs: number; readonly tokens: number }, nowMs: number): void {
    if (this.#isPast(atMs, nowMs)) return;
    const slot = Math.floor(atMs / this.#slotMs);
    let use = this.#uses.get(slot);
    if (use === undefined) {
      // Done for each new slot, so that there are never many more slots than in a minute.
      this.#forget(nowMs);
      use = { requests: 0, tokens: 0 };
      this.#uses.set(slot, use);
    }
    use.requests += 1;
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
