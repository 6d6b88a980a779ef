/**
 * Decides whether a failed sample is scored again, and when: a failure that may not recur is
 * retried after a growing pause, drawn at random from its whole length (so that calls that failed
 * together do not return together), and when a shared budget allows it, so that an endpoint which
 * is down does not get several times its usual load.
 *
 * The budget delays attempts and never takes one away. Invariant: while an attempt waits for the
 * budget a timer runs, so that every attempt gets its turn.
 */

import type { SignalOfCall } from "./call-signal.ts";
import { type Clock, longestTimer, realClock } from "../time/clock.ts";
import { retryOptions, type RetryTable } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf } from "../options/table.ts";
import type { FailureClass } from "../outcome.ts";

/** Which failures are retried, how often and when. */
export type RetrySettings = OptionsOf<RetryTable>;

/** The default longest retry-after. */
export const { maxRetryAfterMs } = withDefaults(retryOptions, {});

/** Retries that are always allowed to begin with, and saved up at most. */
const reserve = { atFirst: 10, most: 100 } as const;

/** As with TCP's slow start: an endpoint that answers again gets twice as many each time. */
const perSuccess = 2;

/** While the budget is used up one retry is let through each such time. */
const longestTurnMs = 1000;

export class RetryPolicy {
  readonly #attempts: number;
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #maxRetryAfterMs: number;
  readonly #classes: ReadonlySet<FailureClass>;
  readonly #budget: number;
  readonly #random: () => number;
  readonly #clock: Clock;
  /** Retries that wait for their turn, in order. */
  readonly #line: Set<() => void> = new Set();
  #saved: number = reserve.atFirst;
  #isTicking = false;

  constructor(
    settings: RetrySettings = {},
    random: () => number = Math.random,
    clock: Clock = realClock,
  ) {
    const { attempts, baseMs, maxMs, classes, ...rest } = withDefaults(retryOptions, settings);
    this.#attempts = attempts;
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#maxRetryAfterMs = rest.maxRetryAfterMs;
    this.#classes = new Set(classes);
    this.#budget = rest.budget;
    this.#random = random;
    this.#clock = clock;
  }

  /** A sample was tried for the first time. */
  began(): void {
    this.#save(this.#budget);
  }

  /** Records that a retried sample has a score. */
  succeeded(): void {
    this.#save(perSuccess);
  }

  /**
   * The pause before the next try may wait for its turn; undefined: this failure is the outcome.
   *
   * @param attempts tries so far
   * @param retryAfterMs what the endpoint asked for: the least
   */
  delayMs(attempts: number, failure: FailureClass, retryAfterMs = 0): number | undefined {
    if (attempts >= this.#attempts || !this.#classes.has(failure)) return undefined;
    if (retryAfterMs > this.#maxRetryAfterMs) return undefined;
    const longest = Math.min(this.#maxMs, this.#baseMs * 2 ** (attempts - 1));
    return Math.min(retryAfterMs + this.#random() * longest, longestTimer);
  }

  /** Whether the next one would have to wait for its turn. */
  get isUsedUp(): boolean {
    return this.#line.size > 0 || this.#saved < 1;
  }

  /**
   * Resolves when a due retry may begin, and takes it from the budget. Rejects with the signal's
   * reason.
   */
  turn(signal?: SignalOfCall): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason);
      const leave = (): void => {
        this.#line.delete(go);
        reject(signal?.reason);
      };
      const go = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#line.add(go);
      this.#serve();
    });
  }

  #save(tries: number): void {
    this.#saved = Math.min(reserve.most, this.#saved + tries);
    this.#serve();
  }

  #serve(): void {
    for (const go of this.#line) {
      if (this.#saved < 1 && this.#budget < Infinity) break;
      this.#saved -= 1;
      this.#line.delete(go);
      go();
    }
    if (this.#line.size === 0 || this.#isTicking) return;
    this.#isTicking = true;
    this.#clock.after(Math.min(Math.max(1, this.#baseMs), longestTurnMs), () => {
      this.#isTicking = false;
      // An aborted attempt needs no budget.
      if (this.#line.size > 0) this.#save(1);
    });
  }
}
