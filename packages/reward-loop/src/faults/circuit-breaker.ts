/**
 * Stops calls to an endpoint that fails: each would cost its deadline, and more load for the
 * endpoint.
 *
 * Closed, it counts the last calls; when too many of them failed it opens, and lets no call through
 * for a while, which doubles each time. Then it lets a few probes through: if all succeed it
 * closes, at the first failure it opens again. Pure: the caller has the clock.
 */

import { breakerOptions, type BreakerTable } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf } from "../options/table.ts";

/** When a circuit breaker opens, and for how long. */
export type BreakerSettings = OptionsOf<BreakerTable>;

/**
 * The state of a circuit breaker: "closed" lets calls through, "open" none, and "half-open" a few
 * probes.
 */
export type BreakerState = "closed" | "open" | "half-open";

const longest = 16;

export class CircuitBreaker {
  readonly #window: number;
  readonly #threshold: number;
  readonly #openMs: number;
  readonly #probes: number;
  /** The last calls as a ring: whether each failed. */
  #failed: boolean[] = [];
  #next = 0;
  #failures = 0;
  #state: BreakerState = "closed";
  /** Grows when calls that were sent before are not to count any more. */
  #generation = 0;
  #openUntilMs = 0;
  #times = 1;
  #probing = 0;
  #succeeded = 0;

  constructor(settings: BreakerSettings = {}) {
    const { window, threshold, openMs, probes } = withDefaults(breakerOptions, settings);
    this.#window = window;
    this.#threshold = threshold;
    this.#openMs = openMs;
    this.#probes = probes;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /**
   * Returns the time until a call may be let through; 0: now; Infinity: when the pending probes are
   * answered.
   */
  waitMs(nowMs: number): number {
    if (this.#state === "open" && nowMs < this.#openUntilMs) return this.#openUntilMs - nowMs;
    const isProbing = this.#state === "half-open";
    return isProbing && this.#probing + this.#succeeded >= this.#probes ? Infinity : 0;
  }

  /** A call goes out, which `waitMs` allowed. Returns what `answered` wants to know of it. */
  sent(): number {
    if (this.#state === "open") {
      this.#state = "half-open";
      this.#probing = 0;
      this.#succeeded = 0;
    }
    if (this.#state === "half-open") this.#probing += 1;
    return this.#generation;
  }

  /** Records an answer. Calls that were sent before the breaker opened no longer count. */
  answered(sent: number, ok: boolean, nowMs: number): void {
    if (sent !== this.#generation) return;
    if (this.#state === "closed") this.#note(ok, nowMs);
    else if (this.#state === "half-open") this.#probed(ok, nowMs);
  }

  /** Pending calls no longer count: others are probes in their place. */
  forgetPending(): void {
    this.#generation += 1;
    this.#probing = 0;
  }

  /** Frees the probe's place of a call that was given up unanswered. */
  givenUp(sent: number): void {
    if (sent !== this.#generation || this.#state !== "half-open") return;
    this.#probing = Math.max(0, this.#probing - 1);
  }

  #note(ok: boolean, nowMs: number): void {
    if (this.#failed[this.#next] === true) this.#failures -= 1;
    this.#failed[this.#next] = !ok;
    if (!ok) this.#failures += 1;
    this.#next = (this.#next + 1) % this.#window;
    const seen = this.#failed.length;
    // Not `threshold * seen`: 0.07 * 100 is above 7, and 7 / 100 is 0.07.
    if (2 * seen >= this.#window && this.#failures / seen >= this.#threshold) this.#open(nowMs);
  }

  #probed(ok: boolean, nowMs: number): void {
    this.#probing = Math.max(0, this.#probing - 1);
    if (!ok) {
      this.#times = Math.min(longest, 2 * this.#times);
      return this.#open(nowMs);
    }
    this.#succeeded += 1;
    if (this.#succeeded < this.#probes) return;
    this.#state = "closed";
    this.#times = 1;
  }

  #open(nowMs: number): void {
    this.#state = "open";
    this.#generation += 1;
    this.#openUntilMs = nowMs + this.#openMs * this.#times;
    this.#failed = [];
    this.#next = 0;
    this.#failures = 0;
  }
}
