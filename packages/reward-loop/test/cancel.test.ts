/** What is cancelled of those who wait for scores, and given up of what they asked for. */

import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { AsyncRewardAgent, RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ScoringActor } from "./fixtures/scoring-actor.ts";
import { closeLoops, fixture, loopOf, sampleOf } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await endpoint[Symbol.asyncDispose]();
  await ray.shutdown();
});

test("a task that is cancelled takes no sample of others along", async () => {
  const actor = ScoringActor.remote();
  await ray.get(actor.open.remote(fixture("troublemaker.ts:inThread")));
  const channel = new BroadcastChannel("rayling in thread");
  const atWork = new Set<unknown>();
  channel.addEventListener("message", (event) => atWork.add((event as MessageEvent).data));
  try {
    const first = actor.score.remote("hold first");
    await expect.poll(() => atWork.has("hold first")).toBe(true);
    const second = actor.score.remote("hold second");
    await expect.poll(() => atWork.has("hold second")).toBe(true);
    ray.cancel(first, { recursive: true });
    await expect(ray.get(first)).rejects.toMatchObject({ code: "TASK_CANCELLED" });
    channel.postMessage("go on hold second");
    expect(await ray.get(second)).toBe(true);
    expect(await ray.get(actor.score.remote("another"))).toBe(true);
  } finally {
    channel.close();
    await ray.get(actor.close.remote());
    await ray.kill(actor);
  }
});

