/** Settings of verl's scorers by data source in a loop: of one function, and of several of which one is the user's. */

import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fixture } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

async function scoreOf(options: RewardLoopOptions): Promise<unknown> {
  await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
  const outcome = await loop.computeScore({
    dataSource: "hiyouga/geometry3k",
    response: String.raw`\boxed{0.1+0.2}`,
    groundTruth: "0.3",
  });
  return outcome.valid ? outcome.rewardScore : outcome.error.code;
}

test("lenient takes for right what verl does not", async () => {
  expect(await scoreOf({})).toBe(0);
  expect(await scoreOf({ computeScoreKwargs: { lenient: true } })).toBe(0.9);
});

test("of several rewards those without a function of their own have the setting", async () => {
  const rewards = { rule: {}, length: { reward: `${fixture("rewards.ts")}:one` } };
  expect(await scoreOf({ rewards })).toBe(1);
  expect(await scoreOf({ rewards, computeScoreKwargs: { lenient: true } })).toBe(1.9);
});
