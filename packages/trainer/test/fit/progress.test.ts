/** What is told of a step while it goes on. */

import type { TrainingProgress } from "@rayling/trainer";
import { expect, onTestFinished, test, vi } from "vitest";
import { silentTracker } from "../../src/tracking/step-tracker.ts";
import { StepRecord } from "../../src/record/step-record.ts";

test("rewards in flight are told again while they are waited for, whenever they are others", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const told: TrainingProgress[] = [];
  let inFlight = 8;
  const tracker = { ...silentTracker, progress: (one: TrainingProgress) => void told.push(one) };
  const record = new StepRecord(
    3,
    tracker,
    () => inFlight,
    () => 0,
  );
  const scored = Promise.withResolvers<void>();
  const waiting = record.clock.time("adv", () => record.waitFor(() => scored.promise));
  for (inFlight of [6, 6, 1]) vi.advanceTimersByTime(1000);
  // One that began before goes on beside it, and is not what is told of.
  const reference = Promise.withResolvers<void>();
  const asked = record.clock.time("ref", () => reference.promise);
  inFlight = 0;
  vi.advanceTimersByTime(1000);
  scored.resolve();
  reference.resolve();
  await Promise.all([waiting, asked]);
  inFlight = 5;
  vi.advanceTimersByTime(1000);
  expect(told.map(({ phase, inFlight: left }) => `${phase} ${left}`)).toEqual([
    "adv 8",
    "adv 6",
    "adv 1",
    "ref 1",
    "ref 0",
  ]);
  expect(vi.getTimerCount()).toBe(0);
});
