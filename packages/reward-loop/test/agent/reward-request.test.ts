/** Requests with `onFailure`: what is scored once more, what gets a fallback, and what fails all of it. */

import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { AsyncRewardAgent } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fixture, sampleOf } from "../loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const flaky = fixture("flaky.ts");

function textsOf(...texts: readonly string[]): DataProto {
  return DataProto.fromDict({
    nonTensors: {
      response: texts,
      data_source: texts.map(() => "test"),
      reward_model: texts.map(() => ({ ground_truth: "" })),
    },
  });
}

describe("what cannot be scored in a request", () => {
  const create = (onFailure: RewardLoopOptions["onFailure"]): Promise<AsyncRewardAgent> =>
    AsyncRewardAgent.create({ workers: 1, executors: 1, reward: flaky, onFailure });

  test("is scored once more when all others are done, in whatever order they come", async () => {
    await using agent = await create({ again: true });
    const request = agent.request({ uids: ["a", "b", "c", "d"] });
    request.submit(0, sampleOf("a 1 503"));
    request.submit(1, sampleOf("b 0 0"));
    expect(await request.take(1)).toEqual([1]);
    request.submit(2, sampleOf("c 2 503"));
    const none = { attempts: 1, latencyMs: 0, waitedMs: 0 };
    const known: SampleOutcome = { valid: true, rewardScore: 5, rewardExtraInfo: {}, ...none };
    request.know(3, known);
    expect(await request.take(3)).toEqual([0, 2, 3]);
    const outcomes = [0, 1, 2, 3].map((row) => request.outcomeOf(row));
    expect(outcomes.map((one) => [one?.valid, one?.attempts])).toEqual([
      [true, 2],
      [true, 1],
      [false, 2],
      [true, 1],
    ]);
  });

  test("gets its fallback only when it was scored once more", async () => {
    await using agent = await create({ again: true, fallback: -1 });
    const rewards = await agent.computeReward(textsOf("fa 1 503", "fb 2 503", "fc 1 400"));
    expect(Array.from(rewards.batch?.["rmScores"]?.data ?? [])).toEqual([1, -1, -1]);
  });

  test("fails all of it above a share, now and later", async () => {
    await using agent = await create({ failAbove: 0.25 });
    expect((await agent.computeReward(textsOf("a 0 0", "b 0 0", "c 0 0", "d 9 503"))).length).toBe(
      4,
    );
    agent.computeRewardPipeline(textsOf("e 0 0", "f 0 0", "g 9 503", "h 9 400"));
    const failure = { name: "RewardFailuresError", invalid: 2, total: 4 };
    await expect(agent.get(4)).rejects.toMatchObject(failure);
    const request = agent.request({ uids: ["a", "b"] });
    request.submit(0, sampleOf("i 9 400"));
    await expect(request.whenSettled()).rejects.toMatchObject({ invalid: 1, total: 2 });
    await expect(request.take(1)).rejects.toMatchObject({ invalid: 1, total: 2 });
  });

  test("waits for no rows that will never come", async () => {
    await using agent = await create({ again: true });
    const request = agent.request({ uids: ["a", "b"] });
    request.submit(0, sampleOf("waits 1 503"));
    const waiting = expect(request.take(1)).rejects.toThrow("no more");
    request.fail(new Error("no more"));
    await waiting;
    await expect(request.whenSettled()).rejects.toThrow("no more");
    await expect(request.take(1)).rejects.toThrow("no more");
  });

  test("hears of it when the loop is closed while it waits for others", async () => {
    const agent = await create({ again: true });
    const request = agent.request({ uids: ["a", "b"] });
    request.submit(0, sampleOf("late 1 503"));
    const waiting = expect(request.take(1)).rejects.toThrow("closed");
    // It has run: what comes behind it is done.
    expect(await agent.loop.computeScore(sampleOf("z 0 0"))).toMatchObject({ valid: true });
    await agent.close();
    await waiting;
  });
});