/** Answers "now" at once with 1, or with the status that it names, and all else when it is let go. */
class Endpoint implements AsyncDisposable {
  readonly #server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const text = Buffer.concat(parts).toString();
      this.asked.push(text);
      response.statusCode = text.startsWith("now 503") ? 503 : 200;
      if (text.startsWith("now")) response.end("1");
      else {
        this.open.add(response);
        response.on("close", () => this.open.delete(response));
      }
    });
  });
  /** All that was asked, in order. */
  readonly asked: string[] = [];
  /** Calls that are not answered, and whose client still waits. */
  readonly open: Set<ServerResponse> = new Set();

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  letGo(): void {
    for (const response of this.open) response.end("1");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** All loops of the file ask it. */
const endpoint = new Endpoint();
beforeAll(() => endpoint.start());
beforeEach(async () => {
  endpoint.letGo();
  await expect.poll(() => endpoint.open.size).toBe(0);
  endpoint.asked.length = 0;
});

function batchOf(responses: readonly string[]): DataProto {
  return DataProto.fromDict({
    nonTensors: {
      data_source: responses.map(() => "test"),
      reward_model: responses.map(() => ({ ground_truth: "" })),
      response: responses,
    },
  });
}

const textsOf = (count: number, name = "wait"): string[] =>
  Array.from({ length: count }, (_, index) => `${name} ${index}`);
const samplesOf = (count: number, name?: string) => textsOf(count, name).map(sampleOf);

const judgeOf = (name: string) => ({
  reward: { path: fixture("asked-judge.ts"), name, rewardKwargs: { url: endpoint.url } },
});

/** A loop of two workers with four slots in all. */
const openPlain = (): Promise<RewardLoopManager> =>
  loopOf({ ...judgeOf("judge"), workers: 2, concurrency: 2 });

/** Four slots of one worker. */
const open = (options: RewardLoopOptions, name = "judge"): Promise<RewardLoopManager> =>
  loopOf({ ...judgeOf(name), concurrency: 4, ...options });

async function scored(stream: AsyncIterable<{ outcome: SampleOutcome }>): Promise<number> {
  let valid = 0;
  for await (const { outcome } of stream) if (outcome.valid) valid += 1;
  return valid;
}

const spend = { prices: { perCall: 2 }, cap: 1000 };
const policies = { retry: true, totalTimeoutMs: 100_000, hedge: true } as const;
/** The gate has the first four together; the last two are cases of their own below. */
const alone: Readonly<Record<string, RewardLoopOptions>> = {
  "with attempts": { retry: true },
  "with a total time": { totalTimeoutMs: 100_000 },
  "with hedges": { hedge: true },
  "with limits of its endpoint": { limits: { concurrency: 4 } },
  "with a cap on spending": { spend },
  "with equal samples joined": { joinSame: true },
};
const kinds: Readonly<Record<string, RewardLoopOptions>> = {
  "without policies": { workers: 2, concurrency: 2 },
  "with all policies": { ...policies, limits: { endpoint: "with others", concurrency: 4 } },
  "in processes": { executorIsolation: "process" },
  ...sized({ gate: {}, full: alone }),
};

describe.each(Object.entries(kinds))("a stream %s that is stopped", (_, options) => {
  test("aborts its calls, begins no others, and frees their slots", async () => {
    const loop = await open(options);
    const stop = new AbortController();
    const stopped = scored(loop.scoreStream(samplesOf(40), { signal: stop.signal }));
    await expect.poll(() => endpoint.open.size).toBe(4);
    stop.abort(new Error("enough"));
    await expect(stopped).rejects.toThrow("enough");
    await expect.poll(() => endpoint.open.size).toBe(0);
    expect(await scored(loop.scoreStream(samplesOf(8, "now")))).toBe(8);
    expect(endpoint.asked.filter((text) => text.startsWith("wait"))).toHaveLength(4);
  });
});

test("a reader that leaves, and an error of the input, stop what is in flight, too", async () => {
  const loop = await openPlain();
  for await (const _ of loop.scoreStream([sampleOf("now"), ...samplesOf(3)])) {
    await expect.poll(() => endpoint.open.size).toBe(3);
    break;
  }
  await expect.poll(() => endpoint.open.size).toBe(0);
  const isThere = Promise.withResolvers<void>();
  const failing = async function* () {
    yield* samplesOf(3);
    await isThere.promise;
    throw new Error("no more input");
  };
  const stopped = scored(loop.scoreStream(failing()));
  await expect.poll(() => endpoint.open.size).toBe(3);
  isThere.resolve();
  await expect(stopped).rejects.toThrow("no more input");
  await expect.poll(() => endpoint.open.size).toBe(0);
});

test("a stream that nobody reads is stopped at once", async () => {
  const loop = await openPlain();
  const stop = new AbortController();
  const stream = loop.scoreStream([sampleOf("now"), ...samplesOf(3)], { signal: stop.signal });
  expect(await stream.next()).toMatchObject({ value: { index: 0 } });
  await expect.poll(() => endpoint.open.size).toBe(3);
  stop.abort(new Error("enough"));
  await expect.poll(() => endpoint.open.size).toBe(0);
  await expect(stream.next()).rejects.toThrow("enough");
});

test("the calls of others go on", async () => {
  const loop = await openPlain();
  const stop = new AbortController();
  const stopped = scored(loop.scoreStream(samplesOf(2, "gone"), { signal: stop.signal }));
  const others = scored(loop.scoreStream(samplesOf(2, "stays")));
  await expect.poll(() => endpoint.open.size).toBe(4);
  stop.abort(new Error("enough"));
  await expect(stopped).rejects.toThrow("enough");
  await expect.poll(() => endpoint.open.size).toBe(2);
  endpoint.letGo();
  expect(await others).toBe(2);
});

test("a function that does not heed its signal is forgotten, and one that blocks its thread is ended", async () => {
  const loop = await open({}, "deaf");
  const stop = new AbortController();
  const stopped = scored(loop.scoreStream(samplesOf(4), { signal: stop.signal }));
  await expect.poll(() => endpoint.open.size).toBe(4);
  stop.abort(new Error("enough"));
  await expect(stopped).rejects.toThrow("enough");
  expect(await scored(loop.scoreStream(samplesOf(4, "now")))).toBe(4);
  endpoint.letGo();
  await using blocked = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: fixture("troublemaker.ts:sync"),
  });
  const again = new AbortController();
  const texts = ["0", "hang", "1"].map(sampleOf);
  await expect(async () => {
    for await (const { index } of blocked.scoreStream(texts, { signal: again.signal })) {
      if (index === 0) again.abort(new Error("enough"));
    }
  }).rejects.toThrow("enough");
  expect(await scored(blocked.scoreStream(["2", "3"].map(sampleOf)))).toBe(2);
});

