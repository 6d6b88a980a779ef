/** The use of an endpoint's limits as metrics of the session, a moment after each change. */

import * as ray from "@rayling/core";
import type { LimiterState } from "./limiter.ts";

const noteMs = 500;

export class LimiterMetrics {
  readonly #endpoint: string;
  readonly #state: () => LimiterState;
  readonly #calls = new ray.metrics.Gauge("reward_endpoint_calls", {
    description: "Calls of an endpoint that wait for its limits, or are under way.",
    tagKeys: ["endpoint", "state"],
  });
  readonly #limit = new ray.metrics.Gauge("reward_endpoint_limit", {
    description: "The most calls of an endpoint that may be under way now.",
    tagKeys: ["endpoint"],
  });
  readonly #granted = new ray.metrics.Counter("reward_endpoint_calls_total", {
    description: "Calls that the limits of an endpoint let through.",
    tagKeys: ["endpoint"],
  });
  readonly #refused = new ray.metrics.Counter("reward_endpoint_refused_total", {
    description: "Calls that an endpoint refused (429, 503).",
    tagKeys: ["endpoint"],
  });
  #noted: { readonly granted: number; readonly refused: number } = { granted: 0, refused: 0 };
  #isNoting = false;

  constructor(endpoint: string, state: () => LimiterState) {
    this.#endpoint = endpoint;
    this.#state = state;
  }

  changed(): void {
    if (this.#isNoting) return;
    this.#isNoting = true;
    setTimeout(() => this.#note(), noteMs).unref();
  }

  #note(): void {
    this.#isNoting = false;
    const endpoint = this.#endpoint;
    const { waiting, inFlight, limit, granted, refused } = this.#state();
    this.#calls.set(waiting, { endpoint, state: "waiting" });
    this.#calls.set(inFlight, { endpoint, state: "in_flight" });
    this.#limit.set(limit, { endpoint });
    // A limiter with new settings counts from 0.
    const before = granted < this.#noted.granted ? { granted: 0, refused: 0 } : this.#noted;
    if (granted > before.granted) this.#granted.inc(granted - before.granted, { endpoint });
    if (refused > before.refused) this.#refused.inc(refused - before.refused, { endpoint });
    this.#noted = { granted, refused };
  }
}
