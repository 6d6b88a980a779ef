/** What is done about failures, one by one: tries, total time, hedges, signals, lanes, and what becomes of samples that cannot be scored. */

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { RewardLoopManager } from "@rayling/reward-loop";
import type {
  AdaptiveLimitSettings,
  LimiterState,
  RewardLimiter,
  RewardLoopOptions,
  RewardProgress,
  SampleOutcome,
} from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { LimiterClient, RemoteLease } from "../src/limits/limiter-client.ts";
import { checkFailures } from "../src/manager/failures.ts";
import { timeoutFailure } from "../src/outcome.ts";
import { readSettings } from "../src/settings/settings.ts";
import { ScoreAttempts } from "../src/worker/score-attempts.ts";
import { Slots } from "../src/worker/slots.ts";
import { closeLoops, fixture, loopOf, numbers, sampleOf } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
});

const flaky = fixture("flaky.ts");
const oneByOne = (): Promise<RewardLoopManager> =>
  loopOf({ reward: flaky, concurrency: 1, onFailure: { fallback: -1 } });

async function scored(
  options: RewardLoopOptions,
  ...texts: readonly string[]
): Promise<SampleOutcome[]> {
  await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
  return await Promise.all(texts.map((text) => loop.computeScore(sampleOf(text))));
}

function textsOf(...texts: readonly string[]): DataProto {
  return DataProto.fromDict({
    nonTensors: {
      response: texts,
      data_source: texts.map(() => "test"),
      reward_model: texts.map(() => ({ ground_truth: "" })),
    },
  });
}

/** Fails `times` times with the status, then scores 1. */
const failing = (key: string, times: number, status: number): string => `${key} ${times} ${status}`;

describe("tries", () => {
  const retry = { attempts: 3, baseMs: 1, budget: Infinity };

  test("only of what may go better later, and as often as they are allowed", async () => {
    const outcomes = await scored(
      { reward: flaky, retry },
      failing("a", 2, 503),
      failing("b", 3, 503),
      failing("c", 1, 429),
      failing("d", 1, 400),
      failing("e", 1, 0),
    );
    expect(
      outcomes.map((one) => [one.valid || one.error.status || one.error.code, one.attempts]),
    ).toEqual([
      [true, 3],
      [503, 3],
      [true, 2],
      [400, 1],
      ["SCORE_THREW", 1],
    ]);
    // At least as long as the endpoint asked for.
    expect(outcomes[2]?.waitedMs).toBeGreaterThan(20);
  });

  test("a day that an endpoint asks for holds up neither its sample nor the others", async () => {
    const [day, other] = await scored(
      {
        reward: flaky,
        retry: { ...retry, maxRetryAfterMs: 100 },
        limits: { endpoint: "closed for today" },
        concurrency: 1,
      },
      `${failing("closed", 1, 429)} 86400000`,
      failing("open", 0, 0),
    );
    expect(day).toMatchObject({ valid: false, attempts: 1, error: { status: 429 } });
    expect(other).toMatchObject({ valid: true, rewardScore: 1 });
  });

  test("who stands in line before a worker waits, too", async () => {
    const gate = new BroadcastChannel("rayling reward-loop release");
    onTestFinished(() => gate.close());
    const held = new Promise((resolve) => gate.addEventListener("message", resolve));
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      concurrency: 1,
      reward: `${fixture("gate.ts")}:untilReleased`,
    });
    const scores = ["held", "b", "c"].map((text) => loop.computeScore(sampleOf(text)));
    await held;
    // All three are in line by now, and none begins before it is over.
    const sinceMs = performance.now();
    while (performance.now() < sinceMs + 20);
    const heldMs = performance.now() - sinceMs;
    gate.postMessage("go on");
    const outcomes = await Promise.all(scores);
    expect(outcomes.map(({ valid }) => valid)).toEqual([true, true, true]);
    expect(outcomes[0]?.latencyMs).toBeGreaterThanOrEqual(heldMs);
    expect(outcomes[1]?.waitedMs).toBeGreaterThanOrEqual(heldMs);
    expect(outcomes[2]?.waitedMs).toBeGreaterThanOrEqual(heldMs);
  });

  test("a sample that pauses takes no slot", async () => {
    const options = {
      reward: flaky,
      concurrency: 1,
      retry: { attempts: 2, baseMs: 0, maxRetryAfterMs: 3_600_000, budget: Infinity },
    };
    await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
    // It may come back after an hour.
    const paused = loop.computeScore(sampleOf("late 1 429 3600000"));
    paused.catch(() => undefined);
    for await (const { outcome } of loop.scoreStream(["x 0 0", "y 0 0", "z 0 0"].map(sampleOf))) {
      expect(outcome.valid).toBe(true);
    }
  });

  test("end with the total time, whatever is under way then", async () => {
    const [waiting, trying] = await scored(
      {
        reward: flaky,
        totalTimeoutMs: 500,
        retry: { ...retry, attempts: 9, maxRetryAfterMs: 3_600_000 },
      },
      "never",
      "often 1 429 3600000",
    );
    expect(waiting).toMatchObject({ valid: false, error: { code: "SCORE_TIMEOUT" }, attempts: 1 });
    expect(trying).toMatchObject({
      valid: false,
      error: { message: expect.stringContaining("within 500 ms, with all waiting") as string },
      attempts: 1,
    });
  });
});

