/** A session that ends while many samples wait for a slot: each of them gets its end. */

import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { expect, test } from "vitest";

test("every sample rejects, also the many that were not sent yet", async () => {
  await ray.init({ prewarm: 0 });
  const path = fileURLToPath(new URL("fixtures/flaky.ts", import.meta.url));
  const loop = await RewardLoopManager.create({
    reward: path,
    workers: 1,
    executors: 1,
    concurrency: 4,
  });
  const sample = { response: "never", groundTruth: "", dataSource: "none" };
  const asked = Array.from({ length: 5000 }, () => loop.computeScore(sample));
  const ended = Promise.allSettled(asked);
  await ray.shutdown();
  expect((await ended).every(({ status }) => status === "rejected")).toBe(true);
});
