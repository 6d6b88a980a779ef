/** Functions that score all answers to one prompt at once: whole groups, one outcome for each answer, and everything else as for one sample. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { readRewardLog, RewardLoopManager, RewardRequest } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { wholeUsageOf } from "../src/spend/usage.ts";
import { closeLoops, fixture, loopOf, sampleOf } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

/** Of `computeScores`, for tests that ask for nothing else. */
let plain: RewardLoopManager;
beforeAll(async () => {
  await ray.init({ isolation: "shared", prewarm: 0 });
  plain = await open();
});
afterAll(async () => {
  await plain.close();
  await closeLoops();
  await ray.shutdown();
});

const groups = fixture("groups.ts");
const order = `${groups}:computeScores`;

const open = (options: RewardLoopOptions = {}): Promise<RewardLoopManager> =>
  RewardLoopManager.create({ workers: 1, executors: 1, reward: order, ...options });

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "rayling-groups-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

/** Rows by their uid: `["a", "1"]` is an answer to a. */
function batchOf(rows: readonly (readonly [uid: string, text: string])[]): DataProto {
  return DataProto.fromDict({
    nonTensors: {
      uid: rows.map(([uid]) => uid),
      response: rows.map(([, text]) => text),
      data_source: rows.map(() => "test"),
      reward_model: rows.map(([, text]) => ({ ground_truth: text })),
      extra_info: rows.map(([uid]) => ({ more: uid })),
    },
  });
}

async function scoresOf(loop: RewardLoopManager, data: DataProto): Promise<unknown> {
  const { batch, nonTensorBatch } = await loop.computeRmScore(data);
  const errors = nonTensorBatch["rewardError"] as readonly ({ readonly code: string } | null)[];
  return errors.map((error, row) => error?.code ?? batch?.["rmScores"]?.data[row]);
}

describe("a batch", () => {
  test("is scored by its uids, in whatever order their rows stand", async () => {
    const loop = plain;
    const data = batchOf([
      ["a", "3"],
      ["b", "1"],
      ["a", "1"],
      ["b", "2"],
      ["a", "2"],
    ]);
    expect(await scoresOf(loop, data)).toEqual([1, 0, 0, 1, 0.5]);
    const { nonTensorBatch } = await loop.computeRmScore(data);
    expect(nonTensorBatch["size"]).toEqual([3, 2, 3, 2, 3]);
  });

  test("without uids is one group", async () => {
    const loop = plain;
    const nonTensors = {
      response: ["1", "2", "3"],
      data_source: ["t", "t", "t"],
      reward_model: [{ ground_truth: "" }, { ground_truth: "" }, { ground_truth: "" }],
    };
    expect(await scoresOf(loop, DataProto.fromDict({ nonTensors }))).toEqual([0, 0.5, 1]);
  });

  test("is post-processed by its uids, and without uids as one group", async () => {
    await using loop = await open({ reward: `${fixture("agents.ts")}:MeanFree` });
    const data = batchOf([
      ["a", "1"],
      ["b", "10"],
      ["a", "3"],
      ["b", "throw"],
    ]);
    expect(await scoresOf(loop, data)).toEqual([-1, 0, 1, "SCORE_THREW"]);
    const { uid: _, ...nonTensors } = batchOf([
      ["a", "1"],
      ["b", "2"],
      ["c", "3"],
    ]).nonTensorBatch;
    expect(await scoresOf(loop, DataProto.fromDict({ nonTensors }))).toEqual([-1, 0, 1]);
  });

  test("has one outcome for each row: what fails in a group fails there alone", async () => {
    const loop = plain;
    const data = batchOf([
      ["null", "1"],
      ["null", "null"],
      ["nan", "NaN"],
      ["nan", "5"],
      ["throw", "throw"],
      ["throw", "5"],
      ["few", "few"],
      ["few", "5"],
      ["good", "1"],
      ["good", "2"],
    ]);
    expect(await scoresOf(loop, data)).toEqual([
      0,
      "CANNOT_TELL",
      "INVALID_SCORE",
      0,
      "SCORE_THREW",
      "SCORE_THREW",
      "INVALID_SCORE",
      "INVALID_SCORE",
      0,
      1,
    ]);
  });

  test("a sample that cannot be read is not among its group, and costs nobody else", async () => {
    const loop = plain;
    const nonTensors = {
      uid: ["a", "a", "a"],
      response: ["1", "9", "2"],
      data_source: ["t", 7, "t"],
      reward_model: [{ ground_truth: "" }, { ground_truth: "" }, { ground_truth: "" }],
    };
    const data = DataProto.fromDict({ nonTensors });
    expect(await scoresOf(loop, data)).toEqual([0, "INVALID_SAMPLE", 1]);
  });
});

