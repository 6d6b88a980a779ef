/** Several rewards of a sample, and functions that are asked in order: what they come to, with all that each of them is promised for itself. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import {
  AsyncRewardAgent,
  readRewardLog,
  RewardLog,
  RewardLoopManager,
} from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { combined } from "../src/compose/combine.ts";
import { readRewardConfig, rewardLoopOptionsOf } from "../src/config/reward-config.ts";
import { startJudge } from "./judge.ts";
import { fixture, sampleOf } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const part = (name: string): string => fixture(`parts.ts:${name}`);

async function scored(
  options: RewardLoopOptions,
  ...texts: readonly string[]
): Promise<SampleOutcome[]> {
  await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
  return await Promise.all(texts.map((text) => loop.computeScore(sampleOf(text))));
}

const textsOf = (...texts: readonly string[]): DataProto =>
  DataProto.fromDict({
    nonTensors: {
      response: texts,
      data_source: texts.map(() => "test"),
      reward_model: texts.map(() => ({ ground_truth: "" })),
    },
  });

const scoresOf = (outcomes: readonly SampleOutcome[]): unknown[] =>
  outcomes.map((one) => (one.valid ? one.rewardScore : [one.error.code, one.error.component]));

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "rayling-compose-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

describe("several rewards", () => {
  const rewards = {
    correct: { reward: part("rule"), weight: 2 },
    length: { reward: part("words"), weight: -0.1 },
    style: { reward: part("judge"), weight: 0.2 },
  };
  /** Of these three, each call for 1. */
  let agent: AsyncRewardAgent;
  beforeAll(async () => {
    const spend = { prices: { perCall: 1 } };
    agent = await AsyncRewardAgent.create({ workers: 1, executors: 1, rewards, spend });
  });
  afterAll(() => agent.close());

  test("are the sum of weight x score; each score stands under its name, and what it said besides", async () => {
    const outcome = await agent.loop.computeScore(sampleOf("known 3"));
    expect(outcome).toMatchObject({ valid: true, attempts: 3 });
    if (!outcome.valid) throw new Error("it is invalid");
    expect(outcome.rewardScore).toBeCloseTo(2 * 3 - 0.1 * 2 + 0.2 * 0.5, 12);
    expect(outcome.rewardExtraInfo).toEqual({
      score: outcome.rewardScore,
      correct: 3,
      length: 2,
      style: 0.5,
      "style/reason": "said known 3",
      usage: { inputTokens: 100, outputTokens: 10, totalTokens: 110 },
    });
    expect(Object.keys(outcome.components ?? {})).toEqual(["correct", "length", "style"]);
  });

  test("may be those of a configuration", async () => {
    const path = fixture("parts.ts");
    const config = readRewardConfig({
      reward: {
        num_workers: 1,
        executors: 1,
        rewards: {
          correct: {
            cascade: {
              rule: { custom_reward_function: { path, name: "rule" } },
              judge: {
                custom_reward_function: { path, name: "judge", reward_kwargs: { worth: 4 } },
                limits: { max_concurrent: 1 },
              },
            },
          },
          length: { custom_reward_function: { path, name: "words" }, weight: 0.1 },
        },
      },
    });
    const outcomes = await scored(rewardLoopOptionsOf(config), "known 3", "unknown");
    expect(scoresOf(outcomes)).toEqual([expect.closeTo(3.2, 9), expect.closeTo(4.1, 9)]);
  });

  test("may be a mean, of those that are left where one is left out", async () => {
    const mean: RewardLoopOptions = {
      combine: "mean",
      rewards: {
        length: { reward: part("words"), weight: 3 },
        style: { reward: part("judge"), onInvalid: "leaveOut" },
      },
    };
    const outcomes = await scored(mean, "a b", "unjudged b");
    expect(scoresOf(outcomes)).toEqual([(3 * 2 + 0.5) / 4, 2]);
    expect(outcomes[1]).toMatchObject({
      rewardExtraInfo: { length: 2, style: null, "style/error": "SCORE_THREW" },
    });
  });

  test("that cannot all be told: the whole is invalid, left out, or has a score in its place", () => {
    const measures = { latencyMs: 1, waitedMs: 0, attempts: 1 };
    const told = (rewardScore: number): SampleOutcome => ({
      valid: true,
      rewardScore,
      rewardExtraInfo: {},
      ...measures,
    });
    const untold = (code: "SCORE_THREW" | "CANNOT_TELL"): SampleOutcome => ({
      valid: false,
      error: { code, name: "Error", message: "" },
      ...measures,
    });
    const style = [told(0.5), untold("SCORE_THREW"), untold("CANNOT_TELL")];
    const judged = (onInvalid: "mask" | "leaveOut" | { readonly score: number }): unknown[] => {
      const length = { name: "length", weight: 1, onInvalid: "mask" } as const;
      const components = [length, { name: "style", weight: 1, onInvalid }];
      return scoresOf(style.map((one) => combined(components, [told(1), one], "sum")));
    };
    expect(judged("mask")).toEqual([1.5, ["SCORE_THREW", "style"], ["CANNOT_TELL", "style"]]);
    expect(judged("leaveOut")).toEqual([1.5, 1, 1]);
    expect(judged({ score: -1 })).toEqual([1.5, 0, 0]);
    const only = { name: "only", weight: 1, onInvalid: "leaveOut" } as const;
    expect(scoresOf([combined([only], [untold("SCORE_THREW")], "sum")])).toEqual([
      ["SCORE_THREW", "only"],
    ]);
  });

  test("each have their own deadline, tries, cache and price; costs add up", async () => {
    const cache = join(await folder(), "scores.sqlite");
    const options: RewardLoopOptions = {
      rewards: {
        rough: { reward: part("rough"), timeoutMs: 1000, onInvalid: { score: 0 } },
        style: { reward: part("judge"), cache, spend: { prices: { perCall: 2 } } },
        second: { reward: part("judge"), spend: { prices: { perMillionInputTokens: 1e4 } } },
      },
    };
    await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
    const first = await Promise.all(
      ["block", "exit", "fine"].map((text) => loop.computeScore(sampleOf(text))),
    );
    expect(scoresOf(first)).toEqual([1, 1, 2]);
    expect(first.map((one) => one.components?.["rough"])).toMatchObject([
      { valid: false, error: { code: "SCORE_TIMEOUT" } },
      { valid: false, error: { code: "EXECUTOR_DIED", exitCode: 3 } },
      { valid: true },
    ]);
    expect(first.map(({ cost }) => cost)).toEqual([3, 3, 3]);
    const again = await loop.computeScore(sampleOf("fine"));
    expect(again).toMatchObject({ rewardScore: 2, attempts: 2, cost: 1 });
    expect(again.components?.["style"]).toMatchObject({ cached: true, cost: 0 });
  });

  test("work in batches, streams and the agent as one does", async () => {
    const { loop } = agent;
    const batch = textsOf("known 1", "unjudged", "known 2");
    const columns = await loop.computeRmScore(batch);
    expect(columns.nonTensorBatch["correct"]).toEqual([1, null, 2]);
    expect(columns.nonTensorBatch["rewardError"]?.[1]).toMatchObject({ component: "correct" });
    expect(Array.from(columns.batch?.["rewardValid"]?.data ?? [])).toEqual([1, 0, 1]);
    expect(columns.metaInfo["rewardExtraKeys"]).toEqual(
      expect.arrayContaining(["score", "correct", "length", "style"]),
    );
    agent.computeRewardPipeline(batch);
    const { rewards: chunk } = await agent.get(3);
    expect(chunk.nonTensorBatch["style"]).toEqual([0.5, null, 0.5]);
    const indices: number[] = [];
    const many = Array.from({ length: 60 }, (_, index) => sampleOf(`known ${index}`));
    for await (const { index, outcome } of loop.scoreStream(many)) {
      indices.push(index);
      expect(outcome).toMatchObject({ valid: true, rewardExtraInfo: { correct: index } });
    }
    expect(indices.toSorted((a, b) => a - b)).toEqual(many.map((_, index) => index));
  });

  test("leave a line of each in the log, and one of all", async () => {
    const path = join(await folder(), "rewards.jsonl");
    const outcomes = await Promise.all(
      ["known 3", "unjudged"].map((text) => agent.loop.computeScore(sampleOf(text))),
    );
    {
      await using log = await RewardLog.open(path);
      for (const [index, outcome] of outcomes.entries()) {
        const place = { index, lane: "training", version: "" };
        await log.write(sampleOf(`sample ${index}`), outcome, place);
      }
      expect(log.records).toBe(2);
    }
    const records = await Array.fromAsync(readRewardLog(path));
    expect(
      records.map(({ index, component, valid, cost }) => [index, component, valid, cost]),
    ).toEqual([
      [0, "correct", true, 1],
      [0, "length", true, 1],
      [0, "style", true, 1],
      [0, null, true, 3],
      [1, "correct", false, 1],
      [1, "length", true, 1],
      [1, "style", false, 1],
      [1, null, false, 3],
    ]);
    // Each its own, and that of all another.
    expect(new Set(records.slice(0, 4).map(({ version }) => version)).size).toBe(4);
  });
});

