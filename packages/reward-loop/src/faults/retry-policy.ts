/**
 * Whether a sample that failed is scored again, and when: what may go better later, after a pause that grows and is drawn at random from all of its length (so that those
 * who failed together do not come back together), within a budget for all, so that an endpoint which is down is not called several times as often as one that is up.
 */

import { retryOptions, type RetryTable } from "../options/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf } from "../options/table.ts";
import type { FailureClass } from "./failure-class.ts";

export type RetrySettings = OptionsOf<RetryTable>;

/** Where nobody says otherwise. */
export const { maxRetryAfterMs } = withDefaults(retryOptions, {});

/** What a timer can take; a longer one would be over at once. */
const longestTimer = 2 ** 31 - 1;

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
    const { attempts, baseMs, maxMs, classes, ...rest } = withDefaults(retryOptions, settings);
    this.#attempts = attempts;
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#maxRetryAfterMs = rest.maxRetryAfterMs;
    this.#classes = new Set(classes);
    this.#budget = rest.budget;
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