test("a sample whose time is over while it asks again names the last answer, and how many failed", async () => {
  const asked = new Map<string, number>();
  const server = createServer((request, response) => {
    const count = (asked.get(request.url ?? "") ?? 0) + 1;
    asked.set(request.url ?? "", count);
    if (request.url === "/warm") response.end("{}");
    else if (count < 3) response.writeHead(500).end("CUDA out of memory");
    // The third request is not answered: when the time is over two have failed for certain.
  });
  onTestFinished(async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const reward = fixture("asks-again.ts");
  const [each, total] = await Promise.all([
    loopOf({ reward, timeoutMs: 1500 }),
    loopOf({ reward, totalTimeoutMs: 1500 }),
  ]);
  const score = (loop: RewardLoopManager, text: string): Promise<SampleOutcome> =>
    loop.computeScore(sampleOf(`${url}/${text}`));
  await Promise.all([each, total].map((loop) => score(loop, "warm")));
  const outcomes = await Promise.all([
    score(each, "each"),
    score(total, "total"),
    score(total, "unheard deaf"),
  ]);
  const late = "the score function did not finish within 1500 ms";
  const lateInAll = "there was no score within 1500 ms, with all waiting and tries";
  for (const [at, path] of ["each", "total", "unheard"].entries()) {
    const last = `${url}/${path} answered 500: CUDA out of memory`;
    const before = `before that 2 of its requests failed, the last with EndpointError: ${last}`;
    const cause = { name: "EndpointError", message: last, errorCode: "HTTP_STATUS", status: 500 };
    expect(outcomes[at]).toMatchObject({
      valid: false,
      error: {
        code: "SCORE_TIMEOUT",
        message: `${at === 0 ? late : lateInAll}; ${before}`,
        cause: { ...cause, requests: 2 },
      },
    });
  }
});

test("the function hears when nobody waits any more", async () => {
  const before = fixture("flaky.ts:untilAborted");
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    timeoutMs: 300,
    reward: before,
  });
  expect(await loop.computeScore(sampleOf("wait"))).toMatchObject({
    valid: false,
    error: { code: "SCORE_TIMEOUT" },
  });
  await expect
    .poll(async () => await loop.computeScore(sampleOf("how many were aborted?")))
    .toMatchObject({ valid: true, rewardScore: 1 });
});

test("a call that takes longer than most is begun a second time, and the first one hears of it", async () => {
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 8,
    hedge: { quantile: 0.5, budget: 1 },
    reward: fixture("flaky.ts:slowFirst"),
  });
  const quick = Array.from({ length: 100 }, (_, index) => sampleOf(`quick ${index}`));
  for await (const { outcome } of loop.scoreStream(quick)) expect(outcome.valid).toBe(true);
  // Its first call never ends by itself.
  expect(await loop.computeScore(sampleOf("slow"))).toMatchObject({
    valid: true,
    rewardScore: 2,
    attempts: 2,
    hedges: { begun: 1, won: 1 },
  });
  await expect
    .poll(async () => await loop.computeScore(sampleOf("how many were aborted?")))
    .toMatchObject({ valid: true, rewardScore: 1 });
});

