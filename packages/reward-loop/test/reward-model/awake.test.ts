/** A reward model that sleeps: every way to a score wakes it, and it sleeps again when nobody needs it, however that ends. */

import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { AsyncRewardAgent, RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { JudgeOptions, JudgeStats } from "../../../../test/servers/judge.ts";
import { startJudge } from "../judge.ts";
import { fixture, sampleOf } from "../loop.ts";
import { inFull } from "../../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

type Asking = (options: RewardLoopOptions, stats: () => Promise<JudgeStats>) => Promise<void>;

/** What the judge says when it is over. */
async function after(asking: Asking, judgeOptions: JudgeOptions = {}): Promise<JudgeStats> {
  await using judge = await startJudge(judgeOptions);
  const rewardModel = {
    engine: "vllm",
    model: "judge",
    servers: [`HTTP://${judge.address}`],
    sleeps: true,
  } as const;
  await asking({ workers: 1, executors: 1, reward: fixture("by-router.ts"), rewardModel }, () =>
    judge.stats(),
  );
  return await judge.stats();
}

const texts = ["0", "1", "2", "3", "4", "5"];
const right = texts.map((text, row) => ({ ...sampleOf(text), groundTruth: row }));

function batchOf(rows: readonly (typeof right)[number][]): DataProto {
  return DataProto.fromDict({
    nonTensors: {
      response: rows.map(({ response }) => response),
      data_source: rows.map(() => "test"),
      reward_model: rows.map(({ groundTruth }) => ({ ground_truth: groundTruth })),
    },
  });
}

const asleep = { isAsleep: true, wakeUps: 1 };

describe("it is woken once for what comes together", () => {
  test("single samples", async () => {
    const stats = await after(async (options) => {
      await using loop = await RewardLoopManager.create(options);
      const outcomes = await Promise.all(right.map((sample) => loop.computeScore(sample)));
      expect(outcomes.map(({ valid }) => valid)).not.toContain(false);
    });
    expect(stats).toMatchObject({ ...asleep, answered: 6 });
  });

  test("a stream, however slowly it is read, until it ends", async () => {
    const stats = await after(async (options, now) => {
      await using loop = await RewardLoopManager.create(options);
      for await (const { outcome } of loop.scoreStream(right)) {
        expect(outcome).toMatchObject({ valid: true, rewardScore: 1 });
        expect((await now()).isAsleep).toBe(false);
      }
      expect(await now()).toMatchObject(asleep);
    });
    expect(stats).toMatchObject({ ...asleep, answered: 6 });
  });

  test("a stream, until it is left, or its input fails", async () => {
    await after(async (options, now) => {
      await using loop = await RewardLoopManager.create(options);
      for await (const { outcome } of loop.scoreStream(right)) {
        expect(outcome.valid).toBe(true);
        break;
      }
      await expect.poll(now).toMatchObject(asleep);
      const next = (): never => {
        throw new Error("no input");
      };
      const failing = loop.scoreStream({ [Symbol.iterator]: () => ({ next }) });
      await expect(failing.next()).rejects.toThrow("no input");
      expect(await now()).toMatchObject({ isAsleep: true, wakeUps: 2 });
    });
  });

  test.runIf(
    inFull(
      "a stream and single samples wake it once above, and the agent asks by requests as below",
    ),
  )("a batch of the agent, in chunks and as a whole, with what is scored once more", async () => {
    const stats = await after(
      async (options, now) => {
        await using agent = await AsyncRewardAgent.create({
          ...options,
          onFailure: { again: true },
        });
        agent.computeRewardPipeline(batchOf(right));
        const { rewards } = await agent.get(6);
        expect([...(rewards.batch?.["rewardValid"]?.data ?? [])]).toEqual([1, 1, 1, 1, 1, 1]);
        await expect.poll(now).toMatchObject(asleep);
        await agent.computeReward(batchOf(right));
        await expect.poll(now).toMatchObject({ isAsleep: true, wakeUps: 2 });
      },
      { faults: { error: 1 } },
    );
    expect(stats).toMatchObject({ requests: 18, answered: 12 });
  });
});

describe("it sleeps", () => {
  test("when nothing is there that could score any more", async () => {
    await after(
      async (options, now) => {
        const loop = await RewardLoopManager.create(options);
        const pending = right.map((sample) => loop.computeScore(sample));
        await expect.poll(now).toMatchObject({ isAsleep: false, requests: 6 });
        const closed = Promise.allSettled(pending);
        await loop.close();
        expect((await closed).map(({ status }) => status)).not.toContain("fulfilled");
        expect(await now()).toMatchObject(asleep);
        await expect(loop.computeScore(sampleOf("1"))).rejects.toThrow("closed");
        await expect(loop.scoreStream(right).next()).rejects.toThrow("closed");
        expect(await now()).toMatchObject(asleep);
      },
      { faults: { hang: 1 } },
    );
  });

  test("when a request has failed, or one of its rows never comes", async () => {
    await after(
      async (options, now) => {
        const onFailure = { failAbove: 0.2 };
        await using agent = await AsyncRewardAgent.create({ ...options, onFailure });
        agent.computeRewardPipeline(batchOf(right));
        await expect(agent.get(6)).rejects.toMatchObject({ name: "RewardFailuresError" });
        await expect.poll(now).toMatchObject({ ...asleep, requests: 6 });
        const request = agent.request({ uids: texts });
        request.submit(0, right[0] as (typeof right)[number]);
        expect(await request.take(1)).toEqual([0]);
        await expect.poll(now).toMatchObject({ isAsleep: true, wakeUps: 2 });
      },
      { faults: { error: 1 } },
    );
  });
});
