/** A loop that was told nothing of its endpoint's limits keeps to them by what the endpoint says in its answers, as counted by the server. */

import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startJudge } from "../servers/judge.ts";

vi.setConfig({ testTimeout: 600_000 });
beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const judged = fileURLToPath(new URL("../fixtures/judged.ts", import.meta.url));

test("no more requests are beyond the limit that answers tell of than may be under way at once", async () => {
  // Four minutes' worth, of an endpoint whose minutes last a second.
  const limits = { requestsPerMinute: 40, minuteMs: 1000 };
  await using judge = await startJudge({ limits, announces: true, latency: { uniform: [1, 5] } });
  await using loop = await RewardLoopManager.create({
    workers: 2,
    executors: 1,
    concurrency: 4,
    reward: { path: judged, name: "judged", rewardKwargs: { judgeUrl: judge.baseUrl } },
    limits: { endpoint: judge.baseUrl },
    retry: { attempts: 20, baseMs: 20, budget: Infinity },
  });
  const samples = Array.from({ length: 160 }, (_, index) => ({
    dataSource: "announced",
    response: `${index}. A: 1`,
    groundTruth: "1",
  }));
  let valid = 0;
  for await (const { outcome } of loop.scoreStream(samples)) valid += Number(outcome.valid);
  expect(valid).toBe(160);
  const { answered, requests } = await judge.stats();
  expect(answered).toBe(160);
  // Answers overtake each other and requests do, so that what is left is known but for those. Without what answers say it is 36 and more.
  expect(requests - answered).toBeLessThanOrEqual(20);
});
