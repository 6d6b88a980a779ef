/** What parts of a loop have of it, by the tables of options; and that an error names the place where something was said. */

import { describe, expect, test } from "vitest";
import { readRewardConfig, rewardLoopOptionsOf } from "../../src/config/reward-config.ts";
import { readPlan } from "../../src/compose/plan/read-plan.ts";
import type { RewardLoopOptions } from "../../src/compose/plan/loop-options.ts";
import type { RewardLoopSettings } from "../../src/settings/settings.ts";

function partsOf(options: RewardLoopOptions): RewardLoopSettings[] {
  const plan = readPlan(options);
  if (plan.kind !== "rewards") throw new TypeError("there are no rewards");
  return plan.components.flatMap(({ plan: part }) =>
    part.kind === "function" ? [part.settings] : [],
  );
}

describe("a part", () => {
  test("has of the loop what it does not say, also where it says undefined", () => {
    const reward = "./a.ts";
    const [silent, empty, own] = partsOf({
      timeoutMs: 5,
      retry: { attempts: 7 },
      rewards: {
        silent: { reward },
        empty: { reward, timeoutMs: undefined, retry: undefined },
        own: { reward, timeoutMs: 6, retry: true },
      },
    });
    for (const part of [silent, empty]) {
      expect(part).toMatchObject({ timeoutMs: 5, policy: { retry: { attempts: 7 } } });
    }
    expect(own).toMatchObject({ timeoutMs: 6, policy: { retry: { attempts: 3 } } });
  });

  test.each([
    [{ retry: { tries: 3 } }, "retry.tries"],
    [{ onFailure: { failAbove: 2 } }, "onFailure.failAbove"],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ spend: { prices: { perCall: -1 } } }, "spend.prices.perCall"],
  ])("is not blamed for %j of the loop", (options, option) => {
    const rewards = { a: { reward: "./a.ts" } };
    expect(() => readPlan({ ...options, rewards } as RewardLoopOptions)).toThrow(
      expect.objectContaining({ code: "REWARD_LOOP_OPTION", option }) as Error,
    );
  });
});

test("a manager's text that looks like a path is that of a class, as a reward's", () => {
  const places: readonly [string, object][] = [
    ["./src/manager.ts", { path: "./src/manager.ts" }],
    ["./src/manager.ts:LengthManager", { path: "./src/manager.ts", name: "LengthManager" }],
    ["manager.mjs", { path: "manager.mjs" }],
    ["pkg:@acme/managers:Mine", { path: "pkg:@acme/managers", name: "Mine" }],
  ];
  for (const [manager, place] of places) {
    expect(readPlan({ manager })).toMatchObject({ settings: { pipeline: { manager: place } } });
    const [part] = partsOf({ rewards: { a: { reward: "./a.ts", manager } } });
    expect(part).toMatchObject({ pipeline: { manager: place } });
  }
  expect(() => readPlan({ manager: "./manager.ts:2nd" })).toThrow('"2nd" is no export name');
});

test("an unknown manager is refused with all that a loop knows, wherever it stands", () => {
  const refused: RewardLoopOptions[] = [
    { manager: "nope" },
    { rewards: { a: { reward: "./a.ts", manager: "nope" } } },
  ];
  for (const options of refused) {
    expect(() => readPlan(options)).toThrow(
      expect.objectContaining({
        code: "UNKNOWN_REWARD_MANAGER",
        managerName: "nope",
        known: ["naive", "remote", "rate_limited", "limited", "gdpo", "dapo"],
      }),
    );
  }
  for (const manager of ["limited", "remote", "dapo"]) {
    expect(() => readPlan({ manager })).not.toThrow();
  }
});

describe("a cap that nothing can reach", () => {
  const reward = "./a.ts";
  const free = { reward, spend: { prices: {} } };
  const paid = { reward, spend: { prices: { perCall: 1 } } };
  const cap = { prices: {}, cap: 5 };
  const priced = { ...cap, prices: paid.spend.prices };
  const refused: [RewardLoopOptions, string][] = [
    [{ reward, spend: cap }, ""],
    [{ rewards: { a: { reward } }, spend: cap }, ""],
    [{ cascade: { a: { reward }, b: free }, spend: cap }, ""],
    // Parts with prices of their own, be it none, are not charged by those of the loop.
    [{ cascade: { a: free }, spend: priced }, ""],
    // It takes over where a cap is reached that is not.
    [{ rewards: { a: { reward } }, spend: { ...cap, whenReached: paid } }, ""],
    [{ rewards: { a: { cascade: { b: { reward } }, spend: cap } } }, "rewards.a."],
    [{ rewards: { a: { cascade: { b: { reward, spend: cap } } } } }, "rewards.a.cascade.b."],
  ];
  test.each(refused)("is refused: %j", (options, place) => {
    expect(() => readPlan(options)).toThrow(
      `Reward loop option ${place}spend.cap must be left out without prices`,
    );
  });

  const late = { reward, spend: { ...cap, cap: 0, whenReached: paid } };
  const accepted: RewardLoopOptions[] = [
    { cascade: { a: { reward }, b: paid }, spend: cap },
    { cascade: { a: free, b: { reward } }, spend: priced },
    { rewards: { a: { cascade: { b: { reward }, c: paid } } }, spend: cap },
    { rewards: { a: { cascade: { b: { reward } }, spend: priced } }, spend: cap },
    { rewards: { a: late }, spend: cap },
    { rewards: { a: { reward } }, spend: { ...cap, cap: 0 } },
    { rewards: { a: { reward } }, spend: { prices: {} } },
  ];
  test.each(accepted)("is none where something costs: %j", (options) => {
    expect(() => readPlan(options)).not.toThrow();
  });
});

test("limits that are undefined leave those of rate_limited and of a service as they are", () => {
  const limits = { concurrency: undefined, endpoint: undefined, requestsPerMinute: undefined };
  const limited = readPlan({
    manager: "rate_limited",
    managerOptions: { maxConcurrent: 3, maxRpm: 60 },
    limits,
  });
  expect(limited).toMatchObject({
    settings: { policy: { limits: { settings: { concurrency: 3, requestsPerMinute: 60 } } } },
  });
  const url = "http://sandbox/run_code";
  expect(readPlan({ sandboxFusion: { url }, limits })).toMatchObject({
    settings: { policy: { limits: { endpoint: url, settings: { concurrency: 64 } } } },
  });
});

test("in a configuration null is the default, and so is the default itself", () => {
  const retry = (attempts: number | null): unknown =>
    rewardLoopOptionsOf(readRewardConfig({ reward: { retry: { enable: true, attempts } } })).retry;
  expect(retry(null)).toEqual({});
  expect(retry(3)).toEqual({});
  expect(retry(4)).toEqual({ attempts: 4 });
});