describe("verl's batch functions, which take lists", () => {
  test("are called with those of a group, and with reward_kwargs", async () => {
    const reward = { path: groups, name: "compute_score", rewardKwargs: { scale: 3 } };
    await using loop = await open({ reward });
    const data = batchOf([
      ["a", "x"],
      ["b", "y"],
      ["a", "z"],
    ]);
    const { batch, nonTensorBatch } = await loop.computeRmScore(data);
    expect([...(batch?.["rmScores"]?.data ?? [])]).toEqual([3, 3, 3]);
    expect(nonTensorBatch["more"]).toEqual(["a", "b", "a"]);
    expect(nonTensorBatch["source"]).toEqual(["test", "test", "test"]);
  });

  test("may be methods, and take one object of lists", async () => {
    await using loop = await open({ reward: `${groups}:Lists` });
    const data = batchOf([
      ["a", "x"],
      ["a", "yy"],
    ]);
    const { nonTensorBatch, batch } = await loop.computeRmScore(data);
    expect([...(batch?.["rmScores"]?.data ?? [])]).toEqual([1, 2]);
    expect(nonTensorBatch["calls"]).toEqual([1, 1]);
  });

  // All others of this file stand under naive, and one below under dapo.
  const managers = sized({ gate: ["gdpo"], full: ["naive", "dapo", "gdpo"] });
  test.each(managers)("stand under the manager %s", async (manager) => {
    await using loop = await open({ reward: `${groups}:compute_score`, manager });
    expect(await scoresOf(loop, batchOf([["a", "x"]]))).toEqual([1]);
  });
});

test("dapo's penalty is of each answer, where its group is scored at once", async () => {
  const managerOptions = { maxRespLen: 4, overlongBuffer: { len: 2, penaltyFactor: 1 } };
  await using loop = await open({ manager: "dapo", managerOptions });
  const request = new RewardRequest(loop, { uids: ["a", "a"], groupSize: 2 });
  request.submit(0, { ...sampleOf("1"), responseLength: 2 });
  request.submit(1, { ...sampleOf("2"), responseLength: 3 });
  await request.take(2);
  expect([0, 1].map((row) => request.outcomeOf(row))).toMatchObject([
    { rewardScore: 0 },
    { rewardScore: 0.5 },
  ]);
});

describe("a request whose rows come one by one", () => {
  test("begins a group with the last of them, each once", async () => {
    const calls = join(await folder(), "calls");
    await using loop = await open({
      reward: { path: groups, name: "computeScores", rewardKwargs: { calls } },
    });
    const uids = ["a", "b", "a", "b"];
    const request = new RewardRequest(loop, { uids, groupSize: 2 });
    request.submit(3, sampleOf("4"));
    request.submit(0, sampleOf("1"));
    request.submit(1, sampleOf("2"));
    expect(await request.take(2)).toEqual([1, 3]);
    expect(request.outcomeOf(0)).toBeUndefined();
    request.submit(2, sampleOf("3"));
    expect(await request.take(2)).toEqual([0, 2]);
    expect(uids.map((_, row) => request.outcomeOf(row))).toMatchObject(
      [0, 0, 1, 1].map((rewardScore) => ({ rewardScore })),
    );
    // By their rows, whichever came first.
    expect(await readFile(calls, "utf8")).toBe("2 4\n1 3\n");
  });

  test.each([[[0, 1, 2]], [[2, 1, 0]], [[1, 2, 0]]])(
    "waits for no row whose outcome is known: %j",
    async (rows) => {
      const loop = plain;
      const request = new RewardRequest(loop, { uids: ["a", "a", "a"], groupSize: 3 });
      const known = { valid: true, rewardScore: 9, rewardExtraInfo: {} } as const;
      for (const row of rows) {
        if (row === 1) {
          request.know(1, { ...known, attempts: 0, latencyMs: 0, waitedMs: 0 });
        } else request.submit(row, sampleOf(String(row)));
      }
      expect(await request.take(3)).toEqual([0, 1, 2]);
      expect([0, 1, 2].map((row) => request.outcomeOf(row))).toMatchObject([
        { rewardScore: 0, rewardExtraInfo: { size: 2 } },
        { rewardScore: 9 },
        { rewardScore: 1, rewardExtraInfo: { size: 2 } },
      ]);
    },
  );
});

