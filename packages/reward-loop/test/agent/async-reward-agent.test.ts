/** The asynchronous reward agent: traces of verl's recipe, the defects that are repaired, and what a user may do wrong. */

import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { DataProto, tensor, toNested } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { AsyncRewardAgent } from "@rayling/reward-loop";
import type {
  RewardChunk,
  RewardLoopOptions,
  RewardRequestOptions,
  SampleOutcome,
} from "@rayling/reward-loop";
import { readRewardConfig, rewardLoopOptionsOf } from "@rayling/reward-loop/config";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { goldenFile } from "../../../../test/fixtures/golden.ts";
import { fixture } from "../loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const agents = fixture("agents.ts");

interface Trace {
  readonly name: string;
  readonly scores: readonly unknown[];
  readonly max_concurrency: number;
  readonly group_size: number;
  readonly chunks: readonly number[];
  readonly valid_lengths: readonly number[];
  readonly max_seq_len: number;
  readonly completion_times: readonly number[];
  readonly result_of_real_code: readonly {
    readonly data_idxs?: readonly number[];
    readonly reward_tensor?: readonly (readonly number[])[];
    readonly extra?: Readonly<Record<string, readonly unknown[]>>;
  }[];
}

const { cases: traces } = goldenFile("async-reward-agent.json") as { cases: readonly Trace[] };

/** Responses of those lengths, in groups of neighbours. */
function batchOf(lengths: readonly number[], width: number, groupSize: number): DataProto {
  const rows = lengths.map((_, row) => row);
  const mask = lengths.map((length) =>
    Array.from({ length: width }, (__, at) => (at < length ? 1 : 0)),
  );
  return DataProto.fromDict({
    tensors: { responses: tensor(mask, "int32"), attention_mask: tensor(mask, "int32") },
    nonTensors: {
      uid: rows.map((row) => `group ${Math.floor(row / groupSize)}`),
      data_source: rows.map(() => "test"),
      reward_model: rows.map(() => ({ ground_truth: "" })),
      extra_info: rows.map((row) => ({ row })),
      response: rows.map((row) => `response ${row}`),
    },
  });
}

function textsOf(texts: readonly string[], groupSize: number): DataProto {
  return DataProto.fromDict({
    nonTensors: {
      uid: texts.map((_, row) => `g${Math.floor(row / groupSize)}`),
      response: texts,
      data_source: texts.map(() => "test"),
      reward_model: texts.map(() => ({ ground_truth: "" })),
    },
  });
}

/** Where each row's score belongs: at its own last valid token, which verl's recipe gets wrong. */
function ownRows(trace: Trace, indices: readonly number[], scores: readonly number[]): number[][] {
  return indices.map((row, at) =>
    Array.from({ length: trace.max_seq_len }, (_, column) =>
      column === (trace.valid_lengths[row] ?? 0) - 1 ? (scores[at] ?? 0) : 0,
    ),
  );
}

function rowsOf({ rewards }: RewardChunk): unknown {
  return toNested(rewards.batch?.["rmScores"] as Tensor);
}

