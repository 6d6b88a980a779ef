/** How many steps the quickstart takes on machines of any speed. */

import { expect, test } from "vitest";
import { quickstartPlan } from "../src/quickstart/plan.ts";
import { settings } from "../src/quickstart/settings.ts";

const schedules = ["sync", "one-step-off-policy"] as const;
const planAt = (computeMs: number, leftMs = 65_000) =>
  quickstartPlan({ computeMs, schedules, leftMs });

test.each([20, 60, 100, 150, 200, 250, 300])(
  "a step of %i ms: at least 70 steps, within the time that is left",
  (computeMs) => {
    const { steps, seconds } = planAt(computeMs);
    expect(steps).toBeGreaterThanOrEqual(70);
    expect(steps).toBeLessThanOrEqual(200);
    if (computeMs <= 180) expect(seconds).toBeLessThanOrEqual(65);
  },
);

test("a fast machine trains for as long as it delights, and keeps the wait of the published runs", () => {
  const { steps, seconds, latencyMs } = planAt(100);
  expect(seconds).toBeLessThanOrEqual(settings.seconds.training + settings.margin.seconds);
  expect(steps).toBeLessThan(200);
  // 256 answers in 32 slots, each half of the slowest on average, and the last ones.
  expect(latencyMs * 4.6).toBeCloseTo(100 * 1.794, 6);
});

test("a slow one has a judge that is faster before it has fewer steps, and the wait stays as long as a step", () => {
  const some = planAt(190);
  expect(some.steps).toBe(70);
  expect(some.latencyMs * 4.6).toBeLessThan(190 * 1.794);
  const slow = planAt(2000);
  expect(slow.steps).toBe(70);
  expect(slow.latencyMs * 4.6).toBeCloseTo(2000, 6);
  expect(slow.seconds).toBeGreaterThan(65);
});

test("what is given is kept", () => {
  const given = { computeMs: 100, schedules, leftMs: 1000, steps: 20, latencyMs: 7 };
  expect(quickstartPlan(given)).toMatchObject({ steps: 20, latencyMs: 7 });
  expect(quickstartPlan({ ...given, latencyMs: 0 }).latencyMs).toBe(0);
});
