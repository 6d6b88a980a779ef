/** How many rewards the training has at a time. */

import * as ray from "@rayling/core";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { afterAll, expect, test } from "vitest";
import { RewardDesk } from "../../src/fit/reward-desk.ts";
import { rewardsPath } from "../fixtures/scored-training.ts";

afterAll(async () => {
  await ray.shutdown();
});

test.for<[string, Partial<RewardLoopOptions>, number]>([
  ["the slots of its workers", {}, 6],
  ["no more than its limits let through", { limits: { concurrency: 4 } }, 4],
  ["not more than its slots for a limit that is wider", { limits: { concurrency: 40 } }, 6],
  ["as an adaptive limit may grow", { limits: { concurrency: { max: 5 } } }, 5],
  ["one with the manager rate_limited", { manager: "rate_limited" }, 1],
  [
    "as the manager rate_limited says",
    { manager: "rate_limited", managerOptions: { maxConcurrent: 2 } },
    2,
  ],
])("%s", async ([, more, slots]) => {
  const reward = { path: rewardsPath, name: "halves" };
  await using desk = await RewardDesk.open(
    { reward, workers: 2, executors: 1, concurrency: 3, ...more },
    {},
  );
  expect(desk.slots).toBe(slots);
});
