/** Options that are wrong are refused at once, each by its name. */

import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { expect, test } from "vitest";

test.each([
  [{ worker: 2 }, "worker must be one of workers, concurrency"],
  [{ workers: 0 }, "workers must be a whole number of at least 1; it is 0"],
  [{ concurrency: 1.5 }, "concurrency must be a whole number"],
  [{ timeoutMs: 0 }, "timeoutMs must be a number above 0"],
  [{ timeoutMs: Infinity }, "timeoutMs must be a number"],
  [{ totalTimeoutMs: 2 ** 31 }, "totalTimeoutMs must be"],
  [{ limits: { rpm: 3 } }, "limits.rpm must be one of endpoint, requestsPerMinute"],
  [{ limits: { endpoint: " " } }, "limits.endpoint must be"],
  [{ limits: { requestsPerMinute: 0 } }, "limits.requestsPerMinute must be a number above 0"],
  [{ limits: { tokensPerMinute: "9" } }, "limits.tokensPerMinute must be"],
  [{ limits: { minuteMs: 9 } }, "limits.minuteMs must be left out without requestsPerMinute"],
  [{ limits: { concurrency: 0 } }, "limits.concurrency must be a whole number of at least 1"],
  [
    { limits: { concurrency: "many" } },
    'limits.concurrency must be a whole number of at least 1, "auto"',
  ],
  [
    { limits: { concurrency: { min: 5, max: 2 } } },
    "limits.concurrency.max must be a whole number of at least 5",
  ],
  [{ limits: { concurrency: { start: 5 } } }, "limits.concurrency.start must be one of min"],
  [{ limits: { shares: { training: 0 } } }, "limits.shares.training must be a number above 0"],
  [
    { limits: { breaker: { threshold: 2 } } },
    "limits.breaker.threshold must be a number above 0 and of at most 1",
  ],
  [
    { manager: "rate_limited", managerOptions: { rpm: 3 } },
    "managerOptions.rpm must be one of maxConcurrent",
  ],
  [{ managerOptions: { penalty: 1 } }, "managerOptions.penalty must be left out"],
  [
    { manager: "gdpo", managerOptions: { penalty: 1 } },
    "managerOptions.penalty must be one of experimentName",
  ],
  [
    { manager: "dapo", managerOptions: { overlongBuffer: { lne: 4 } } },
    "managerOptions.overlongBuffer.lne must be one of enable, len",
  ],
  [
    { manager: "limited", managerOptions: { maxRpm: 0 } },
    "managerOptions.maxRpm must be a number above 0",
  ],
  [
    { computeScoreKwargs: { method: "flexible" } },
    "computeScoreKwargs.method must be one of lenient",
  ],
  [{ computeScoreKwargs: { lenient: "yes" } }, "computeScoreKwargs.lenient must be true or false"],
  [
    { reward: "./reward.ts", computeScoreKwargs: { lenient: true } },
    "computeScoreKwargs must be left out with a `reward` of your own",
  ],
  [
    { rewards: { a: { reward: "./a.ts" } }, computeScoreKwargs: { lenient: true } },
    "computeScoreKwargs must be left out where each has a `reward` of your own",
  ],
  [{ sandboxFusion: { url: "sandbox:8080" } }, "sandboxFusion.url must be the URL of a service"],
  [
    { sandboxFusion: { url: "http://s/run_code", concurrency: 3 } },
    "sandboxFusion.concurrency must be one of url, maxConcurrent, memoryLimitMb",
  ],
  [
    { sandboxFusion: { url: "http://s/run_code", maxConcurrent: 0 } },
    "sandboxFusion.maxConcurrent must be a whole number of at least 1",
  ],
  [
    { reward: "./reward.ts", sandboxFusion: { url: "http://s/run_code" } },
    "sandboxFusion must be left out with a `reward` of your own",
  ],
  [
    {
      rewards: { a: { reward: "./a.ts" }, b: { cascade: { c: { reward: "./c.ts" } } } },
      sandboxFusion: { url: "http://s/run_code" },
    },
    "sandboxFusion must be left out where each has a `reward` of your own",
  ],
  [
    { cascade: { a: { reward: "./a.ts" } }, sandboxFusion: { url: "http://s/run_code" } },
    "sandboxFusion must be left out where each has a `reward` of your own",
  ],
  [
    { reward: { path: "./reward.ts", nmae: "other" } },
    "reward.nmae must be one of path, name, rewardKwargs, areKwargsShared",
  ],
  [{ reward: { name: "other" } }, "reward.path must be a text that is not empty"],
  [{ reward: { path: "./reward.ts", name: 5 } }, "reward.name must be a text that is not empty"],
  [
    { reward: { path: "./reward.ts", rewardKwargs: 5 } },
    "reward.rewardKwargs must be an object by names",
  ],
  [{ manager: { path: "./manager.ts", nmae: "Mine" } }, "manager.nmae must be one of path"],
  [{ tokenizer: { path: "./model", kwargs: {} } }, "tokenizer.kwargs must be one of path"],
  [
    { rewards: { a: { reward: { path: "./a.ts", nmae: "other" } } } },
    "rewards.a.reward.nmae must be one of path",
  ],
  [{ rewardModel: null }, "rewardModel must be an object; it is null"],
  [{ rewardModels: null }, "rewardModels must be an object by names; it is null"],
  [{ rewardModels: ["a"] }, "rewardModels must be an object by names"],
  [{ rewardModel: { tokeniser: "x" } }, "rewardModel.tokeniser must be one of engine"],
  [{ rewardModel: { servers: [5] } }, "rewardModel.servers must be a text that is not empty"],
  [{ rewardModel: { servers: "127.0.0.1:1" } }, "rewardModel.servers must be a list"],
  [{ rewardModel: { timeoutMs: -1 } }, "rewardModel.timeoutMs must be a number above 0"],
  [{ rewardModel: { maxRetries: "3" } }, "rewardModel.maxRetries must be a whole number"],
  [{ rewardModel: { sleeps: "yes" } }, "rewardModel.sleeps must be true or false"],
  [{ rewardModel: { sleepTimeoutMs: -5 } }, "rewardModel.sleepTimeoutMs must be a number above 0"],
  [{ rewardModel: { tokenizer: 5 } }, "rewardModel.tokenizer must be a text that is not empty"],
  [
    { rewardModels: { judge: { launch: { command: "x", argz: [] } } } },
    "rewardModels.judge.launch.argz must be one of command",
  ],
  [{ rewardModel: { launch: { command: "x" } } }, "rewardModel.launch.args must be a list"],
  [
    { rewardModel: { launch: { command: "x", args: "{port}" } } },
    "rewardModel.launch.args must be a list",
  ],
  [
    { rewardModel: { launch: { command: "x", args: [], startTimeoutMs: "5" } } },
    "rewardModel.launch.startTimeoutMs must be a number above 0",
  ],
  [
    { rewardModel: { launch: { command: "x", args: [], env: { PORT: 5 } } } },
    "rewardModel.launch.env.PORT must be a text",
  ],
  [
    { resourceLimits: { maxOldGenerationSizeMB: 50 } },
    "resourceLimits.maxOldGenerationSizeMB must be one of maxYoungGenerationSizeMb",
  ],
  [{ resourceLimits: "50" }, "resourceLimits must be an object"],
  [
    { resourceLimits: { maxOldGenerationSizeMb: -50 } },
    "resourceLimits.maxOldGenerationSizeMb must be a number of at least 16",
  ],
  [
    { rewards: { a: { resourceLimits: { stackSizeMb: Number.NaN } } } },
    "rewards.a.resourceLimits.stackSizeMb must be a number of at least 0.5",
  ],
  [{ retry: { tries: 3 } }, "retry.tries must be one of attempts"],
  [{ retry: { attempts: 0 } }, "retry.attempts must be"],
  [{ retry: { classes: ["bad-luck"] } }, "retry.classes must be some of infrastructure"],
  [{ retry: { budget: -1 } }, "retry.budget must be a number of at least 0"],
  [{ hedge: { quantile: 1 } }, "hedge.quantile must be a number above 0 and below 1"],
] as const)("%j", async (options, message) => {
  await expect(RewardLoopManager.create(options as unknown as RewardLoopOptions)).rejects.toThrow(
    `Reward loop option ${message}`,
  );
});