/** Of an executor: answers when its thread is free. */
interface Breathing {
  breathe(): Promise<void>;
}

describe("without any deadline, the other call of a hedge takes no room, though it heeds nothing", () => {
  const hedging = async (): Promise<RewardLoopManager> => {
    const marks = await mkdtemp(join(tmpdir(), "rayling-heedless-"));
    onTestFinished(() => rm(marks, { recursive: true }));
    const loop = await RewardLoopManager.create({
      workers: 1,
      executors: 2,
      concurrency: 2,
      hedge: { quantile: 0.5, budget: 1 },
      reward: { path: flaky, name: "heedless", rewardKwargs: { marks } },
    });
    const quick = Array.from({ length: 100 }, (_, index) => sampleOf(`quick ${index}`));
    for await (const { outcome } of loop.scoreStream(quick)) expect(outcome.valid).toBe(true);
    return loop;
  };

  test("and waits for ever", async () => {
    await using loop = await hedging();
    // One more than there is room for in all.
    for (let index = 0; index < 5; index++) {
      const outcome = await loop.computeScore(sampleOf(`hang ${index}`));
      expect(outcome).toMatchObject({ valid: true, rewardScore: 1 });
    }
  });

  test("and blocks its thread: another one takes its place", async () => {
    await using loop = await hedging();
    const executors = async (): Promise<string[]> =>
      (await ray.listNamedActors())
        .map(({ name }) => name)
        .filter((name) => name.startsWith(`${loop.workerNames[0] ?? ""}_executor_`));
    // One may be just being replaced.
    await expect.poll(async () => (await executors()).length, { timeout: 60_000 }).toBe(2);
    const before = new Set(await executors());
    // Needless calls of before are done, and both have room.
    for (const name of before) {
      const executor = await ray.getActor<Breathing>(name);
      await ray.get(executor.breathe.remote());
    }
    expect(await loop.computeScore(sampleOf("quick again"))).toMatchObject({ rewardScore: 1 });
    expect(await loop.computeScore(sampleOf("block"))).toMatchObject({ rewardScore: 1 });
    await expect
      .poll(async () => (await executors()).filter((name) => !before.has(name)).length, {
        timeout: 60_000,
      })
      .toBe(1);
  });
});

