/** One sample fails in every way there is; it is told with its reason and all others are scored. */

import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { classOf } from "../src/faults/failure-class.ts";
import { expectOnlyInvalid, failureAt, fixture, numbers, sampleOf, scoreTexts } from "./loop.ts";

afterAll(() => ray.shutdown());

const kinds = {
  sync: "synchronous",
  atOnce: "asynchronous",
  later: "asynchronous, after an await",
};

describe.each(Object.entries(kinds))("a score function that is %s: %s", (name) => {
  const reward = `${fixture("troublemaker.ts")}:${name}`;

  test("throws, hangs and returns garbage on one sample each: exactly those are invalid", async () => {
    const texts = numbers(60, { 5: "throw", 20: "hang", 35: "garbage", 50: "unsendable" });
    const outcomes = await scoreTexts({ reward, timeoutMs: 400 }, texts);
    expectOnlyInvalid(outcomes, {
      5: "SCORE_THREW",
      20: "SCORE_TIMEOUT",
      35: "INVALID_SCORE",
      50: "NOT_ENCODABLE",
    });
    expect(failureAt(outcomes, 5)).toMatchObject({
      name: "RangeError",
      message: "this sample is out of range",
    });
    expect(failureAt(outcomes, 5).stack).toContain("troublemaker.ts");
    expect(failureAt(outcomes, 20).message).toContain("400 ms");
    expect(classOf(failureAt(outcomes, 20))).toBe("user-code");
    expect(failureAt(outcomes, 35).message).toContain("an object with the keys verdict");
    expect(failureAt(outcomes, 50).message).toContain("callback is a function");
  });

  test("two that hang in one executor are both found, and nobody else", async () => {
    const texts = numbers(24, { 3: "hang", 4: "hang" });
    const outcomes = await scoreTexts({ reward, timeoutMs: 300, workers: 1, executors: 1 }, texts);
    expectOnlyInvalid(outcomes, { 3: "SCORE_TIMEOUT", 4: "SCORE_TIMEOUT" });
  });
});

test("a promise that never settles is told at its deadline, and its executor goes on", async () => {
  const reward = `${fixture("troublemaker.ts")}:later`;
  const outcomes = await scoreTexts(
    { reward, timeoutMs: 200, workers: 1, executors: 1 },
    numbers(30, { 7: "wait forever" }),
  );
  expectOnlyInvalid(outcomes, { 7: "SCORE_TIMEOUT" });
  expect(classOf(failureAt(outcomes, 7))).toBe("timeout");
});

test.each(["trap", "deep trap"])(
  "a result that hangs whoever reads it is found (%s)",
  async (trap) => {
    const outcomes = await scoreTexts(
      { reward: `${fixture("troublemaker.ts")}:later`, timeoutMs: 300, workers: 1, executors: 1 },
      numbers(30, { 7: trap }),
    );
    expectOnlyInvalid(outcomes, { 7: "SCORE_TIMEOUT" });
  },
);

test("a function that blocks its thread is not asked again, and its endpoint not held to blame", async () => {
  const reward = `${fixture("troublemaker.ts")}:later`;
  const outcomes = await scoreTexts(
    {
      reward,
      timeoutMs: 300,
      workers: 1,
      executors: 1,
      concurrency: 1,
      retry: { attempts: 3, baseMs: 1, budget: Infinity },
      limits: { endpoint: "blocked threads", breaker: { window: 2, threshold: 0.5, openMs: 1e9 } },
    },
    numbers(4, { 0: "hang", 1: "hang" }),
  );
  expectOnlyInvalid(outcomes, { 0: "SCORE_TIMEOUT", 1: "SCORE_TIMEOUT" });
  expect(outcomes.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1]);
});

test("more promises that never settle than there is room for do not starve the others", async () => {
  const waiting = Object.fromEntries(
    Array.from({ length: 7 }, (_, index) => [2 * index, "wait forever"]),
  );
  const outcomes = await scoreTexts(
    {
      reward: `${fixture("troublemaker.ts")}:later`,
      timeoutMs: 100,
      workers: 1,
      executors: 1,
      concurrency: 2,
    },
    numbers(20, waiting),
  );
  expectOnlyInvalid(
    outcomes,
    Object.fromEntries(Object.keys(waiting).map((index) => [index, "SCORE_TIMEOUT"])),
  );
});

test("a sample whose thread is blocked by what another left behind is scored elsewhere", async () => {
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 1,
    timeoutMs: 500,
    reward: `${fixture("troublemaker.ts")}:leavesBlock`,
  });
  const scores = async (text: string): Promise<unknown> => {
    const outcome = await loop.computeScore(sampleOf(text));
    return outcome.valid ? [outcome.rewardScore, outcome.attempts] : outcome.error;
  };
  const channel = new BroadcastChannel("rayling left behind");
  onTestFinished(() => channel.close());
  const isBlocked = new Promise((resolve) => channel.addEventListener("message", resolve));
  expect(await scores("1")).toEqual([1, 1]);
  channel.postMessage("block");
  await isBlocked;
  expect(await scores("2")).toEqual([2, 1]);
});

test("the deadline counts from the start of the function, not from the dispatch", async () => {
  // One executor, 40 samples of 100 ms one after the other: the last waits far longer than a timeout.
  const outcomes = await scoreTexts(
    { reward: `${fixture("troublemaker.ts")}:busy`, timeoutMs: 3000, workers: 1, executors: 1 },
    numbers(40),
  );
  expectOnlyInvalid(outcomes, {});
});

test("samples that wait while another blocks their thread are not told as timed out", async () => {
  const outcomes = await scoreTexts(
    {
      reward: `${fixture("troublemaker.ts")}:later`,
      timeoutMs: 300,
      workers: 1,
      executors: 1,
      concurrency: 16,
    },
    numbers(16, { 15: "hang" }),
  );
  expectOnlyInvalid(outcomes, { 15: "SCORE_TIMEOUT" });
});

test("a user's own manager and tokenizer run on the clock too", async () => {
  const outcomes = await scoreTexts(
    {
      reward: `${fixture("rewards.ts")}:value`,
      manager: { path: fixture("own-parts.ts"), name: "PenaltyManager" },
      managerOptions: { penalty: 0 },
      timeoutMs: 300,
    },
    numbers(12, { 4: "hang" }),
  );
  expectOnlyInvalid(outcomes, { 4: "SCORE_TIMEOUT" });
});