test("what comes alone is a group of one", async () => {
  const loop = plain;
  expect(await loop.computeScore(sampleOf("5"))).toMatchObject({
    rewardScore: 0,
    rewardExtraInfo: { size: 1 },
  });
  const streamed: SampleOutcome[] = [];
  for await (const { index, outcome } of loop.scoreStream(["1", "null", "2"].map(sampleOf))) {
    streamed[index] = outcome;
  }
  expect(streamed).toMatchObject([
    { valid: true, rewardExtraInfo: { size: 1 } },
    { valid: false, error: { code: "CANNOT_TELL" } },
    { valid: true, rewardExtraInfo: { size: 1 } },
  ]);
});

describe("a group is what a sample is to everything else", () => {
  test.each(sized({ gate: ["block", "exit"], full: ["block", "wait", "exit"] }))(
    "%s: it has a deadline, and others go on",
    async (word) => {
      const loop = await loopOf({ reward: order, executors: 2, timeoutMs: 1_000 });
      const data = batchOf([
        ["bad", word],
        ["bad", "1"],
        ["good", "1"],
        ["good", "2"],
      ]);
      const code = word === "exit" ? "EXECUTOR_DIED" : "SCORE_TIMEOUT";
      expect(await scoresOf(loop, data)).toEqual([code, code, 0, 1]);
    },
  );

  test("it is tried again as a whole", async () => {
    const retry = { attempts: 2, baseMs: 0 };
    await using loop = await open({ reward: `${groups}:DownOnce`, retry });
    const data = batchOf([
      ["a", "x"],
      ["a", "y"],
    ]);
    expect(await scoresOf(loop, data)).toEqual([1, 1]);
  });

  test("of which one fails it is tried again as a whole, and is not kept with a failure", async () => {
    const reward = `${groups}:DownForOne`;
    const retry = { attempts: 2, baseMs: 0 };
    const spend = { prices: { perCall: 1 } };
    await using loop = await open({ reward, retry, spend, cache: ":memory:" });
    const data = batchOf([
      ["a", "1"],
      ["a", "once"],
      ["b", "1"],
      ["b", "always"],
    ]);
    expect(await scoresOf(loop, data)).toEqual([2, 2, 2, "SCORE_THREW"]);
    expect(loop.spent).toBe(4);
    // The scores of the second call are kept, and b is asked anew.
    expect(await scoresOf(loop, data)).toEqual([2, 2, 4, "SCORE_THREW"]);
    expect(loop.spent).toBe(6);
    const [one, ...others] = await loop.round(2).scoreGroup(["2", "always"].map(sampleOf));
    expect(one).toMatchObject({ valid: true, rewardScore: 2, attempts: 2 });
    expect(others).toMatchObject([{ valid: false, error: { status: 503 }, attempts: 2 }]);
    // Both calls have used it, and each counts once.
    expect(one && wholeUsageOf(one)?.totalTokens).toBe(2 * 11);
  });

  test("of which one fails it keeps the scores of others where its time ends", async () => {
    const reward = `${groups}:DownForOne`;
    const retry = { attempts: 2, baseMs: 0 };
    await using loop = await open({ reward, retry, totalTimeoutMs: 5000 });
    const [one, other] = await loop.round(2).scoreGroup(["3", "later"].map(sampleOf));
    expect(one).toMatchObject({ valid: true, rewardScore: 1, attempts: 1 });
    expect(other).toMatchObject({ valid: false, error: { status: 503 } });
    expect(one && wholeUsageOf(one)?.totalTokens).toBe(11);
  });

  test("and once more when all others are done", async () => {
    const reward = `${groups}:DownOnce`;
    await using loop = await open({ reward, onFailure: { again: true } });
    const data = batchOf([
      ["a", "x"],
      ["a", "y"],
      ["b", "x"],
    ]);
    expect(await scoresOf(loop, data)).toEqual([1, 1, 1]);
  });

  test("it is known from before as a whole", async () => {
    const place = await folder();
    const calls = join(place, "calls");
    const reward = { path: groups, name: "computeScores", rewardKwargs: { calls } };
    const cache = join(place, "scores.db");
    const rows = [
      ["a", "1"],
      ["a", "null"],
      ["b", "1"],
      ["b", "3"],
    ] as const;
    for (const round of [1, 2]) {
      await using loop = await open({ reward, cache });
      // Another group with one of its answers is another one.
      const data = batchOf(round === 1 ? rows : [...rows, ["c", "1"], ["c", "2"]]);
      const scores = [0, "CANNOT_TELL", 0, 1];
      expect(await scoresOf(loop, data)).toEqual(round === 1 ? scores : [...scores, 0, 1]);
    }
    expect((await readFile(calls, "utf8")).split("\n").toSorted()).toEqual([
      "",
      "1 2",
      "1 3",
      "1 null",
    ]);
  });

  test("fields of a row's owner are no part of it, whatever they are called", async () => {
    const place = await folder();
    await using loop = await open({ cache: join(place, "scores.db"), record: join(place, "log") });
    const owned = { members: ["ann", "bob"], onDone: () => 1 };
    const rowOf = (text: string, group: string): RewardSample => {
      return { ...sampleOf(text), ...owned, context: { group } };
    };
    const rows = [rowOf("1", "a"), rowOf("2", "a"), rowOf("7", "b"), rowOf("5", "b")];
    const scores: number[] = [];
    for await (const { index, sample, outcome } of loop.scoreStream(rows, {
      groups: { size: 2 },
    })) {
      expect(sample).toBe(rows[index]);
      expect(outcome.cached).toBeUndefined();
      scores[index] = outcome.valid ? outcome.rewardScore : Number.NaN;
    }
    expect(scores).toEqual([0, 1, 1, 0]);
  });

  test("each of its answers has a line in the reward log, with its share of the cost, and is replayed from it", async () => {
    const record = join(await folder(), "rewards.jsonl");
    const spend = { prices: { perMillionInputTokens: 1e6 } };
    const data = batchOf([
      ["a", "1"],
      ["b", "null"],
      ["a", "2"],
    ]);
    await (async () => {
      await using loop = await open({ record, spend });
      expect(await scoresOf(loop, data)).toEqual([0, "CANNOT_TELL", 1]);
      expect(loop.spent).toBe(10);
    })();
    const lines = [];
    for await (const line of readRewardLog(record)) lines.push(line);
    const inOrder = lines.toSorted((a, b) => a.index - b.index);
    expect(inOrder).toMatchObject([
      { group: "a", score: 0, cost: 5 },
      { group: "a", score: 1, cost: 5 },
      { group: "b", valid: false, cost: 0 },
    ]);
    await using replayed = await RewardLoopManager.create({ replay: record });
    expect(await scoresOf(replayed, data)).toEqual([0, "CANNOT_TELL", 1]);
    await using again = await open({ replay: { log: record, missing: "ask" } });
    const more = batchOf([
      ["a", "1"],
      ["a", "2"],
      ["c", "1"],
      ["c", "7"],
    ]);
    expect(await scoresOf(again, more)).toEqual([0, 1, 0, 1]);
  });
});