describe("calls that we give up ourselves", () => {
  const open = async (
    endpoint: string,
    concurrency: AdaptiveLimitSettings,
    options: RewardLoopOptions,
  ): Promise<{
    readonly loop: RewardLoopManager;
    readonly limiter: () => Promise<LimiterState>;
  }> => {
    const loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      concurrency: 8,
      reward: fixture("flaky.ts:honouring"),
      limits: { endpoint, concurrency, breaker: { window: 4 } },
      ...options,
    });
    const limiter = await ray.getActor<RewardLimiter>(`reward_limiter:${endpoint}`);
    return { loop, limiter: () => ray.get(limiter.state.remote()) };
  };

  test("are no failures of the endpoint: the slower one of a hedge", async () => {
    const { loop, limiter } = await open(
      "hedged",
      { initial: 20 },
      { hedge: { quantile: 0.5, budget: 1 } },
    );
    await using _ = loop;
    const quick = Array.from({ length: 100 }, (__, index) => sampleOf(`quick ${index}`));
    for await (const { outcome } of loop.scoreStream(quick)) expect(outcome.valid).toBe(true);
    for (let index = 0; index < 10; index++) {
      const outcome = await loop.computeScore(sampleOf(`slow ${index}`));
      expect(outcome).toMatchObject({ valid: true, attempts: 2 });
    }
    await expect.poll(async () => (await limiter()).inFlight).toBe(0);
    // What takes all of its places may make it grow; a failure would make it shrink.
    const { limit, breaker } = await limiter();
    expect(breaker).toBe("closed");
    expect(limit).toBeGreaterThanOrEqual(20);
  });

  test("are told to the limiter at once, and keep their places if they do not end", async () => {
    const told: string[] = [];
    const lease: RemoteLease = {
      waitedMs: 0,
      givenUp: () => void told.push("given up"),
      answered: ({ outcome }) => void told.push(outcome),
      release: () => void told.push("released"),
    };
    const late: SampleOutcome = {
      valid: false,
      error: timeoutFailure(1),
      latencyMs: 1,
      attempts: 1,
      waitedMs: 0,
    };
    const attempts = new ScoreAttempts(readSettings({}).policy, {
      limiter: { acquire: async () => lease } as unknown as LimiterClient,
      slots: new Slots(1),
      onPause: () => undefined,
      giveUp: () => undefined,
      run: (_, id, ends, { call }) => {
        call?.answered(late);
        ends.settled(late, id);
      },
    });
    const { error, attempts: made } = late;
    expect(await attempts.score(sampleOf("hang"), { lane: "training" })).toMatchObject({
      error,
      attempts: made,
    });
    expect(told).toEqual(["failed"]);
  });

  test.each([
    ["unknown", 0.4],
    ["failed", 0.6],
  ])("at the end of the total time are %s where they had %d of it", async (expected, share) => {
    const totalTimeoutMs = 50;
    let nowMs = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    onTestFinished(() => clock.mockRestore());
    const told = Promise.withResolvers<string>();
    const lease: RemoteLease = {
      waitedMs: 0,
      givenUp: () => undefined,
      answered: ({ outcome }) => told.resolve(outcome),
      release: () => undefined,
    };
    const late: SampleOutcome = {
      valid: false,
      error: timeoutFailure(totalTimeoutMs),
      latencyMs: 1,
      attempts: 1,
      waitedMs: 0,
    };
    const attempts = new ScoreAttempts(readSettings({ totalTimeoutMs }).policy, {
      limiter: { acquire: async () => lease } as unknown as LimiterClient,
      slots: new Slots(1),
      onPause: () => undefined,
      giveUp: () => undefined,
      run: async (_, id, ends, { signal, call }) => {
        await once(signal as AbortSignal, "abort");
        nowMs += share * totalTimeoutMs;
        call?.answered(late);
        ends.settled(late, id);
        call?.over();
      },
    });
    await attempts.score(sampleOf("late"), { lane: "training" });
    expect(await told.promise).toBe(expected);
  });

  test("at the end of the total time open its breaker", async () => {
    const { loop, limiter } = await open("given up", { min: 20 }, { totalTimeoutMs: 1000 });
    await using _ = loop;
    for await (const { outcome } of loop.scoreStream(["hang", "hang", "hang"].map(sampleOf))) {
      expect(outcome).toMatchObject({
        valid: false,
        error: { code: "SCORE_TIMEOUT" },
        attempts: 1,
      });
    }
    await expect.poll(async () => (await limiter()).breaker).toBe("open");
  });
});

describe("what cannot be scored", () => {
  test("gets a fallback value that says so", async () => {
    const loop = await oneByOne();
    const [good, bad] = await Promise.all(
      ["good 0 0", "bad 9 400"].map((text) => loop.computeScore(sampleOf(text))),
    );
    expect(good).toMatchObject({ valid: true, rewardScore: 1 });
    expect(bad).toMatchObject({
      valid: true,
      rewardScore: -1,
      rewardExtraInfo: { fallback: true, error: "SCORE_THREW" },
    });
  });

  test("is scored once more when all others are done", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: flaky,
      onFailure: { again: true },
    });
    const batch = textsOf("a 1 503", "b 0 0", "c 2 503", "d 1 400");
    const rewards = await loop.computeRmScore(batch);
    expect(Array.from(rewards.batch?.["rewardValid"]?.data ?? [])).toEqual([1, 1, 0, 0]);
  });

  test("fails the batch above a share, with the reasons", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: flaky,
      onFailure: { failAbove: 0.25 },
    });
    const rewards = await loop.computeRmScore(textsOf("a 0 0", "b 0 0", "c 0 0", "d 9 503"));
    expect(rewards.length).toBe(4);
    const failed = loop.computeRmScore(textsOf("e 0 0", "f 0 0", "g 9 503", "h 9 400"));
    await expect(failed).rejects.toMatchObject({
      name: "RewardFailuresError",
      invalid: 2,
      total: 4,
      counts: { SCORE_THREW: 2 },
    });
  });

  test.each([
    [0.29, 29, 100],
    [0.58, 58, 100],
    [0.7, 63, 90],
    [0, 0, 0],
  ])("lets a batch pass at its very share: %d is %d of %d", (failAbove, invalid, total) => {
    const measured = { attempts: 1, waitedMs: 0, latencyMs: 0 };
    const failed = { valid: false, error: timeoutFailure(1), ...measured } as const;
    const good = { valid: true, rewardScore: 1, rewardExtraInfo: { acc: 1 }, ...measured } as const;
    const outcomes = (count: number): SampleOutcome[] =>
      Array.from({ length: total }, (_, row) => (row < count ? failed : good));
    const onFailure = { failAbove, again: false, fallback: undefined };
    expect(() => checkFailures(outcomes(invalid), onFailure)).not.toThrow();
    if (total === 0) return;
    expect(() => checkFailures(outcomes(invalid + 1), onFailure)).toThrow("samples");
  });
});

