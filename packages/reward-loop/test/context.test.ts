/** Where and when a sample is scored: what a score function is told of it, and that scores which hang on it are nobody else's. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { RewardLoopManager, RewardRequest } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { closeLoops, fixture, loopOf, numbers, sampleOf, scoreTexts } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
});

const open = (name: string, options: RewardLoopOptions = {}): Promise<RewardLoopManager> =>
  RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: `${fixture("contexts.ts")}:${name}`,
    ...options,
  });

const rawPrompt = [{ role: "user", content: "how many?" }];

test("a sample's own word is told, and the lane that it was given to", async () => {
  const loop = await loopOf({ reward: `${fixture("contexts.ts")}:tellsContext` });
  const context = { uid: "g/1", group: "g", step: 3 };
  const given = await loop.computeScore({ ...sampleOf("2"), rawPrompt, context });
  expect(given).toMatchObject({
    rewardScore: 2,
    rewardExtraInfo: { rawPrompt, ...context, lane: "training" },
  });
  const bare = await loop.computeScore(sampleOf("2"), { lane: "validation" });
  const nothing = { rawPrompt: null, step: null, uid: null, group: null };
  expect(bare).toMatchObject({ rewardExtraInfo: { ...nothing, lane: "validation" } });
});

test("of a batch it is the columns' word: uid, raw_prompt, global_steps", async () => {
  const loop = await loopOf({ reward: `${fixture("contexts.ts")}:tellsContext` });
  const data = DataProto.fromDict({
    nonTensors: {
      response: ["1", "2", "3"],
      uid: ["a", "b", "a"],
      data_source: ["t", "t", "t"],
      reward_model: [{ ground_truth: "" }, { ground_truth: "" }, { ground_truth: "" }],
      raw_prompt: [rawPrompt, rawPrompt, rawPrompt],
    },
    metaInfo: { global_steps: 7 },
  });
  const { nonTensorBatch } = await loop.computeRmScore(data);
  expect(nonTensorBatch).toMatchObject({
    group: ["a", "b", "a"],
    reward_extra_uid: ["a/0", "b/0", "a/1"],
    step: [7, 7, 7],
    lane: ["training", "training", "training"],
    rawPrompt: [rawPrompt, rawPrompt, rawPrompt],
  });
});

test("of a request it is its group's", async () => {
  const loop = await loopOf({ reward: `${fixture("contexts.ts")}:tellsContext` });
  const request = new RewardRequest(loop, { uids: ["a", "a"], groupSize: 2, lane: "validation" });
  for (const row of [0, 1]) {
    request.submit(row, { ...sampleOf("1"), context: { uid: `a/${row}`, step: 4 } });
  }
  await request.take(2);
  for (const row of [0, 1]) {
    expect(request.outcomeOf(row)).toMatchObject({
      rewardExtraInfo: { uid: `a/${row}`, group: "a", step: 4, lane: "validation" },
    });
  }
});

test("verl's form names what it wants of it", async () => {
  await using loop = await open("literal");
  const sample = { ...sampleOf("5"), rawPrompt, context: { step: 9 } };
  expect(await loop.computeScore(sample)).toMatchObject({
    rewardScore: 5,
    rewardExtraInfo: { question: "how many?", step: 9 },
  });
});

test("the conversation is a copy for each call", async () => {
  await using loop = await open("writesPrompt");
  const sample = { ...sampleOf("5"), rawPrompt };
  const outcomes = await Promise.all([1, 2, 3].map(() => loop.computeScore(sample)));
  expect(outcomes.map((one) => one.valid && one.rewardScore)).toEqual([2, 2, 2]);
  expect(rawPrompt).toHaveLength(1);
});

test("what is scored once more keeps its lane", async () => {
  await using loop = await open("downOnce", { onFailure: { again: true } });
  const data = DataProto.fromDict({
    nonTensors: { response: ["1"], data_source: ["t"], reward_model: [{ ground_truth: "" }] },
  });
  const { nonTensorBatch } = await loop.computeRmScore(data, { lane: "validation" });
  expect(nonTensorBatch["lane"]).toEqual(["validation"]);
});

test.each(["cache", "joinSame"] as const)(
  "a score that hangs on the step is not taken for another step's: %s",
  async (kind) => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-context-"));
    try {
      const known = kind === "cache" ? { cache: join(folder, "scores.db") } : { joinSame: true };
      await using loop = await open("counted", { ...known, workers: 1, executors: 1 });
      const at = (response: string, step: number) =>
        loop.computeScore({ ...sampleOf(response), context: { step } });
      const steps = [1, 2, 3];
      const both = async (response: string): Promise<unknown[]> => {
        // A cache knows what is done, joining what is under way.
        if (kind === "joinSame") return Promise.all(steps.map((step) => at(response, step)));
        const outcomes: unknown[] = [];
        for (const step of steps) outcomes.push(await at(response, step));
        return outcomes;
      };
      expect(await both("by step")).toMatchObject(steps.map((step) => ({ rewardScore: step })));
      const same = await both("by nothing");
      expect(same).toMatchObject(
        steps.map(() => ({ rewardScore: 0, rewardExtraInfo: { calls: 4 } })),
      );
      expect(same[2]).toMatchObject({ cached: true });
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);

describe("a function that looks its problem up by a name among the extra info gets no other one's score", () => {
  const kinds = ["cache", "joinSame"] as const;
  // Each kind with one name in the gate: both names are left out of what makes samples the same.
  const namesOf = (names: readonly string[]): readonly string[] =>
    sized({ gate: names.slice(0, 1), full: names });
  const sampleBy = (name: string, problem: string) => ({
    ...sampleOf(`${name} 1`),
    extraInfo: { [name]: problem },
  });

  test.each(
    kinds.flatMap((kind) => namesOf(["uid", "group_uid"]).map((name) => [kind, name] as const)),
  )("%s, by the data's %s", async (kind, name) => {
    const known = kind === "cache" ? { cache: ":memory:" } : { joinSame: true };
    await using loop = await open("byName", known);
    const samples = ["p1", "p2", "p1"].map((problem) => sampleBy(name, problem));
    const outcomes: SampleOutcome[] = [];
    if (kind === "cache") {
      for (const one of samples) outcomes.push(await loop.computeScore(one));
    } else outcomes.push(...(await Promise.all(samples.map((one) => loop.computeScore(one)))));
    expect(outcomes).toMatchObject([{ rewardScore: 1 }, { rewardScore: 0 }, { rewardScore: 1 }]);
    expect(outcomes.map(({ cached }) => cached)).toEqual([undefined, undefined, true]);
  });

  const named = ["byName", "byNames"] as const;
  const requests = kinds.flatMap((kind) => named.map((name) => [kind, name] as const));
  // Each kind and each form once in the gate.
  test.each(sized({ gate: requests.filter((_, at) => at % 3 === 0), full: requests }))(
    "%s, by the name that a request adds: %s",
    async (kind, name) => {
      const known = kind === "cache" ? { cache: ":memory:" } : { joinSame: true };
      await using loop = await open(name, known);
      const scoreOf = async (group: string, text: string): Promise<SampleOutcome | undefined> => {
        const request = new RewardRequest(loop, { uids: [group] });
        request.submit(0, sampleOf(text));
        await request.take(1);
        return request.outcomeOf(0);
      };
      const both = async (text: string): Promise<(SampleOutcome | undefined)[]> => {
        const asked = [() => scoreOf("p1", text), () => scoreOf("p2", text)];
        if (kind === "joinSame") return Promise.all(asked.map((ask) => ask()));
        return [await asked[0]?.(), await asked[1]?.()];
      };
      expect(await both("group_uid 1")).toMatchObject([{ rewardScore: 1 }, { rewardScore: 0 }]);
      // Where it is not read, an answer of another group is known.
      expect((await both("other 1")).map((one) => one?.cached)).toEqual([undefined, true]);
    },
  );

  test("resume", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-context-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const options = { record: join(folder, "rewards.jsonl"), resume: true };
    for (const [problem, rewardScore] of [
      ["p1", 1],
      ["p2", 0],
    ] as const) {
      await using loop = await open("byName", options);
      expect(await loop.computeScore(sampleBy("uid", problem))).toMatchObject({ rewardScore });
    }
  });
});

test("a score is its own sample's, where a library runs its reactions in another one's context", async () => {
  const reward = `${fixture("own-then.ts")}:computeScore`;
  const texts = numbers(64);
  const outcomes = await scoreTexts({ reward, concurrency: 16 }, texts);
  expect(outcomes.map((one) => (one.valid ? String(one.rewardScore) : one.error.code))).toEqual(
    texts,
  );
});

test("a tracer that fails rejects the sample, and throws nothing", async () => {
  const loop = await loopOf({ reward: `${fixture("contexts.ts")}:tellsContext` });
  const fails = (): never => {
    throw new Error("no span");
  };
  const api = {
    trace: { getTracer: () => ({ startSpan: fails }) },
    context: { active: () => ({}), with: (_: unknown, work: () => unknown) => work() },
    propagation: { inject: () => undefined },
  };
  ray.provideTracing(api as never);
  onTestFinished(() => ray.provideTracing(undefined));
  const scoring = loop.computeScore(sampleOf("2"));
  await expect(scoring).rejects.toThrow("no span");
});
