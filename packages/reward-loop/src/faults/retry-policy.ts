/**
 * Whether a sample that failed is scored again, and when: what may go better later, after a pause that grows and is drawn at random from all of its length (so that those
 * who failed together do not come back together), within a budget for all, so that an endpoint which is down is not called several times as often as one that is up.
 */

import type { FailureClass } from "./failure-class.ts";

export interface RetrySettings {
  /** Tries in all. Default 3; 1: none is repeated. */
  readonly attempts?: number;
  /** The longest first pause; it doubles with each try. Default 500. */
  readonly baseMs?: number;
  /** Default 30,000. */
  readonly maxMs?: number;
  /** What an endpoint that names a longer time (`retry-after`) refused is not tried again, and its other calls pause no longer than that. Default 120,000. */
  readonly maxRetryAfterMs?: number;
  /** What is tried again. Default: infrastructure, rate-limit, timeout. */
  readonly classes?: readonly FailureClass[];
  /** Retries that are allowed for each first try, over time. Default 0.2; Infinity: as many as there are failures. */
  readonly budget?: number;
}

/** Clients of the big APIs wait for a minute at most (openai: 60 s), and limits begin anew after one: twice that. A day's limit that is used up is no matter of a pause. */
export const maxRetryAfterMs = 120_000;

/** What a timer can take; a longer one would be over at once. */
const longestTimer = 2 ** 31 - 1;

const standardClasses: readonly FailureClass[] = ["infrastructure", "rate-limit", "timeout"];

/** Retries that are always allowed to begin with, and saved up at most. */
const reserve = { atFirst: 10, most: 100 } as const;

export class RetryPolicy {
  readonly #attempts: number;
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #maxRetryAfterMs: number;
  readonly #classes: ReadonlySet<FailureClass>;
  readonly #budget: number;
  readonly #random: () => number;
  #saved: number = reserve.atFirst;

  constructor(settings: RetrySettings = {}, random: () => number = Math.random) {
    const { attempts = 3, baseMs = 500, maxMs = 30_000, classes = standardClasses } = settings;
    this.#attempts = attempts;
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#maxRetryAfterMs = settings.maxRetryAfterMs ?? maxRetryAfterMs;
    this.#classes = new Set(classes);
    this.#budget = settings.budget ?? 0.2;
    this.#random = random;
  }

  /** A sample was tried for the first time. */
  began(): void {
    this.#saved = Math.min(reserve.most, this.#saved + this.#budget);
  }

  /**
   * How long until the next try, which is taken from the budget; undefined: this failure is the outcome.
   *
   * @param attempts tries so far
   * @param retryAfterMs what the endpoint asked for: the least
   */
  delayMs(attempts: number, failure: FailureClass, retryAfterMs = 0): number | undefined {
    if (attempts >= this.#attempts || !this.#classes.has(failure)) return undefined;
    if (retryAfterMs > this.#maxRetryAfterMs || this.#saved < 1) return undefined;
    if (Number.isFinite(this.#budget)) this.#saved -= 1;
    const longest = Math.min(this.#maxMs, this.#baseMs * 2 ** (attempts - 1));
    return Math.min(retryAfterMs + this.#random() * longest, longestTimer);
  }
}