describe("among several functions", () => {
  test("others score its answers one by one", async () => {
    const rewards = { order: { reward: order }, constant: { reward: `${groups}:half` } };
    await using loop = await open({ reward: undefined, rewards });
    const data = batchOf([
      ["a", "1"],
      ["a", "null"],
      ["a", "3"],
    ]);
    const { nonTensorBatch } = await loop.computeRmScore(data);
    expect(nonTensorBatch).toMatchObject({
      order: [0, null, 0.5],
      score: [0.5, null, 1],
      constant: [0.5, null, 0.5],
    });
  });

  test("what is scored once more keeps a score of the first time, and costs both", async () => {
    const rewards = {
      order: { reward: order },
      judge: { reward: `${groups}:downInTurn`, spend: { prices: { perCall: 1 } } },
    };
    await using loop = await open({ reward: undefined, rewards, onFailure: { again: true } });
    const request = new RewardRequest(loop, { uids: ["g", "g"], groupSize: 2 });
    for (const [row, text] of ["a", "b"].entries()) request.submit(row, sampleOf(text));
    await request.take(2);
    const outcomes = [0, 1].map((row) => request.outcomeOf(row));
    // The first score of a, and the second one of b; the function of groups was asked twice.
    expect(outcomes).toMatchObject([
      { valid: true, rewardExtraInfo: { judge: 1 }, attempts: 4, cost: 2 },
      { valid: true, rewardExtraInfo: { judge: 2 }, attempts: 4, cost: 2 },
    ]);
    const usage = outcomes.map((one) => one && wholeUsageOf(one)?.totalTokens);
    expect(usage).toEqual([2 * 11, undefined]);
    expect(loop.spent).toBe(4);
  });

  test("a later stage of a cascade is asked for those together that are left", async () => {
    const cascade = {
      order: { reward: order },
      rest: { reward: `${groups}:Lists` },
    };
    await using loop = await open({ reward: undefined, cascade });
    const data = batchOf([
      ["a", "null"],
      ["a", "1"],
      ["a", "null"],
    ]);
    const { batch, nonTensorBatch } = await loop.computeRmScore(data);
    expect([...(batch?.["rmScores"]?.data ?? [])]).toEqual([4, 0, 4]);
    expect(nonTensorBatch["answeredBy"]).toEqual(["rest", "order", "rest"]);
    expect(nonTensorBatch["calls"]).toEqual([1, null, 1]);
  });
});