test("one sample, and a batch, are given up by their signal", async () => {
  const loop = await openPlain();
  const stop = new AbortController();
  const { signal } = stop;
  const gone = loop.computeScore(sampleOf("gone"), { signal });
  const alsoGone = loop.computeScore(sampleOf("gone, too"), { signal });
  const stays = loop.computeScore(sampleOf("stays"));
  await expect.poll(() => endpoint.open.size).toBe(3);
  const batch = loop.computeRmScore(batchOf(["of a batch", "of a batch, too"]), { signal });
  await expect.poll(() => endpoint.open.size).toBe(4);
  stop.abort(new Error("enough"));
  await expect(gone).rejects.toThrow("enough");
  await expect(alsoGone).rejects.toThrow("enough");
  await expect(batch).rejects.toThrow("enough");
  await expect.poll(() => endpoint.open.size).toBe(1);
  endpoint.letGo();
  expect(await stays).toMatchObject({ valid: true, rewardScore: 1 });
  const asked = endpoint.asked.length;
  await expect(loop.computeScore(sampleOf("now"), { signal })).rejects.toThrow("enough");
  expect(endpoint.asked).toHaveLength(asked);
  await expect(
    loop.computeScore(sampleOf("now"), { signal: {} as AbortSignal }),
  ).rejects.toMatchObject({ code: "REWARD_LOOP_OPTION" });
});

test("what was asked for by others, too, is asked for again when its first owner gives it up", async () => {
  const loop = await open({ joinSame: true });
  const stop = new AbortController();
  const first = loop.computeScore(sampleOf("same"), { signal: stop.signal });
  const others = [1, 2].map(() => loop.computeScore(sampleOf("same")));
  await expect.poll(() => endpoint.open.size).toBe(1);
  stop.abort(new Error("enough"));
  await expect(first).rejects.toThrow("enough");
  await expect.poll(() => endpoint.asked).toEqual(["same", "same"]);
  endpoint.letGo();
  expect(await Promise.all(others)).toMatchObject([{ valid: true }, { valid: true, cached: true }]);
});

test("a later stage of a cascade is not begun, and a record has no line of what was given up", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-given-up-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const record = join(folder, "rewards.jsonl");
  const cascade = { rule: judgeOf("unsure"), judge: judgeOf("judge") };
  const options = { workers: 1, executors: 1, concurrency: 4, cascade, record };
  {
    await using loop = await RewardLoopManager.create(options);
    const stop = new AbortController();
    const texts = ["now 0", "wait 0", "wait 1"];
    const seen: number[] = [];
    const stopped = (async () => {
      const stream = loop.scoreStream(texts.map(sampleOf), { signal: stop.signal });
      for await (const { index } of stream) seen.push(index);
    })();
    await expect.poll(() => [endpoint.open.size, seen.length]).toEqual([2, 1]);
    stop.abort(new Error("enough"));
    await expect(stopped).rejects.toThrow("enough");
    await expect.poll(() => endpoint.open.size).toBe(0);
  }
  expect(endpoint.asked.toSorted()).toEqual(["now 0", "now 0", "wait 0", "wait 1"]);
  const lines = (await readFile(record, "utf8")).trimEnd().split("\n");
  const written = lines.map((line) => JSON.parse(line) as { index: number; component?: string });
  expect(new Set(written.map(({ index }) => index))).toEqual(new Set([0]));
});

test("what was used by a call that is given up is paid", async () => {
  const loop = await open({ spend });
  const before = loop.spent;
  const stop = new AbortController();
  const stopped = scored(loop.scoreStream(samplesOf(9), { signal: stop.signal }));
  await expect.poll(() => endpoint.open.size).toBe(4);
  stop.abort(new Error("enough"));
  await expect(stopped).rejects.toThrow("enough");
  await expect.poll(() => loop.spent - before).toBe(8);
  expect(await scored(loop.scoreStream(samplesOf(3, "now")))).toBe(3);
  expect(loop.spent - before).toBe(14);
});