describe("verl's traces", () => {
  test.each(traces.filter(({ name }) => !/IndexError|post_process/.test(name)))(
    "$name",
    async (trace) => {
      const { scores, max_concurrency: concurrency, group_size: groupSize } = trace;
      const turns = new SharedArrayBuffer(4 * scores.length);
      const view = new Int32Array(turns);
      const reward = { path: agents, name: "inTurn", rewardKwargs: { turns, scores } };
      await using agent = await AsyncRewardAgent.create({
        workers: 1,
        executors: 1,
        concurrency,
        reward,
      });
      const { valid_lengths: lengths, max_seq_len: width } = trace;
      expect(agent.computeRewardPipeline(batchOf(lengths, width, groupSize), groupSize)).toBe(
        scores.length,
      );
      const chunks = trace.chunks.map((size) => agent.get(size));
      const inOrder = trace.completion_times
        .map((at, row) => ({ at, row }))
        .toSorted((a, b) => a.at - b.at || a.row - b.row);
      for (const { row } of inOrder) {
        Atomics.store(view, row, 1);
        Atomics.notify(view, row);
        const answered = Atomics.waitAsync(view, row, 1);
        if (answered.async) await answered.value;
      }
      for (const [at, wanted] of trace.result_of_real_code.entries()) {
        const chunk = (await chunks[at]) as RewardChunk;
        expect(chunk.indices).toEqual(wanted.data_idxs);
        const rowScores = chunk.indices.map((row) => {
          const score = scores[row];
          return typeof score === "number" ? score : (score as { score: number }).score;
        });
        expect(rowsOf(chunk)).toEqual(ownRows(trace, chunk.indices, rowScores));
        for (const [key, values] of Object.entries(wanted.extra ?? {})) {
          expect(chunk.rewards.nonTensorBatch[key]).toEqual(values);
        }
      }
    },
  );

  test("a group's scores are put right by the user's class", async () => {
    const trace = traces.find(({ name }) => name.startsWith("post_process")) as Trace;
    await using agent = await AsyncRewardAgent.create({
      workers: 1,
      executors: 1,
      reward: `${agents}:MeanFree`,
    });
    agent.computeRewardPipeline(textsOf(trace.scores.map(String), 3), 3);
    const chunk = await agent.get(6);
    const [result] = trace.result_of_real_code;
    expect(rowsOf(chunk)).toEqual(result?.reward_tensor?.map((row) => [row[1]]));
  });

  test("scalars among dicts: rows without a key have null, where the recipe fails", async () => {
    const trace = traces.find(({ name }) => name.startsWith("mixed")) as Trace;
    const turns = new SharedArrayBuffer(16);
    new Int32Array(turns).fill(1);
    const reward = { path: agents, name: "inTurn", rewardKwargs: { turns, scores: trace.scores } };
    await using agent = await AsyncRewardAgent.create({ workers: 1, executors: 1, reward });
    agent.computeRewardPipeline(batchOf(trace.valid_lengths, 4, 2), 2);
    const { rewards } = await agent.get(4);
    expect(rewards.nonTensorBatch["acc"]).toEqual([1, 0, 1, 0]);
    expect(rewards.nonTensorBatch["score"]).toEqual([1, null, 1, 0.5]);
  });
});

describe("chunks", () => {
  const options: RewardLoopOptions = {
    workers: 1,
    executors: 1,
    reward: `${fixture("rewards.ts")}:slowValue`,
  };

  test("never mix batches; the next batch does not wait for the one before to be done", async () => {
    const turns = new SharedArrayBuffer(4 * 8);
    const view = new Int32Array(turns);
    const reward = { path: agents, name: "inTurn", rewardKwargs: { turns, scores: [0, 1, 2, 3] } };
    await using agent = await AsyncRewardAgent.create({
      workers: 1,
      executors: 1,
      concurrency: 8,
      reward,
    });
    const batch = batchOf([1, 1, 1, 1], 1, 2);
    agent.computeRewardPipeline(batch.slice(0, 2), 2);
    agent.computeRewardPipeline(batch.slice(2, 4), 2);
    const [first, second] = [agent.get(2), agent.get(2)];
    for (const row of [2, 3]) {
      Atomics.store(view, row, 1);
      Atomics.notify(view, row);
    }
    expect(rowsOf(await second)).toEqual([[2], [3]]);
    for (const row of [0, 1]) {
      Atomics.store(view, row, 1);
      Atomics.notify(view, row);
    }
    expect(await first).toMatchObject({ indices: [0, 1] });
    expect(rowsOf(await first)).toEqual([[0], [1]]);
  });

  test("a hook makes of them what it likes, and its error is the caller's", async () => {
    await using agent = await AsyncRewardAgent.create(options);
    agent.computeRewardPipeline(textsOf(["1", "2", "3", "4"], 2), 2);
    expect(await agent.get(2, ({ indices }) => indices.length)).toBe(2);
    const failing = agent.get(2, () => Promise.reject(new Error("not now")));
    await expect(failing).rejects.toThrow("not now");
  });

  test("what cannot be given is refused at once", async () => {
    await using agent = await AsyncRewardAgent.create(options);
    await expect(agent.get(1)).rejects.toThrow("nothing was asked for");
    agent.computeRewardPipeline(textsOf(["1", "2", "3", "4", "5", "6"], 3), 3);
    await expect(agent.get(4)).rejects.toMatchObject({
      code: "REWARD_CHUNK",
      message: expect.stringContaining("4 rows are no whole groups of 3") as string,
    });
    await expect(agent.get(9)).rejects.toThrow("the batch has 6 rows left, not 9");
    await expect(agent.get(0)).rejects.toThrow("no whole groups");
    expect((await agent.get(3)).indices).toHaveLength(3);
    await expect(agent.get(6)).rejects.toThrow("3 rows left");
    expect(() => agent.computeRewardPipeline(textsOf(["1", "2", "3"], 2), 2)).toThrow(
      '"uid" "g1" has 1 rows, not 2',
    );
    expect(() => agent.computeRewardPipeline(textsOf(["1"], 1), 0)).toThrow("at least 1 row");
    expect(agent.computeRewardPipeline(textsOf([], 1), 1)).toBe(0);
  });

  test("who waits when it is closed hears so, and so does who asks then", async () => {
    const agent = await AsyncRewardAgent.create({
      workers: 1,
      executors: 1,
      reward: `${fixture("troublemaker.ts")}:later`,
    });
    agent.computeRewardPipeline(textsOf(["wait forever", "1"], 1));
    const waiting = expect(agent.get(2)).rejects.toThrow("closed");
    await agent.close();
    await waiting;
    await expect(agent.get(1)).rejects.toThrow("nothing was asked for");
  });
});

