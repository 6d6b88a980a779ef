/**
 * Samples of a loop, their outcomes and their times as metrics of the session: for Prometheus, with
 * or without a trainer.
 */

import * as ray from "@rayling/core";
import type { SampleOutcome } from "../outcome.ts";

/** Upper bounds in seconds: from rules to judges that think. */
const boundaries = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export class LoopMetrics {
  readonly #samples = new ray.metrics.Counter("reward_samples_total", {
    description: "Samples that a reward loop was given.",
    tagKeys: ["lane"],
  });
  readonly #outcomes = new ray.metrics.Counter("reward_outcomes_total", {
    description: "Samples by what became of them: valid, or the code of the failure.",
    tagKeys: ["lane", "outcome"],
  });
  readonly #latency = new ray.metrics.Histogram("reward_latency_seconds", {
    description: "Seconds that scoring a sample took, without waiting.",
    tagKeys: ["lane"],
    boundaries,
  });
  readonly #waited = new ray.metrics.Histogram("reward_wait_seconds", {
    description: "Seconds that a sample waited for a slot, its endpoint's limits, and retries.",
    tagKeys: ["lane"],
    boundaries,
  });
  readonly #retries = new ray.metrics.Counter("reward_retries_total", {
    description: "Attempts after the first one of a function, without second calls of hedges.",
    tagKeys: ["lane"],
  });
  readonly #cost = new ray.metrics.Counter("reward_cost_total", {
    description: "Cost of scores, by the prices of the loop.",
    tagKeys: ["lane"],
  });

  readonly #lanes = new Map<string, LaneTags>();

  /** So many samples begin. */
  began(lane: string, count: number): void {
    if (count > 0) this.#samples.inc(count, this.#tagsOf(lane).lane);
  }

  ended(lane: string, outcome: SampleOutcome): void {
    const { valid, latencyMs, waitedMs, attempts, cost = 0, cached = false } = outcome;
    const tags = this.#tagsOf(lane);
    this.#outcomes.inc(1, tags.of(valid ? "valid" : outcome.error.code));
    const retries = attempts > 1 ? retriesIn(outcome) : 0;
    if (retries > 0) this.#retries.inc(retries, tags.lane);
    if (cost > 0) this.#cost.inc(cost, tags.lane);
    if (cached) return;
    this.#latency.observe(latencyMs / 1000, tags.lane);
    this.#waited.observe(waitedMs / 1000, tags.lane);
  }

  /** The loop was closed, or cannot score, before they had an outcome. */
  rejected(lane: string, count: number): void {
    if (count > 0) this.#outcomes.inc(count, this.#tagsOf(lane).of("rejected"));
  }

  #tagsOf(lane: string): LaneTags {
    let tags = this.#lanes.get(lane);
    if (tags === undefined) this.#lanes.set(lane, (tags = new LaneTags(lane)));
    return tags;
  }
}

/**
 * Returns the number of attempts after the first one, of each function that was asked: one more
 * function is no retry, nor is the second call of a hedge, and a group's call is one for all.
 */
export function retriesIn(outcome: SampleOutcome): number {
  const { components, attempts, hedges, cached, sharesCall } = outcome;
  if (components !== undefined) {
    return Object.values(components).reduce((sum, one) => sum + retriesIn(one), 0);
  }
  if (cached === true || sharesCall === true) return 0;
  return Math.max(0, attempts - 1 - (hedges?.begun ?? 0));
}

/** Frozen, and the same ones for each sample: they are checked once. */
class LaneTags {
  readonly lane: ray.metrics.Tags;
  readonly #byOutcome = new Map<string, ray.metrics.Tags>();

  constructor(lane: string) {
    this.lane = Object.freeze({ lane });
  }

  of(outcome: string): ray.metrics.Tags {
    let tags = this.#byOutcome.get(outcome);
    if (tags === undefined) {
      tags = Object.freeze({ ...this.lane, outcome });
      this.#byOutcome.set(outcome, tags);
    }
    return tags;
  }
}