test("what is begun again after an executor's end is another call of its endpoint", async () => {
  const endpoint = "begun again";
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 2,
    limits: { endpoint, concurrency: 2 },
    reward: `${fixture("troublemaker.ts")}:untilTold`,
  });
  const channel = new BroadcastChannel("rayling until told");
  onTestFinished(() => channel.close());
  let atWork = 0;
  channel.addEventListener("message", () => (atWork += 1));
  const scoring = Promise.all(["0", "1"].map((text) => loop.computeScore(sampleOf(text))));
  await expect.poll(() => atWork, { timeout: 60_000 }).toBe(2);
  const named = await ray.listNamedActors();
  const executor = named.find(({ name }) =>
    name.startsWith(`${loop.workerNames[0] ?? ""}_executor_`),
  );
  await ray.kill(await ray.getActor(executor?.name ?? ""));
  await expect.poll(() => atWork, { timeout: 60_000 }).toBe(4);
  expect(await loop.endpoints()).toMatchObject([{ endpoint, granted: 4 }]);
  channel.postMessage("go on");
  const outcomes = await scoring;
  expect(outcomes.map(({ valid, attempts }) => [valid, attempts])).toEqual([
    [true, 2],
    [true, 2],
  ]);
  await expect.poll(async () => (await loop.endpoints())[0]?.inFlight).toBe(0);
});

test("a batch for validation does not wait behind one for training", async () => {
  const loop = await oneByOne();
  const done: string[] = [];
  const training = Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      await loop.computeScore(sampleOf(`t${index} 0 0`));
      done.push("training");
    }),
  );
  const validation = loop
    .computeRmScore(textsOf("v1 0 0", "v2 0 0"), { lane: "validation" })
    .then(() => done.push("validation"));
  await Promise.all([training, validation]);
  expect(done.indexOf("validation")).toBeLessThan(10);
});

test("progress tells how much of the limits of its endpoint is used", async () => {
  const reward = `${fixture("rewards.ts")}:slowValue`;
  // Of an endpoint whose minutes are long: all requests of the test are of one.
  const rate = { requestsPerMinute: 60_000, minuteMs: 3_600_000 };
  const limits = { endpoint: "watched", concurrency: 2, ...rate };
  await using loop = await RewardLoopManager.create({ workers: 2, executors: 1, reward, limits });
  const seen: RewardProgress[] = [];
  const stream = loop.scoreStream(numbers(40).map(sampleOf), {
    onProgress: (progress) => seen.push(progress),
    progressEveryMs: 1,
  });
  for await (const _ of stream);
  const states = seen.flatMap(({ endpoints }) => endpoints);
  expect(states.some(({ inFlight }) => inFlight > 0)).toBe(true);
  for (const { endpoint, limit, inFlight, requests } of states) {
    expect([endpoint, limit, requests?.limit]).toEqual(["watched", 2, 60_000]);
    expect(inFlight).toBeLessThanOrEqual(2);
  }
  await expect
    .poll(() => loop.endpoints())
    .toMatchObject([{ inFlight: 0, waiting: 0, granted: 40, requests: { used: 40 } }]);
});
