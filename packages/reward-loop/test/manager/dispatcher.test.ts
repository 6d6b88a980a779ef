/** Samples to workers: slots that get free find their next samples there. */

import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fixture, numbers, sampleOf } from "../loop.ts";

beforeAll(() => ray.init());
afterAll(() => ray.shutdown());

test("a slot that gets free begins its next sample while the driver's thread is held", async () => {
  const state = new Int32Array(new SharedArrayBuffer(8));
  const reward = { path: fixture("gate.ts"), name: "counted", rewardKwargs: { state } };
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 8,
    reward,
  });
  const outcomes = Promise.all(numbers(16).map((text) => loop.computeScore(sampleOf(text))));
  const begun = (): number => Atomics.load(state, 0);
  await expect.poll(begun).toBe(8);
  Atomics.store(state, 1, 1);
  Atomics.notify(state, 1);
  // A quarter of the slots: they stand ready in the worker.
  for (let now = begun(); now < 10; now = begun()) {
    if (Atomics.wait(state, 0, now, 30_000) === "timed-out") break;
  }
  expect(begun()).toBeGreaterThanOrEqual(10);
  expect((await outcomes).every(({ valid }) => valid)).toBe(true);
});
