/** The metrics of a step's rewards, worked out by hand. */

import { expect, test } from "vitest";
import { rewardMetrics } from "@rayling/trainer";
import { invalid, valid } from "./run-folder.ts";

test("of ten samples, with times", () => {
  const outcomes = [
    ...Array.from({ length: 6 }, (_, index) =>
      valid(1000 * (index + 1), { waitedMs: 500, cost: 0.5 }),
    ),
    valid(7000, { attempts: 3, waitedMs: 2500 }),
    invalid("down", { latencyMs: 8000, attempts: 2, waitedMs: 500 }),
    valid(0, { cached: true, attempts: 0, cost: 0 }),
    invalid("no prompt", { latencyMs: 0, attempts: 0 }),
  ];
  const times = { spanMs: 12_000, exposedWaitMs: 3000, slots: 6 };
  expect(rewardMetrics(outcomes, times)).toEqual({
    "reward/queue_wait_mean_s": 0.75,
    "reward/queue_wait_p50_s": 0.5,
    "reward/queue_wait_p95_s": 2.5,
    "reward/queue_wait_p99_s": 2.5,
    "reward/queue_wait_max_s": 2.5,
    "reward/latency_mean_s": 4.5,
    "reward/latency_p50_s": 4,
    "reward/latency_p95_s": 8,
    "reward/latency_p99_s": 8,
    "reward/latency_max_s": 8,
    "reward/retry_rate": 0.25,
    "reward/invalid_rate": 0.2,
    "reward/cached_rate": 0.1,
    "reward/cost": 3,
    "reward/inflight": 3.5,
    "reward/pool_util": 0.5,
    "reward/exposed_wait_s": 3,
    overlap_ratio: 0.75,
  });
});

test("each function of several is one try", () => {
  const twice = valid(10, { attempts: 2, components: { rule: valid(1), judge: valid(9) } });
  const again = { rule: valid(1), judge: valid(9, { attempts: 2 }) };
  const tried = valid(10, { attempts: 3, components: again });
  expect(rewardMetrics([twice])["reward/retry_rate"]).toBe(0);
  expect(rewardMetrics([twice, tried])["reward/retry_rate"]).toBe(0.5);
});

test("what is not known is left out, never a zero", () => {
  expect(rewardMetrics([])).toEqual({});
  expect(rewardMetrics([], { spanMs: 0, exposedWaitMs: 0, slots: 4 })).toEqual({
    "reward/exposed_wait_s": 0,
  });
  expect(rewardMetrics([valid(0, { cached: true, attempts: 0 })])).toEqual({
    "reward/invalid_rate": 0,
    "reward/cached_rate": 1,
  });
});

test("who waits longer than the rewards take overlaps nothing", () => {
  const metrics = rewardMetrics([valid(10)], { spanMs: 100, exposedWaitMs: 150 });
  expect(metrics["overlap_ratio"]).toBe(0);
});

test("of which some were known before the span", () => {
  const outcomes = [valid(1000), valid(3000, { waitedMs: 1000 })];
  const times = { spanMs: 2000, slots: 1, scoredInSpan: outcomes.slice(0, 1) };
  expect(rewardMetrics(outcomes, times)).toMatchObject({
    "reward/latency_mean_s": 2,
    "reward/inflight": 0.5,
    "reward/pool_util": 0.5,
  });
});
