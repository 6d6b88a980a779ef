/** What makes a reward function another one, and what does not. */

import { expect, test } from "vitest";
import { rewardVersion } from "../../src/record/reward-version.ts";
import { readSettings, withRewardModel } from "../../src/settings.ts";
import type { RewardFunctionOptions, RewardModelUse } from "../../src/settings.ts";
import { fixture } from "../loop.ts";

const reward = fixture("priced.ts");

const versionOf = (options: RewardFunctionOptions): Promise<string> =>
  rewardVersion(readSettings(options).pipeline);

const asking = (
  use: Partial<RewardModelUse>,
  { address = "127.0.0.1:1", ...options }: RewardFunctionOptions & { address?: string } = {},
): Promise<string> => {
  const whole = { engine: "vllm", model: "m", tokenizer: "./m", ...use } as const;
  return rewardVersion(withRewardModel(readSettings(options), whole, address).pipeline);
};

const services = { one: { url: "http://one" }, other: { url: "http://other" } };

test("the reward model that scores by itself, and its tokenizers", async () => {
  const versions = await Promise.all([
    versionOf({}),
    asking({}),
    asking({ engine: "sglang" }),
    asking({ model: "n" }),
    asking({ tokenizer: "./n" }),
    asking({ policyTokenizer: "./p" }),
  ]);
  expect(new Set(versions).size).toBe(versions.length);
});

test("the reward model that a function asks", async () => {
  const versions = await Promise.all([
    versionOf({ reward }),
    asking({}, { reward }),
    asking({ engine: "sglang" }, { reward }),
    asking({ model: "n" }, { reward }),
  ]);
  expect(new Set(versions).size).toBe(versions.length);
});

test("where the default scorers test programs, and with what memory", async () => {
  const versions = await Promise.all([
    versionOf({}),
    versionOf({ sandboxFusion: services.one }),
    versionOf({ sandboxFusion: services.other }),
    versionOf({ sandboxFusion: { ...services.one, memoryLimitMb: 2048 } }),
  ]);
  expect(new Set(versions).size).toBe(versions.length);
});

test("not what changes no score", async () => {
  const whole = await asking({});
  expect(await asking({}, { address: "127.0.0.1:2" })).toBe(whole);
  expect(await asking({ maxRetries: 3, timeoutMs: 100 })).toBe(whole);
  expect(await asking({}, { workers: 3, executors: 3 })).toBe(whole);
  expect(await versionOf({ workers: 3, executors: 3 })).toBe(await versionOf({}));
});