describe("a cascade", () => {
  const calls = async (): Promise<[string, () => Promise<string[]>]> => {
    const path = join(await folder(), "calls");
    const read = async (): Promise<string[]> =>
      (await readFile(path, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
    return [path, read];
  };

  test("asks the judge only what the rule cannot tell, and counts who answered", async () => {
    const [path, called] = await calls();
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      cascade: {
        rule: { reward: part("rule") },
        judge: {
          reward: { path: fixture("parts.ts"), name: "judge", rewardKwargs: { calls: path } },
          spend: { prices: { perCall: 1 } },
        },
      },
    });
    const columns = await loop.computeRmScore(
      textsOf("known 3", "open", "silent", "down", "vague", "unjudged"),
    );
    expect((await called()).toSorted()).toEqual(["open", "silent", "unjudged", "vague"]);
    expect(columns.nonTensorBatch["answeredBy"]).toEqual([
      "rule",
      "judge",
      "judge",
      null,
      null,
      null,
    ]);
    expect(Array.from(columns.batch?.["rmScores"]?.data ?? [])).toEqual([3, 0.5, 0.5, 0, 0, 0]);
    expect(columns.nonTensorBatch["rewardError"]).toMatchObject([
      null,
      null,
      null,
      { code: "SCORE_THREW", component: "rule", message: "rule: the rule is down" },
      { code: "CANNOT_TELL", component: "judge" },
      { code: "SCORE_THREW", component: "judge" },
    ]);
    expect(loop.answeredBy).toEqual({ rule: 1, judge: 2 });
    expect(loop.spent).toBe(4);
  });

  test("keeps to the limits of its judge, as counted there, and tries it again; the rule has none", async () => {
    await using judge = await startJudge({
      seed: 2,
      latency: { uniform: [1, 5] },
      limits: { concurrency: 3 },
      faults: { error: 0.2, refuse: 0.1 },
    });
    const reward = {
      path: fileURLToPath(new URL("../../../test/fixtures/judged.ts", import.meta.url)),
      name: "judged",
      rewardKwargs: { judgeUrl: judge.baseUrl },
    };
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      cascade: {
        rule: { reward: part("rule") },
        judge: {
          reward,
          limits: { endpoint: judge.baseUrl, concurrency: 3 },
          retry: { attempts: 5, baseMs: 1, budget: Infinity },
        },
      },
    });
    const texts = Array.from({ length: 60 }, (_, n) => (n % 4 === 0 ? `known ${n}` : `A: ${n}`));
    const seen = new Set<number>();
    for await (const { index, outcome } of loop.scoreStream(texts.map(sampleOf))) {
      seen.add(index);
      expect(outcome).toMatchObject({
        valid: true,
        answeredBy: index % 4 === 0 ? "rule" : "judge",
      });
    }
    expect(seen.size).toBe(60);
    const { violations, answered, mostInFlight } = await judge.stats();
    expect(violations).toEqual({});
    expect(answered).toBe(45);
    expect(mostInFlight).toBeLessThanOrEqual(3);
  });

  test("may pass on whatever has no score, and be one of several rewards", async () => {
    const cascade = {
      rule: { reward: part("rule"), passOn: "invalid" },
      judge: { reward: part("judge") },
    } as const;
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      rewards: { correct: { cascade, weight: 10 }, length: { reward: part("words") } },
    });
    const outcome = await loop.computeScore(sampleOf("open"));
    expect(outcome).toMatchObject({
      rewardScore: 6,
      rewardExtraInfo: { correct: 0.5, length: 1, "correct/answeredBy": "judge" },
    });
    expect(loop.answeredBy).toEqual({ "correct/judge": 1 });
    expect(await loop.computeScore(sampleOf("down"))).toMatchObject({
      valid: true,
      attempts: 3,
      rewardExtraInfo: { correct: 0.5, "correct/answeredBy": "judge" },
    });
    const failed = await loop.computeScore(sampleOf("unjudged"));
    expect(failed).toMatchObject({ error: { component: "correct/judge" } });
    const progress: unknown[] = [];
    const stream = loop.scoreStream([sampleOf("known 1"), sampleOf("open")], {
      onProgress: (one) => progress.push(one.answeredBy),
    });
    for await (const { outcome: one } of stream) expect(one.valid).toBe(true);
    expect(progress.at(-1)).toEqual({ "correct/judge": 1, "correct/rule": 1 });
  });

  test("streams as fast as its judge goes, and no sample is lost", async () => {
    const cascade = { rule: { reward: part("rule") }, judge: { reward: part("judge") } };
    await using loop = await RewardLoopManager.create({
      workers: 1,
      concurrency: 4,
      executors: 1,
      cascade,
    });
    const texts = Array.from({ length: 200 }, (_, n) => (n % 3 === 0 ? `open ${n}` : `known ${n}`));
    const seen = new Set<number>();
    let mostInFlight = 0;
    const stream = loop.scoreStream(texts.map(sampleOf), {
      onProgress: ({ inFlight }) => (mostInFlight = Math.max(mostInFlight, inFlight)),
      progressEveryMs: 1,
    });
    for await (const { index, outcome } of stream) {
      expect(seen.has(index)).toBe(false);
      seen.add(index);
      expect(outcome).toMatchObject({ rewardScore: index % 3 === 0 ? 0.5 : index });
    }
    expect(seen.size).toBe(200);
    // As many as are at work, and as many again that wait for the judge.
    expect(mostInFlight).toBeLessThanOrEqual(4 * 8);
  });
});

