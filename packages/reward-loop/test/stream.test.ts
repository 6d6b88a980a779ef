/** The stream: as they finish, no faster than there is room, and every way for it to end. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BroadcastChannel } from "node:worker_threads";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { RewardLoopManager } from "@rayling/reward-loop";
import type {
  RewardProgress,
  ScoredSample,
  ScoreOptions,
  ScoreStreamOptions,
} from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  closeLoops,
  expectOnlyInvalid,
  fixture,
  loopOf,
  numbers,
  sampleOf,
  scoreTexts,
} from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
});

const slow = `${fixture("rewards.ts")}:slowValue`;

const loops: readonly [string, number, number][] = [
  ["slowValue", 2, 2],
  ["promisedValue", 1, 1],
  ["value", 1, 2],
];
test.each(sized({ gate: loops.slice(0, 2), full: loops }))(
  "every sample comes once, with its index (%s, %i workers of %i executors)",
  async (name, workers, executors) => {
    const outcomes = await scoreTexts(
      { workers, executors, reward: `${fixture("rewards.ts")}:${name}` },
      numbers(300),
    );
    expectOnlyInvalid(outcomes, {});
  },
);

test("a call refuses options that are none, each by its name, and samples that are none", async () => {
  const loop = await loopOf({ reward: slow });
  const refused = (option: string) =>
    expect.objectContaining({ code: "REWARD_LOOP_OPTION", option });
  const samples = [sampleOf("1")];
  const thrown = (samplesGiven: unknown, options?: unknown): unknown => {
    try {
      return loop.scoreStream(samplesGiven as RewardSample[], options as ScoreStreamOptions);
    } catch (error) {
      return error;
    }
  };
  const onProgress = (): void => undefined;
  const streams: readonly (readonly [option: string, options: unknown])[] = [
    ["options", null],
    ["options", "validation"],
    ["lanes", { lanes: "validation" }],
    ["lane", { lane: 5 }],
    ["lane", { lane: "" }],
    ["abort", { abort: AbortSignal.abort() }],
    ["signal", { signal: new AbortController() }],
    ["drain", { drain: new AbortController() }],
    ["onOutcome", { onOutcome: 5 }],
    ["onProgress", { onProgress: {} }],
    ...["1s", Number.NaN, -1].map(
      (progressEveryMs) => ["progressEveryMs", { onProgress, progressEveryMs }] as const,
    ),
    ...["6", Number.NaN, -1].map((total) => ["total", { onProgress, total }] as const),
    ...[4, true, null].map((groups) => ["groups", { groups }] as const),
    ["groups.sise", { groups: { sise: 4 } }],
    ...[undefined, 0, -4, 0.5, 2.5, Number.NaN, "4", "consecutiv"].map(
      (size) => ["groups.size", { groups: { size } }] as const,
    ),
    ...[-1, Number.NaN, "5"].map(
      (mostHeld) => ["groups.mostHeld", { groups: { size: 2, mostHeld } }] as const,
    ),
    ["groups.known", { groups: { size: 2, known: [] } }],
  ];
  for (const [option, options] of streams) {
    expect(thrown(samples, options), JSON.stringify(options)).toEqual(refused(option));
  }
  for (const given of [5, undefined, null, {}, "abc", () => samples]) {
    expect(thrown(given), typeof given).toEqual(refused("samples"));
  }
  const scores: readonly (readonly [option: string, options: unknown])[] = [
    ["options", "validation"],
    ["lanes", { lanes: "validation" }],
    ["lane", { lane: null }],
    ["abort", { abort: AbortSignal.abort() }],
  ];
  for (const [option, options] of scores) {
    const given = options as ScoreOptions;
    await expect(loop.computeScore(sampleOf("1"), given)).rejects.toEqual(refused(option));
    await expect(loop.computeRmScore(DataProto.fromDict({}), given)).rejects.toEqual(
      refused(option),
    );
    expect(() => loop.round(1, given)).toThrow(refused(option));
  }
});

test("the input is read no further than workers x concurrency ahead", async () => {
  await using loop = await RewardLoopManager.create({
    workers: 2,
    executors: 1,
    concurrency: 3,
    reward: slow,
  });
  let read = 0;
  let done = 0;
  let most = 0;
  async function* input(): AsyncGenerator<RewardSample> {
    for (const text of numbers(100)) {
      read += 1;
      most = Math.max(most, read - done);
      yield sampleOf(text);
    }
  }
  for await (const { outcome } of loop.scoreStream(input())) {
    done += 1;
    expect(outcome.valid).toBe(true);
  }
  expect(done).toBe(100);
  // Six in flight, and those that finished while the consumer looked at one.
  expect(most).toBeLessThanOrEqual(12);
});

test("a sample that waits for all others is waited for by nobody: there is no barrier", async () => {
  await using loop = await RewardLoopManager.create({
    workers: 2,
    executors: 1,
    concurrency: 2,
    reward: `${fixture("gate.ts")}:untilOthers`,
  });
  const order: number[] = [];
  for await (const { index } of loop.scoreStream(numbers(40).map(sampleOf))) order.push(index);
  expect(order.toSorted((a, b) => a - b)).toEqual([...Array(40).keys()]);
});

test("progress counts up to the end", async () => {
  await using loop = await RewardLoopManager.create({
    workers: 2,
    executors: 1,
    concurrency: 4,
    reward: `${fixture("rewards.ts")}:extras`,
  });
  const seen: RewardProgress[] = [];
  const stream = loop.scoreStream(numbers(100).map(sampleOf), {
    onProgress: (progress) => seen.push(progress),
    progressEveryMs: 1,
  });
  for await (const _ of stream);
  expect(seen.at(-1)).toMatchObject({
    done: 100,
    total: 100,
    inFlight: 0,
    invalid: 10,
    failures: { "user-code": 10 },
    oldestMs: 0,
    leftMs: 0,
    endpoints: [],
  });
  // Of what is left it can say something when something is done.
  for (const { done, leftMs } of seen) expect(leftMs === undefined).toBe(done === 0);
  expect(seen.every(({ inFlight }) => inFlight <= 8)).toBe(true);
  expect(seen.map(({ done }) => done)).toEqual(
    seen.map(({ done }) => done).toSorted((a, b) => a - b),
  );
});

test("a signal stops it with its reason, and the loop can be used again", async () => {
  const loop = await loopOf({ reward: slow });
  const controller = new AbortController();
  const run = async (): Promise<void> => {
    for await (const _ of loop.scoreStream(endless(), { signal: controller.signal })) {
      controller.abort(new Error("enough"));
    }
  };
  await expect(run()).rejects.toThrow("enough");
  await expect(run()).rejects.toThrow("enough");
  expect(await loop.computeScore(sampleOf("3"))).toMatchObject({ rewardScore: 3 });
});

test.each([
  ["another stream", 9, 1, 4],
  ["samples that wait", 1, 1, 16],
])("it has its lane's share beside %s: %i to %i", async (beside, theirs, ours, least) => {
  const shares = { validation: theirs, training: ours };
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 4,
    reward: slow,
    limits: { endpoint: `shares beside ${beside}`, concurrency: 2, shares },
  });
  const samples = numbers(80).map(sampleOf);
  const stop = new AbortController();
  const done = { training: 0, validation: 0 };
  let early = 0;
  const other = (): void => {
    done.validation += 1;
    if (done.validation === 40) early = done.training;
  };
  const [stream] = await Promise.allSettled([
    (async () => {
      for await (const { outcome } of loop.scoreStream(samples, { signal: stop.signal })) {
        expect(outcome.valid).toBe(true);
        done.training += 1;
      }
    })(),
    (async () => {
      if (beside === "another stream") {
        for await (const _ of loop.scoreStream(samples, { lane: "validation" })) other();
      } else {
        const lane = "validation";
        await Promise.all(
          samples.map((one) => loop.computeScore(one, { lane }).then(() => other())),
        );
      }
      // Some of the stream's samples stand in line, or are with the worker.
      stop.abort(new Error("enough"));
    })(),
  ]);
  // Half of what it should have, and twice.
  expect(early).toBeGreaterThanOrEqual(least / 2);
  expect(early).toBeLessThanOrEqual(Math.max(2 * least, 40 * 1.2 * (ours / theirs)));
  if (done.training < 80) expect(stream).toMatchObject({ reason: new Error("enough") });
  const scores: unknown[] = [];
  for await (const { index, outcome } of loop.scoreStream(samples)) {
    scores[index] = outcome.valid && outcome.rewardScore;
  }
  expect(scores).toEqual([...samples.keys()]);
});

test("a consumer that leaves, and an input that fails, close the input", async () => {
  const loop = await loopOf({ reward: slow });
  let closed = 0;
  function* input(count: number): Generator<RewardSample> {
    try {
      for (const text of numbers(count)) yield sampleOf(text);
      throw new Error("the file ends in the middle");
    } finally {
      closed += 1;
    }
  }
  for await (const _ of loop.scoreStream(input(1000))) break;
  expect(closed).toBe(1);
  await expect(async () => {
    for await (const _ of loop.scoreStream(input(5)));
  }).rejects.toThrow("the file ends in the middle");
  expect(closed).toBe(2);
});

test("closing ends what is pending and can be done twice; a closed loop says so", async () => {
  const names = async (): Promise<string[]> =>
    (await ray.listNamedActors()).map(({ name }) => name);
  const before = await names();
  const loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 2,
    reward: `${fixture("troublemaker.ts")}:later`,
  });
  const pending = [1, 2, 3, 4].map(() => loop.computeScore(sampleOf("wait forever")));
  const ends = Promise.allSettled(pending);
  await Promise.all([loop.close(), loop.close()]);
  for (const end of await ends)
    expect(end).toMatchObject({ status: "rejected", reason: { code: "REWARD_LOOP_CLOSED" } });
  await expect(loop.computeScore(sampleOf("1"))).rejects.toMatchObject({
    code: "REWARD_LOOP_CLOSED",
  });
  expect(await names()).toEqual(before);
});

test("closing after the session has ended starts no new one", async () => {
  const loop = await RewardLoopManager.create({ workers: 1, executors: 1, reward: slow });
  onTestFinished(async () => void (await ray.init({ isolation: "shared", prewarm: 0 })));
  // Of others, which would be of no use.
  await closeLoops();
  await ray.shutdown();
  await loop.close();
  expect(ray.isInitialized()).toBe(false);
});

function* endless(): Generator<RewardSample> {
  for (let index = 0; ; index++) yield sampleOf(String(index));
}

test("single samples that had to wait for a batch are scored when it is done", async () => {
  const loop = await loopOf({ reward: `${fixture("rewards.ts")}:value` });
  const texts = numbers(16);
  const batch = DataProto.fromDict({
    nonTensors: {
      data_source: texts.map(() => "test"),
      reward_model: texts.map(() => ({ ground_truth: "" })),
      response: texts,
    },
  });
  // What is learned from the first answer must not be what wakes the sample up.
  await loop.computeRmScore(batch);
  const scoring = loop.computeRmScore(batch);
  const single = loop.computeScore(sampleOf("7"));
  await scoring;
  expect(await single).toMatchObject({ valid: true, rewardScore: 7 });
});

test("outcomes are given to who keeps them at once, and not when somebody reads the stream", async () => {
  const reward = `${fixture("gate.ts")}:untilReleased`;
  await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, reward });
  const gate = new BroadcastChannel("rayling reward-loop release");
  onTestFinished(() => gate.close());
  let held = 0;
  const bothHeld = Promise.withResolvers<void>();
  gate.addEventListener("message", () => {
    held += 1;
    if (held === 2) bothHeld.resolve();
  });
  const kept: number[] = [];
  const all = Promise.withResolvers<void>();
  const onOutcome = async ({ index }: ScoredSample): Promise<void> => {
    if (kept.push(index) === 3) all.resolve();
  };
  const stream = loop.scoreStream(["held", "held", "free"].map(sampleOf), { onOutcome });
  expect(await stream.next()).toMatchObject({ value: { index: 2 } });
  await bothHeld.promise;
  gate.postMessage("go on");
  // Nobody reads on.
  await all.promise;
  expect(kept.toSorted((a, b) => a - b)).toEqual([0, 1, 2]);
  expect(await Array.fromAsync(stream)).toHaveLength(2);
});

test("an outcome that cannot be kept ends the stream, and is not yielded", async () => {
  const loop = await loopOf({ reward: `${fixture("rewards.ts")}:value` });
  const onOutcome = async ({ index }: ScoredSample): Promise<void> => {
    if (index === 3) throw new Error("the disk is full");
  };
  const seen: number[] = [];
  await expect(async () => {
    for await (const { index } of loop.scoreStream(numbers(9).map(sampleOf), { onOutcome })) {
      seen.push(index);
    }
  }).rejects.toThrow("the disk is full");
  expect(seen).not.toContain(3);
});

test("a sample that cannot be sent is invalid; the others are scored", async () => {
  const loop = await loopOf({ reward: `${fixture("rewards.ts")}:value` });
  const samples = numbers(3).map(sampleOf);
  samples[1] = { ...sampleOf("1"), extraInfo: { callback: () => 1 } };
  const outcomes = await Array.fromAsync(loop.scoreStream(samples));
  const byIndex = outcomes.toSorted((left, right) => left.index - right.index);
  expect(byIndex.map(({ outcome }) => outcome.valid)).toEqual([true, false, true]);
  expect(byIndex[1]?.outcome).toMatchObject({
    error: {
      code: "INVALID_SAMPLE",
      message: expect.stringMatching(/^args\[0\]\.extraInfo\.callback is a function/) as string,
    },
  });
});

test("samples that have objects in common do not write into each other's", async () => {
  const common = { groundTruth: ["a"], extraInfo: { answers: ["a"], nested: { seen: [] } } };
  const samples = numbers(8).map((text) => ({ ...sampleOf(text), ...common }));
  const writes = `${fixture("rewards.ts")}:writes`;
  const manager = { path: fixture("own-parts.ts"), name: "CountingManager" };
  await using written = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: writes,
  });
  await using counted = await RewardLoopManager.create({ workers: 1, executors: 1, manager });
  const results = await Promise.all(
    samples.flatMap((sample) => [written, counted].map((loop) => loop.computeScore(sample))),
  );
  expect(results.map((one) => (one.valid ? one.rewardExtraInfo : one.error))).toEqual(
    samples.flatMap(({ response }) => [
      { score: 2, answers: ["a", response], more: ["a", response] },
      { seen: [response] },
    ]),
  );
});

test("a misspelt option and a wrong type are refused, by name", async () => {
  const create = (options: object): Promise<unknown> => RewardLoopManager.create(options);
  await expect(create({ timeout: 5 })).rejects.toThrow("timeout");
  await expect(create({ reward: 5 })).rejects.toThrow("reward");
  await expect(create({ reward: {} })).rejects.toThrow("reward");
  await expect(create({ name: 5 })).rejects.toThrow("name");
});

describe("a slot is given to the next call when the outcome of the last is kept", () => {
  const begun = (calls: string): Promise<number> =>
    readFile(calls, "utf8").then(
      (text) => text.split("\n").length - 1,
      () => 0,
    );

  const concurrency = 8;
  let folder = "";
  let calls = "";
  let loop: RewardLoopManager;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rayling-kept-"));
    calls = join(folder, "calls");
    const reward = join(folder, "reward.mjs");
    await writeFile(
      reward,
      `import { appendFileSync } from "node:fs";
      export async function computeScore({ solutionStr }) {
        appendFileSync(${JSON.stringify(calls)}, solutionStr + "\\n");
        return Number(solutionStr);
      }`,
    );
    loop = await RewardLoopManager.create({ workers: 1, executors: 1, concurrency, reward });
  });
  afterAll(async () => {
    await loop.close();
    await rm(folder, { recursive: true });
  });

  test.each([
    ["each sample by itself", undefined],
    ["groups of a function that takes one", { size: 1 }],
  ])("%s", async (_, groups) => {
    await rm(calls, { force: true });
    const samples = numbers(100).map((text) => ({ ...sampleOf(text), context: { group: text } }));
    const seen: number[] = [];
    let kept = 0;
    const onOutcome = async (): Promise<void> => {
      // All that was begun so far is kept, or has a slot.
      seen.push((await begun(calls)) - kept);
      kept += 1;
    };
    let done = 0;
    for await (const { outcome } of loop.scoreStream(samples, { groups, onOutcome })) {
      done += Number(outcome.valid);
    }
    expect(done).toBe(100);
    expect(Math.max(...seen)).toBeLessThanOrEqual(concurrency);
    expect(Math.max(...seen)).toBeGreaterThan(1);
  });
});