describe("groups", () => {
  test("whose sample is invalid have the others put right without it; a group that cannot be is invalid", async () => {
    await using agent = await AsyncRewardAgent.create({
      workers: 1,
      executors: 1,
      timeoutMs: 2000,
      reward: `${agents}:BadGroups`,
    });
    const texts = [
      "5",
      "throw",
      "7",
      "1",
      "1",
      "1",
      "2",
      "2",
      "2",
      "3",
      "3",
      "3",
      "throw",
      "throw",
      "throw",
    ];
    const rewards = await agent.computeReward(textsOf(texts, 3), { groupSize: 3 });
    const valid = Array.from(rewards.batch?.["rewardValid"]?.data ?? []);
    expect(valid).toEqual([1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(Array.from(rewards.batch?.["rmScores"]?.data ?? []).slice(0, 3)).toEqual([-1, 0, 1]);
    const codes = (rewards.nonTensorBatch["rewardError"] as ({ code: string } | null)[]).map(
      (one) => one?.code ?? null,
    );
    const [invalid, threw, late] = ["INVALID_SCORE", "SCORE_THREW", "SCORE_TIMEOUT"];
    expect(codes.slice(0, 9)).toEqual([
      null,
      threw,
      null,
      invalid,
      invalid,
      invalid,
      threw,
      threw,
      threw,
    ]);
    expect(codes.slice(9)).toEqual([late, late, late, threw, threw, threw]);
  });

  test("see what failed as null in its place, and may give it a score, or take one away", async () => {
    const options = { workers: 1, executors: 1, reward: `${agents}:FillsByMean` };
    await using agent = await AsyncRewardAgent.create(options);
    // Three in four fail; none is invalid when its group is put right.
    const texts = ["1", "throw", "-2", "throw", "throw", "throw", "throw", "throw"];
    const rewards = await agent.computeReward(textsOf(texts, 4), { groupSize: 4 });
    const { rmScores, rewardValid } = rewards.batch ?? {};
    expect(Array.from(rewardValid?.data ?? [])).toEqual([1, 1, 1, 1, 0, 0, 0, 0]);
    expect(Array.from(rmScores?.data ?? []).slice(0, 4)).toEqual([1, -0.5, -0.5, -0.5]);
    expect(rewards.nonTensorBatch).toMatchObject({
      fallback: [null, true, null, true, null, null, null, null],
      error: [null, "SCORE_THREW", null, "SCORE_THREW", null, null, null, null],
    });
    await using dropping = await AsyncRewardAgent.create({
      ...options,
      reward: `${agents}:DropsBest`,
    });
    const dropped = await dropping.computeReward(textsOf(["1", "10", "throw"], 3), {
      groupSize: 3,
    });
    expect(Array.from(dropped.batch?.["rewardValid"]?.data ?? [])).toEqual([1, 0, 0]);
    expect(dropped.nonTensorBatch["rewardError"]).toMatchObject([
      null,
      { code: "INVALID_SCORE", message: expect.stringContaining("taken its score away") as string },
      { code: "SCORE_THREW" },
    ]);
  });

  test("may have the mean of their valid scores in place of what failed, without code", async () => {
    const reward = `${agents}:lengths`;
    const onFailure = { fallback: "groupMean", failAbove: 0.5 } as const;
    const lost = { dataSource: 7 } as unknown as { dataSource: string };
    await using agent = await AsyncRewardAgent.create({
      workers: 1,
      executors: 1,
      reward,
      onFailure,
    });
    const request = agent.request({ uids: ["a", "a", "a", "b", "b", "b"], groupSize: 3 });
    for (const [row, response] of ["1", "", "333", "", "", "22"].entries()) {
      const sample = { dataSource: "test", response, groundTruth: "" };
      request.submit(row, response === "" ? { ...sample, ...lost } : sample);
    }
    await request.take(6);
    const scored = [0, 1, 2, 3, 4, 5].map((row) => request.outcomeOf(row));
    expect(scored.map((one) => one?.valid === true && one.rewardScore)).toEqual([1, 2, 3, 2, 2, 2]);
    expect(scored[1]).toMatchObject({
      rewardExtraInfo: { fallback: true, error: "INVALID_SAMPLE" },
    });
    // Nothing is made of nothing.
    const hopeless = agent.request({ uids: ["c", "c"], groupSize: 2 });
    for (const row of [0, 1]) {
      hopeless.submit(row, { response: "x", groundTruth: "", ...lost });
    }
    await expect(hopeless.take(2)).rejects.toMatchObject({ code: "REWARD_FAILURES", invalid: 2 });
  });

  test("have it by the configuration, too, and no other word", () => {
    const key = "reward.on_failure.fallback";
    const optionsOf = (value: string): RewardLoopOptions =>
      rewardLoopOptionsOf(readRewardConfig({}, [`${key}=${value}`]));
    expect(optionsOf("group_mean").onFailure).toEqual({ fallback: "groupMean" });
    expect(optionsOf("-1").onFailure).toEqual({ fallback: -1 });
    expect(() => optionsOf("mean")).toThrow(key);
    const options = { onFailure: { fallback: "mean" as "groupMean" } };
    return expect(AsyncRewardAgent.create(options)).rejects.toMatchObject({
      code: "REWARD_LOOP_OPTION",
      option: "onFailure.fallback",
      expected: 'a number or "groupMean"',
    });
  });

  test("of a batch are its uids: what failed has their mean, and stays invalid without them", async () => {
    const reward = `${agents}:lengths`;
    const options = {
      workers: 1,
      executors: 1,
      reward,
      onFailure: { fallback: "groupMean" },
    } as const;
    await using agent = await AsyncRewardAgent.create(options);
    const texts = textsOf(["1", "22", "333", "4444"], 2).toData();
    const sources = { data_source: [7, "test", "test", "test"] };
    const { uid: _uid, ...without } = texts.nonTensorBatch;
    const scoresOf = async (nonTensors: Record<string, unknown[]>): Promise<unknown> => {
      const { batch } = await agent.loop.computeRmScore(DataProto.fromDict({ nonTensors }));
      return [batch?.["rmScores"], batch?.["rewardValid"]].map((one) => [...(one?.data ?? [])]);
    };
    expect(await scoresOf({ ...texts.nonTensorBatch, ...sources })).toEqual([
      [2, 2, 3, 4],
      [1, 1, 1, 1],
    ]);
    expect(await scoresOf({ ...without, ...sources })).toEqual([
      [0, 2, 3, 4],
      [0, 1, 1, 1],
    ]);
  });

  test("that are put right count as they are then, where too many failures end a request", async () => {
    const reward = `${agents}:FillsByMean`;
    const onFailure = { failAbove: 0.5 };
    const options = { workers: 1, executors: 1, reward, onFailure };
    await using agent = await AsyncRewardAgent.create(options);
    const healed = await agent.computeReward(textsOf(["throw", "throw", "3"], 3), { groupSize: 3 });
    expect(Array.from(healed.batch?.["rmScores"]?.data ?? [])).toEqual([3, 3, 3]);
    const hopeless = textsOf(["throw", "throw", "throw", "1"], 1);
    await expect(agent.computeReward(hopeless)).rejects.toMatchObject({
      code: "REWARD_FAILURES",
      invalid: 3,
    });
  });

  test("a manager class says where the scores of a chunk and of a batch stand", async () => {
    await using agent = await AsyncRewardAgent.create({
      workers: 1,
      executors: 1,
      reward: `${agents}:lengths`,
      manager: { path: fixture("own-parts.ts"), name: "SpreadManager" },
      managerOptions: { penalty: 4 },
    });
    const batch = batchOf([2, 4, 1, 3], 4, 2);
    const spread = [
      [3, 3, 0, 0],
      [1.5, 1.5, 1.5, 1.5],
      [6, 0, 0, 0],
      [2, 2, 2, 0],
    ];
    expect(
      rowsOf({ indices: [], rewards: await agent.computeReward(batch, { groupSize: 2 }) }),
    ).toEqual(spread);
    agent.computeRewardPipeline(batch, 2);
    const chunk = await agent.get(2);
    expect(rowsOf(chunk)).toEqual(chunk.indices.map((row) => spread[row]));
  });

  test("the user's log hears of a request once, when all of it is done", async () => {
    const path = join(tmpdir(), `rayling-agent-log-${process.pid}.jsonl`);
    onTestFinished(() => rm(path));
    await using agent = await AsyncRewardAgent.create({
      workers: 2,
      executors: 1,
      reward: `${agents}:Logging`,
    });
    agent.computeRewardPipeline(textsOf(["1", "throw", "3", "4"], 2), 2);
    await agent.get(4);
    await expect
      .poll(() => readFile(path, "utf8").catch(() => ""), { timeout: 60_000 })
      .toContain("\n");
    const [entry = {}, ...more] = (await readFile(path, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown[]>);
    expect(more).toEqual([]);
    expect(entry["results"]?.toSorted()).toEqual([1, 3, 4, null]);
    expect(entry["responses"]?.toSorted()).toEqual(["1", "3", "4", null]);
    expect(entry["groupUids"]?.toSorted()).toEqual(["g0", "g0", "g1", "g1"]);
    expect(entry["queries"]).toContain("query g1");
    expect(entry["timestamps"]).toHaveLength(4);
    expect(entry["latenciesMs"]?.every((ms) => Number(ms) > 0)).toBe(true);
  });
});

describe("a request whose rows come one by one, and a batch that is scored", () => {
  let agent: AsyncRewardAgent;
  beforeAll(async () => {
    agent = await AsyncRewardAgent.create({
      workers: 1,
      executors: 1,
      reward: `${agents}:lengths`,
    });
  });
  afterAll(() => agent.close());

  test("a batch that has rewards keeps them", async () => {
    const scored = DataProto.fromDict({ tensors: { rmScores: tensor([[0.5]], "float32") } });
    expect(rowsOf({ indices: [], rewards: await agent.computeReward(scored) })).toEqual([[0.5]]);
  });

  test("groups come back as they are whole; what is done anyway comes along", async () => {
    const request = agent.request({ uids: ["a", "a", "b", "b", "c", "c"], groupSize: 2 });
    const sample = (response: string): RewardSample => ({
      dataSource: "test",
      response,
      groundTruth: "",
    });
    request.submit(2, sample("xx"));
    request.know(3, known(7));
    expect(await request.take(2)).toEqual([2, 3]);
    expect(request.outcomeOf(2)).toMatchObject({ valid: true, rewardScore: 2 });
    expect(request.outcomeOf(3)).toEqual(known(7));
    for (const row of [0, 1, 4, 5]) request.know(row, known(row));
    expect(await request.take({ least: 2, most: 4 })).toEqual([0, 1, 4, 5]);
    expect([request.left, request.unasked]).toEqual([0, 0]);
  });

  test("a range that was not used up may be asked for again", async () => {
    const request = agent.request({ uids: ["a", "b", "c"] });
    request.know(1, known(1));
    expect(await request.take({ least: 1, most: 3 })).toEqual([1]);
    expect(request.unasked).toBe(2);
    request.know(2, known(2));
    request.know(0, known(0));
    expect(await request.take(2)).toEqual([0, 2]);
  });

  test("a row is scored once, and there is no other", async () => {
    const request = agent.request({ uids: ["a", "b"] });
    request.know(0, known(1));
    expect(() => request.know(0, known(1))).toThrow("row 0 is scored already");
    expect(() => request.know(2, known(1))).toThrow("there is no row 2 of 2");
    const uids = ["a"];
    const wrong: readonly (readonly [option: string, options: unknown])[] = [
      ["uids", {}],
      ["uids", { uids: "a" }],
      ["uids", { uids: [5] }],
      ["groupSize", { uids, groupSize: "1" }],
      ["groupsize", { uids, groupsize: 1 }],
      ["lane", { uids, lane: 5 }],
      ["earlier.failures", { uids, earlier: { rows: 1 } }],
    ];
    for (const [option, options] of wrong) {
      const refused = expect.objectContaining({ code: "REWARD_LOOP_OPTION", option });
      expect(() => agent.request(options as RewardRequestOptions)).toThrow(refused);
    }
    const given = { lanes: "validation" } as object;
    await expect(agent.computeReward(textsOf(["1"], 1), given)).rejects.toMatchObject({
      option: "lanes",
    });
    expect(() => agent.request({ uids: ["a", "a", "b"], groupSize: 2 })).toThrow(
      '"b" has 1 rows, not 2',
    );
  });
});

function known(rewardScore: number): SampleOutcome {
  return { valid: true, rewardScore, rewardExtraInfo: {}, attempts: 1, latencyMs: 0, waitedMs: 0 };
}