describe("a judge behind a cap", () => {
  const prices = { perCall: 1 };
  const { half, lists } = { half: `${groups}:half`, lists: `${groups}:Lists` };
  /** Asked one after the other, so that it is known which of them the cap lets through. */
  const capped = (reward: string, cap: number, cheaper: string): Promise<RewardLoopManager> =>
    open({ reward, concurrency: 1, spend: { prices, cap, whenReached: { reward: cheaper } } });
  const data = batchOf([
    ["a", "1"],
    ["b", "5"],
    ["a", "22"],
    ["b", "666"],
    ["b", "7"],
  ]);
  const answersOf = async (loop: RewardLoopManager): Promise<unknown[]> => {
    const { batch, nonTensorBatch } = await loop.computeRmScore(data);
    const { answeredBy = [] } = nonTensorBatch;
    return answeredBy.map((name, row) => [name, batch?.["rmScores"]?.data[row]]);
  };

  test("is asked for the groups that are left, each as a whole; one call pays for a group", async () => {
    const record = join(await folder(), "rewards.jsonl");
    const spend = { prices, cap: 2, whenReached: { reward: lists } };
    await using loop = await open({ concurrency: 1, spend, record });
    // What it cannot tell stays its own.
    const group = await loop.round(2).scoreGroup(["1", "null"].map(sampleOf));
    expect(group).toMatchObject([{ answeredBy: "main" }, { error: { code: "CANNOT_TELL" } }]);
    expect(await answersOf(loop)).toEqual([
      ["main", 0],
      ["cheaper", 1],
      ["main", 1],
      ["cheaper", 3],
      ["cheaper", 1],
    ]);
    expect([loop.spent, loop.answeredBy]).toEqual([2, { main: 3, cheaper: 3 }]);
    const lines = await Array.fromAsync(readRewardLog(record));
    const inOrder = lines.slice(2).toSorted((a, b) => a.index - b.index);
    const byJudge = inOrder.toSorted((a, b) => Number(a.cost) - Number(b.cost));
    expect(byJudge.map(({ cost, answeredBy }) => [answeredBy, cost])).toEqual([
      ["cheaper", 0],
      ["cheaper", 0],
      ["cheaper", 0],
      ["main", 0.5],
      ["main", 0.5],
    ]);
  });

  test("scores together what is left of a group where the first takes one at a time", async () => {
    await using loop = await capped(half, 3, lists);
    expect(loop.traits.scoresGroups).toBe(true);
    const answers = await answersOf(loop);
    expect(answers.filter((one) => Array.isArray(one) && one[0] === "main")).toHaveLength(3);
    const { nonTensorBatch } = await loop.computeRmScore(data);
    // All is spent: each group is one call.
    expect(nonTensorBatch["answeredBy"]).toEqual(Array(5).fill("cheaper"));
    const calls = (nonTensorBatch["calls"] ?? []).map(Number);
    expect(calls[0]).toBe(calls[2]);
    expect([calls[3], calls[4]]).toEqual([calls[1], calls[1]]);
    expect(calls[0]).not.toBe(calls[1]);
  });

  test("takes one at a time where the first scores groups", async () => {
    await using loop = await capped(order, 1, half);
    expect(await answersOf(loop)).toEqual([
      ["main", 0],
      ["cheaper", 0.5],
      ["main", 1],
      ["cheaper", 0.5],
      ["cheaper", 0.5],
    ]);
  });

  test("is asked with what an attempt of the first had cost", async () => {
    const spend = { prices, cap: 1, whenReached: { reward: lists } };
    const retry = { attempts: 2, baseMs: 0 };
    await using loop = await open({ reward: `${groups}:AlwaysDown`, spend, retry });
    const outcomes = await loop.round(2).scoreGroup(["x", "yy"].map(sampleOf));
    expect(outcomes).toMatchObject([
      { rewardScore: 1, answeredBy: "cheaper", attempts: 2, cost: 0.5 },
      { rewardScore: 2, answeredBy: "cheaper", attempts: 2, cost: 0.5 },
    ]);
    expect(loop.spent).toBe(1);
  });
});
