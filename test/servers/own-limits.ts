/** What a judge server allows, counted by itself: calls at once, requests and tokens in any minute. Each call beyond one is a violation. */

export interface OwnLimits {
  readonly concurrency?: number;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  /** How long a minute is here. Default 60,000. */
  readonly minuteMs?: number;
}

export type Violation = "concurrency" | "requests" | "tokens";

/** Of one call. */
export interface Place {
  /** Once; later calls do nothing. */
  left(usedTokens: number): void;
}

interface Taken {
  readonly atMs: number;
  tokens: number;
}

export class LimitCounter {
  readonly #limits: OwnLimits;
  /** Of the last minute, in order. */
  #taken: Taken[] = [];
  #first = 0;
  #tokens = 0;
  #inFlight = 0;
  #mostInFlight = 0;

  constructor(limits: OwnLimits) {
    this.#limits = limits;
  }

  get mostInFlight(): number {
    return this.#mostInFlight;
  }

  /** What it would be beyond; undefined: it is let in, and counted until `left` is called. */
  enter(tokens: number, nowMs: number): Violation | Place {
    const { concurrency, requestsPerMinute, tokensPerMinute, minuteMs = 60_000 } = this.#limits;
    this.#forget(nowMs - minuteMs);
    if (concurrency !== undefined && this.#inFlight >= concurrency) return "concurrency";
    const requests = this.#taken.length - this.#first;
    if (requestsPerMinute !== undefined && requests >= requestsPerMinute) return "requests";
    if (tokensPerMinute !== undefined && this.#tokens + tokens > tokensPerMinute) return "tokens";
    const taken = { atMs: nowMs, tokens };
    this.#taken.push(taken);
    this.#tokens += tokens;
    this.#inFlight += 1;
    this.#mostInFlight = Math.max(this.#mostInFlight, this.#inFlight);
    let isIn = true;
    return {
      left: (usedTokens) => {
        if (!isIn) return;
        isIn = false;
        this.#inFlight -= 1;
        if (this.#taken.includes(taken, this.#first)) this.#tokens += usedTokens - taken.tokens;
        taken.tokens = usedTokens;
      },
    };
  }

  /** What is left of the requests of a minute, and when all of them are there again. */
  requestsAt(nowMs: number): { readonly remaining: number; readonly resetMs: number } {
    const { requestsPerMinute = Infinity, minuteMs = 60_000 } = this.#limits;
    this.#forget(nowMs - minuteMs);
    const last = this.#taken.at(-1)?.atMs ?? nowMs - minuteMs;
    const remaining = requestsPerMinute - (this.#taken.length - this.#first);
    return { remaining, resetMs: Math.max(1, last + minuteMs - nowMs) };
  }

  #forget(beforeMs: number): void {
    while (this.#first < this.#taken.length) {
      const taken = this.#taken[this.#first];
      if (taken === undefined || taken.atMs > beforeMs) break;
      this.#tokens -= taken.tokens;
      this.#first += 1;
    }
    if (this.#first > 10_000) {
      this.#taken = this.#taken.slice(this.#first);
      this.#first = 0;
    }
  }
}