describe("rows of a request that are given up", () => {
  const uids = ["a", "a", "b", "b", "c", "c"];
  const request = { uids, groupSize: 2 };

  test("come with their groups at once; their calls are aborted, and those of others go on", async () => {
    await using agent = await AsyncRewardAgent.create(judgedBy());
    const asked = agent.request(request);
    asked.submit(0, sampleOf("now"));
    asked.submit(1, sampleOf("gone"));
    asked.submit(2, sampleOf("stays"));
    asked.submit(3, sampleOf("now, too"));
    await expect.poll(() => endpoint.open.size).toBe(2);
    await expect.poll(() => asked.left).toBe(4);
    // Of the last group no row was submitted.
    asked.giveUp([1, 5]);
    expect(asked.left).toBe(1);
    expect(await asked.take(4)).toEqual([0, 1, 4, 5]);
    await expect.poll(() => endpoint.open.size).toBe(1);
    // A rollout that is finished later begins nothing.
    asked.submit(4, sampleOf("never"));
    asked.know(5, { valid: true, rewardScore: 1, rewardExtraInfo: {}, ...unasked });
    endpoint.letGo();
    expect(await asked.take(2)).toEqual([2, 3]);
    await asked.whenSettled();
    const outcomes = uids.map((_, row) => asked.outcomeOf(row));
    expect(outcomes.map((one) => (one?.valid ? 1 : one?.error.code))).toEqual([
      1,
      "GIVEN_UP",
      1,
      1,
      "GIVEN_UP",
      "GIVEN_UP",
    ]);
    expect(endpoint.asked.toSorted()).toEqual(["gone", "now", "now, too", "stays"]);
    // All groups are whole: nothing is left to give up.
    asked.giveUp();
    expect(asked.outcomeOf(2)).toMatchObject({ valid: true });
    expect(() => asked.giveUp([6])).toThrow("there is no row 6 of 6");
  });

  test("are no failures of the batch, get no fallback, and are not scored once more", async () => {
    const onFailure = { failAbove: 0, again: true, fallback: "groupMean" } as const;
    await using agent = await AsyncRewardAgent.create({ ...judgedBy(), onFailure });
    const asked = agent.request(request);
    asked.submit(0, sampleOf("now 503"));
    asked.submit(1, sampleOf("gone"));
    await expect.poll(() => [endpoint.asked.length, endpoint.open.size]).toEqual([2, 1]);
    // It has failed, and waits for the others.
    expect(await agent.loop.computeScore(sampleOf("now"))).toMatchObject({ valid: true });
    asked.giveUp([0]);
    for (const row of [2, 3, 4, 5]) asked.submit(row, sampleOf(`now ${row}`));
    expect(await asked.take(6)).toEqual([0, 1, 2, 3, 4, 5]);
    const outcomes = uids.map((_, row) => asked.outcomeOf(row));
    expect(outcomes.map((one) => one?.valid)).toEqual([false, false, true, true, true, true]);
    await expect.poll(() => endpoint.open.size).toBe(0);
    expect(endpoint.asked.filter((text) => text === "now 503")).toHaveLength(1);
  });

  test("of a function that takes groups are one call, which is aborted", async () => {
    await using agent = await AsyncRewardAgent.create(judgedBy("GroupJudge"));
    const asked = agent.request(request);
    for (const row of [0, 1]) asked.submit(row, sampleOf(`gone ${row}`));
    asked.submit(2, sampleOf("gathered"));
    await expect.poll(() => endpoint.open.size).toBe(1);
    asked.giveUp([0, 2]);
    expect(await asked.take(4)).toEqual([0, 1, 2, 3]);
    await expect.poll(() => endpoint.open.size).toBe(0);
    for (const row of [4, 5]) asked.submit(row, sampleOf(`now ${row}`));
    expect(await asked.take(2)).toEqual([4, 5]);
    expect(asked.outcomeOf(5)).toMatchObject({ valid: true });
    expect(endpoint.asked).toEqual(["gone 0", "now 4"]);
  });
});

const unasked = { attempts: 0, latencyMs: 0, waitedMs: 0 };

function judgedBy(name = "judge"): RewardLoopOptions {
  return { workers: 1, executors: 1, concurrency: 4, ...judgeOf(name) };
}