test("a function that cannot tell is invalid where nobody else is asked, and what it used is paid", async () => {
  const spend = { prices: { perMillionInputTokens: 1e4 } };
  const [outcome] = await scored({ reward: part("judge"), spend }, "vague");
  expect(outcome).toMatchObject({ valid: false, error: { code: "CANNOT_TELL" }, cost: 1 });
});

describe("options of parts", () => {
  const rule = { reward: part("rule") };
  test.each([
    [{ reward: "x", rewards: { a: rule } }, "reward must be left out with rewards"],
    [{ cascade: { a: rule }, rewards: { a: rule } }, "cascade must be left out with rewards"],
    [{ reward: "x", cascade: { a: rule } }, "reward must be left out with cascade"],
    [{ combine: "sum" }, "combine must be left out without rewards"],
    [{ combine: "max", rewards: { a: rule } }, 'combine must be "sum" or "mean"'],
    [{ rewards: {} }, "rewards must be at least one, by name"],
    [{ rewards: [rule] }, "rewards must be an object"],
    [{ rewards: { "1": rule } }, "rewards.1 must be named by letters"],
    [{ rewards: { a: "x" } }, "rewards.a must be an object"],
    [{ rewards: { a: { ...rule, weigth: 1 } } }, "rewards.a.weigth must be one of workers"],
    [{ rewards: { a: { ...rule, weight: "1" } } }, "rewards.a.weight must be a number"],
    [{ rewards: { a: { ...rule, timeoutMs: 0 } } }, "rewards.a.timeoutMs must be a number above 0"],
    [{ rewards: { a: { ...rule, name: "x" } } }, "rewards.a.name must be one of"],
    [{ rewards: { a: { ...rule, onInvalid: "skip" } } }, "rewards.a.onInvalid must be"],
    [{ rewards: { a: { ...rule, onInvalid: { value: 1 } } } }, "rewards.a.onInvalid must be"],
    [{ rewards: { a: { ...rule, cascade: { b: rule } } } }, "rewards.a.reward must be left out"],
    [{ rewards: { a: rule }, limits: {} }, "limits must be options of each of the rewards"],
    [
      { cascade: { a: { ...rule, passOn: "never" } } },
      'cascade.a.passOn must be "cannotTell" or "invalid"',
    ],
    [
      { cascade: { a: rule, b: { ...rule, passOn: "invalid" } } },
      "cascade.b.passOn must be left out of the last stage",
    ],
    [
      { rewards: { a: { ...rule, spend: { prices: { perCall: 1 }, warnAt: 0.5 } } } },
      "rewards.a.spend.warnAt must be left out without cap",
    ],
    [
      { cascade: { a: { ...rule, spend: { prices: { x: 1 } } } } },
      "cascade.a.spend.prices.x must be one of",
    ],
    [
      { rewards: { a: { cascade: { b: { ...rule, limits: { rpm: 1 } } } } } },
      "rewards.a.cascade.b.limits.rpm must be one of",
    ],
  ])("%j", async (options, message) => {
    await expect(RewardLoopManager.create(options as unknown as RewardLoopOptions)).rejects.toThrow(
      `Reward loop option ${message}`,
    );
  });

  const extras = ["score", "usage", "score_by_token", "score_by_turn", "answeredBy"];
  test.each([
    ...[...extras, "__proto__"].map((name) => ["rewards", name] as const),
    ["cascade", "__proto__"] as const,
  ])("%s.%s would hide something, or be hidden", async (parts, name) => {
    const options = { [parts]: { [name]: rule, other: rule } };
    await expect(RewardLoopManager.create(options)).rejects.toThrow(
      `Reward loop option ${parts}.${name} must be named otherwise`,
    );
  });

  test("a part whose module does not load fails all, and nothing is left", async () => {
    const bad = { reward: fixture("throws-on-load.ts") };
    await expect(scored({ rewards: { good: rule, bad } })).rejects.toMatchObject({
      code: "REWARD_MODULE_IMPORT",
    });
    await expect(
      scored({ rewards: { good: rule, bad: { reward: part("ForGroups") } } }),
    ).rejects.toThrow("functions without postProcessScores");
    // Limiters stay, for whoever calls their endpoints next.
    const left = async (): Promise<unknown[]> =>
      (await ray.listNamedActors()).filter(({ name }) => !name.startsWith("reward_limiter:"));
    await expect.poll(left, { timeout: 60_000 }).toEqual([]);
  });
});
