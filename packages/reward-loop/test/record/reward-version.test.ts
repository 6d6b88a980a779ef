/** What makes a reward function another one, and what does not. */

import { expect, test } from "vitest";
import { rewardVersion } from "../../src/settings/reward-version.ts";
import { readPlan } from "../../src/compose/plan/read-plan.ts";
import { withRewardModels } from "../../src/compose/plan/reward-plan.ts";
import { rewardModelsOf } from "../../src/reward-model/loop-models.ts";
import { readSettings } from "../../src/settings/settings.ts";
import type { RewardLoopOptions } from "../../src/compose/plan/loop-options.ts";
import type { RewardFunctionOptions, RewardModelUse } from "../../src/settings/settings.ts";
import { fixture } from "../loop.ts";

const reward = fixture("priced.ts");

const versionOf = async (options: RewardFunctionOptions): Promise<string> =>
  rewardVersion(readSettings(options).pipeline).version;

const asking = (
  use: Partial<RewardModelUse>,
  { address = "127.0.0.1:1", ...options }: RewardFunctionOptions & { address?: string } = {},
): Promise<string> => {
  const servers = ["a:1"];
  const whole = { engine: "vllm", model: "m", tokenizer: "./m", servers, ...use } as const;
  return versionBeside({ rewardModel: whole, ...options }, address);
};

const versionBeside = async (
  options: RewardLoopOptions,
  address: string = "127.0.0.1:1",
): Promise<string> => {
  const models = rewardModelsOf(options);
  const routers = new Map(models.map(({ name }) => [name, { address, token: undefined }]));
  const plan = withRewardModels(readPlan(options), models, routers);
  if (plan.kind !== "function") throw new TypeError("there are several functions");
  return rewardVersion(plan.settings.pipeline).version;
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

test("the reward models that a function asks by their names", async () => {
  const judge = { engine: "vllm", model: "m", servers: ["a:1"] } as const;
  const versions = await Promise.all([
    versionOf({ reward }),
    versionBeside({ reward, rewardModels: { judge } }),
    versionBeside({ reward, rewardModels: { other: judge } }),
    versionBeside({ reward, rewardModels: { judge, other: judge } }),
    versionBeside({ reward, rewardModels: { judge, other: { ...judge, model: "n" } } }),
    versionBeside({ reward, rewardModel: judge }),
    versionBeside({ reward, rewardModel: judge, rewardModels: { judge } }),
  ]);
  expect(new Set(versions).size).toBe(versions.length);
  const swapped = versionBeside({ reward, rewardModels: { other: judge, judge } }, "127.0.0.1:2");
  expect(await swapped).toBe(versions[3]);
  const isDefault = versionBeside({ reward, rewardModels: { default: judge } });
  expect(await isDefault).toBe(versions[5]);
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
