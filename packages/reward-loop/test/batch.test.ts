/** Batches in, columns out, as verl's compute_rm_score. */

import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { asTensor, DataProto, tensor, toNested } from "@rayling/data-proto";
import { extractReward, RewardLoopManager } from "@rayling/reward-loop";
import type { Tensor } from "@rayling/data-proto";
import type { RewardLoopOptions, RewardLoopWorker } from "@rayling/reward-loop";
import { createTokenizer } from "@rayling/reward-loop/tokenizer";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeLoops, fixture, loopOf } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
});

/** Rows of token ids 1 … 9, prompts of two tokens, padding 0. */
function batchOf(responses: readonly (readonly number[])[], width: number): DataProto {
  const pad = (ids: readonly number[], fill: number): number[] => [
    ...ids,
    ...Array<number>(width - ids.length).fill(fill),
  ];
  return DataProto.fromDict({
    tensors: {
      prompts: tensor(
        responses.map(() => [8, 8]),
        "int32",
      ),
      responses: tensor(
        responses.map((ids) => pad(ids, 0)),
        "int32",
      ),
      attention_mask: tensor(
        responses.map((ids) => [
          1,
          1,
          ...pad(
            ids.map(() => 1),
            0,
          ),
        ]),
        "int32",
      ),
    },
    nonTensors: {
      data_source: responses.map(() => "test"),
      reward_model: responses.map((_, row) => ({ ground_truth: `truth ${row}` })),
    },
  });
}

function textsOf(texts: readonly string[], source = "test"): DataProto {
  return DataProto.fromDict({
    nonTensors: {
      response: texts,
      data_source: texts.map(() => source),
      reward_model: texts.map(() => ({ ground_truth: "" })),
    },
  });
}

const rewards = fixture("rewards.ts");
const tokenizer = fixture("own-parts.ts");

/** Of several workers, with a tokenizer. */
const byTokens = (): Promise<RewardLoopManager> =>
  loopOf({ name: "by tokens", workers: 3, reward: `${rewards}:value`, tokenizer });
/** By the function that a row names as its data source; without a tokenizer. */
const byNames = (): Promise<RewardLoopManager> =>
  loopOf({ name: "by names", reward: `${rewards}:byName` });

test("a model's folder is a tokenizer: special tokens are left out of what is scored", async () => {
  const folder = fileURLToPath(new URL("../../../test/fixtures/tiny-model", import.meta.url));
  const policy = await createTokenizer({ path: folder });
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: `${rewards}:value`,
    tokenizer: folder,
  });
  const result = await loop.computeRmScore(
    batchOf([policy.encode("42<|eos|>"), policy.encode("7")], 4),
  );
  expect(toNested(result.batch?.["rmScores"] ?? asTensor(new Float32Array()))).toEqual([
    [0, 0, 42, 0],
    [7, 0, 0, 0],
  ]);
});

describe("token ids", () => {
  test("each score stands at the last valid token, for any number of rows and workers", async () => {
    const loop = await byTokens();
    // 1, 2, 4 and 7 rows: fewer than the workers, and never a multiple of them.
    for (const rows of [1, 2, 4, 7]) {
      const responses = Array.from({ length: rows }, (_, row) =>
        Array<number>(1 + (row % 4)).fill(row + 1),
      );
      const result = await loop.computeRmScore(batchOf(responses, 4));
      expect(result.length).toBe(rows);
      expect(result.batch?.["rmScores"]?.dtype).toBe("float32");
      expect(toNested(result.batch?.["rmScores"] ?? asTensor(new Float32Array()))).toEqual(
        responses.map((ids) =>
          Array.from({ length: 4 }, (_, at) => (at === ids.length - 1 ? Number(ids.join("")) : 0)),
        ),
      );
    }
  });

  test("an empty response has its score in the last column, as in verl", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: `${rewards}:seen`,
      tokenizer,
    });
    const result = await loop.computeRmScore(batchOf([[], [3]], 3));
    expect([...(result.batch?.["rmScores"]?.data ?? [])]).toEqual([0, 0, 1, 1, 0, 0]);
    expect(result.nonTensorBatch["solutionStr"]).toEqual(["", "3"]);
  });

  test("the tokenizer gets its settings; without one every row says what is missing", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: `${rewards}:value`,
      tokenizer: { path: tokenizer, rewardKwargs: { base: 1 } },
    });
    const result = await loop.computeRmScore(batchOf([[2, 3]], 2));
    expect([...(result.batch?.["rmScores"]?.data ?? [])]).toEqual([0, 12]);
    const bare = await byNames();
    const { nonTensorBatch } = await bare.computeRmScore(batchOf([[2]], 1));
    expect(nonTensorBatch["rewardError"]).toMatchObject([{ code: "MISSING_TOKENIZER" }]);
  });

  test("a tokenizer that hangs is told as a timeout", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: `${rewards}:value`,
      tokenizer,
      timeoutMs: 300,
    });
    const { nonTensorBatch } = await loop.computeRmScore(batchOf([[1], [99], [2]], 1));
    expect(nonTensorBatch["rewardError"]).toMatchObject([null, { code: "SCORE_TIMEOUT" }, null]);
  });
});

describe("a manager class with assembleRmScores", () => {
  const options = (name: string): RewardLoopOptions => ({
    workers: 1,
    executors: 1,
    reward: `${rewards}:value`,
    tokenizer,
    manager: { path: tokenizer, name },
    managerOptions: { penalty: 0 },
  });

  test("says where the scores of a batch stand; rows without one stay empty", async () => {
    await using loop = await RewardLoopManager.create(options("SpreadManager"));
    // The second is no number.
    const batch = batchOf([[6], [7, 7, 99], [4, 2]], 3);
    batch.nonTensorBatch["response"] = ["6", "x", "42"];
    const result = await loop.computeRmScore(batch);
    const rmScores = result.batch?.["rmScores"];
    expect(rmScores && toNested(rmScores)).toEqual([
      [6, 0, 0],
      [0, 0, 0],
      [21, 21, 0],
    ]);
    expect([...(result.batch?.["rewardValid"]?.data ?? [])]).toEqual([1, 0, 1]);
  });

  test.each([
    ["ShortManager", { code: "INVALID_SCORE" }, "not 3 finite numbers from assembleRmScores"],
    ["HangingManager", { code: "SCORE_TIMEOUT" }, "did not finish within 300 ms"],
  ])("%s: fails the batch, with its reason", async (name, failure, message) => {
    await using loop = await RewardLoopManager.create({ ...options(name), timeoutMs: 300 });
    await expect(loop.computeRmScore(textsOf(["1", "2", "3"]))).rejects.toMatchObject({
      code: "REWARD_ASSEMBLY",
      failure,
      message: expect.stringContaining(message) as string,
    });
    // And the loop goes on.
    const outcome = await loop.computeScore({ dataSource: "d", response: "4", groundTruth: "" });
    expect(outcome).toMatchObject({ valid: true, rewardScore: 4 });
  });

  test("is for one function: several rewards refuse it", async () => {
    const { reward: _, ...rest } = options("SpreadManager");
    const creating = RewardLoopManager.create({
      ...rest,
      rewards: { one: { reward: `${rewards}:value` }, other: { reward: `${rewards}:one` } },
    });
    await expect(creating).rejects.toThrow("rewards must be managers without assembleRmScores");
  });
});

describe("extra info", () => {
  let extras: RewardLoopManager;
  beforeAll(async () => {
    extras = await RewardLoopManager.create({
      name: "extras",
      workers: 2,
      executors: 1,
      reward: `${rewards}:extras`,
    });
  });
  afterAll(() => extras.close());

  test("has the keys of all rows, null where a row lacks one, and rows without a score are masked", async () => {
    const result = await extras.computeRmScore(textsOf(["10", "1", "2", "3", "20"]));
    expect(result.metaInfo["rewardExtraKeys"]).toEqual(["score", "odd", "even"]);
    const { rewardError, ...columns } = result.nonTensorBatch;
    expect(columns).toEqual({
      score: [null, 1, 2, 3, null],
      odd: [null, [1], null, [3], null],
      even: [null, null, true, null, null],
    });
    expect(rewardError).toMatchObject([
      { code: "SCORE_THREW", message: "10 is round" },
      null,
      null,
      null,
      { code: "SCORE_THREW", message: "20 is round" },
    ]);
    expect(result.batch?.["rewardValid"]).toMatchObject({ dtype: "bool", shape: [5] });
    expect([...(result.batch?.["rewardValid"]?.data ?? [])]).toEqual([0, 1, 1, 1, 0]);
    expect([...(result.batch?.["rmScores"]?.data ?? [])]).toEqual([0, 1, 2, 3, 0]);
  });

  test("comes out of a batch again, as its scores do", async () => {
    const batch = textsOf(["1", "2"]);
    expect(() => extractReward(batch)).toThrow(`"rmScores" is missing`);
    const { rmScores, rewardExtraInfo } = extractReward(
      batch.union(await extras.computeRmScore(batch)),
    );
    expect(toNested(rmScores)).toEqual([[1], [2]]);
    expect(rewardExtraInfo).toEqual({ score: [1, 2], odd: [[1], null], even: [null, true] });
  });

  test("the tuple [score, query, response] of the async reward agent is taken apart", async () => {
    const loop = await byNames();
    const batch = textsOf(["5"], "tuple");
    batch.nonTensorBatch = { ...batch.nonTensorBatch, extra_info: [{ question: "why?" }] };
    const { nonTensorBatch } = await loop.computeRmScore(batch);
    expect(nonTensorBatch).toMatchObject({
      score: [5],
      judge: ["a"],
      query: ["why?"],
      reward_extra_response: ["5"],
    });
  });

  test("and its extra info are put together whatever that is called", async () => {
    const loop = await byNames();
    const batch = textsOf(["5", "6"], "namesake");
    const { nonTensorBatch } = batch.union(await loop.computeRmScore(batch));
    expect(nonTensorBatch).toMatchObject({ response: ["5", "6"], rewardError: [null, null] });
    expect(extractReward(batch).rewardExtraInfo).toEqual({
      score: [5, 6],
      query: ["why?", "why?"],
      reward_extra_response: ["judged 5", "judged 6"],
      reward_extra_rewardError: ["mine", "mine"],
      reward_extra_rewardValid: [7, 7],
      reward_extra_uid: ["taken", "taken"],
      reward_extra_reward_extra_uid: ["own", "own"],
    });
  });

  test("may be handed to a worker by its name, as in verl's compute_score_batch", async () => {
    expect(extras.workerNames).toEqual(["extras_0", "extras_1"]);
    const worker = await ray.getActor<RewardLoopWorker>("extras_0");
    const data = textsOf(["3", "10", "4"]).toData();
    expect(await ray.get(worker.computeScoreBatch.remote(data))).toMatchObject([
      { valid: true, rewardScore: 3, rewardExtraInfo: { odd: [3] } },
      { valid: false, error: { code: "SCORE_THREW" } },
      { valid: true, rewardScore: 4, rewardExtraInfo: { even: true } },
    ]);
    const bad = DataProto.fromDict({ nonTensors: { response: ["1"] } }).toData();
    await expect(ray.get(worker.computeScoreBatch.remote(bad))).rejects.toMatchObject({
      code: "INVALID_BATCH",
    });
  });

  test("a row reaches the function with all that verl's managers pass on", async () => {
    const loop = await byNames();
    const batch = textsOf(["x"], "seen");
    batch.nonTensorBatch = {
      ...batch.nonTensorBatch,
      extra_info: [{ split: "test" }],
      tool_extra_fields: [{ tool: 1 }],
      __num_turns__: [4],
      reward_scores: [{ turn: 0.5 }],
    };
    const { nonTensorBatch } = await loop.computeRmScore(batch);
    expect(nonTensorBatch["extraInfo"]).toEqual([
      {
        split: "test",
        tool: 1,
        numTurns: 4,
        num_turns: 4,
        rolloutRewardScores: { turn: 0.5 },
        rollout_reward_scores: { turn: 0.5 },
      },
    ]);
  });
});

describe("a batch", () => {
  test("without rows, without a column, or with a mask that does not fit", async () => {
    const loop = await byTokens();
    const empty = await loop.computeRmScore(batchOf([[1]], 1).slice(0, 0));
    expect(empty.batch?.["rmScores"]?.shape).toEqual([0, 1]);
    const noSource = textsOf(["1"]);
    delete noSource.nonTensorBatch["data_source"];
    await expect(loop.computeRmScore(noSource)).rejects.toMatchObject({
      code: "INVALID_BATCH",
      column: "data_source",
    });
    const noMask = batchOf([[1]], 1);
    delete noMask.batch?.["attention_mask"];
    await expect(loop.computeRmScore(noMask)).rejects.toMatchObject({ column: "attention_mask" });
    const short = batchOf([[1]], 1);
    Object.assign(short.batch ?? {}, { attention_mask: tensor([[1, 1]], "int32") });
    await expect(loop.computeRmScore(short)).rejects.toThrow(
      "has 2 columns, prompts and responses have 2 + 1",
    );
  });

  test("whose row has a bad value: it is invalid, its neighbours are scored", async () => {
    const loop = await byTokens();
    const batch = textsOf(["1", "2", "3"]);
    batch.nonTensorBatch = {
      ...batch.nonTensorBatch,
      reward_model: [{ ground_truth: "" }, {}, { ground_truth: "" }],
    };
    const result = await loop.computeRmScore(batch);
    expect(result.nonTensorBatch["rewardError"]).toMatchObject([
      null,
      { code: "INVALID_SAMPLE" },
      null,
    ]);
    expect([...(result.batch?.["rmScores"]?.data ?? [])]).toEqual([1, 0, 3]);
  });
});

describe("the loop around a batch", () => {
  test("rewardKwargs, own managers and several managers at once", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 2,
      executors: 1,
      reward: { path: rewards, name: "scaled", rewardKwargs: { factor: 10, offset: 3 } },
    });
    await using naive = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: `${rewards}:value`,
      manager: "naive",
    });
    await using own = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: `${rewards}:value`,
      manager: { path: fixture("own-parts.ts"), name: "PenaltyManager" },
      managerOptions: { penalty: 0.5 },
    });
    const names = [loop, naive, own].flatMap(({ workerNames }) => workerNames);
    expect(new Set(names).size).toBe(4);
    expect(loop.workerNames).toEqual(["reward_loop_worker_0", "reward_loop_worker_1"]);
    const scores = await Promise.all(
      [loop, naive, own].map(async (one) => {
        const { batch } = await one.computeRmScore(textsOf(["1", "2", "3"]));
        return [...(batch?.["rmScores"]?.data ?? [])];
      }),
    );
    expect(scores).toEqual([
      [13, 23, 33],
      [1, 2, 3],
      [0.5, 1.5, 2.5],
    ]);
  });

  test("a name that was chosen and is taken is an error", async () => {
    const loop = await byNames();
    expect(loop.workerNames).toEqual(["by names_0"]);
    await expect(
      RewardLoopManager.create({ workers: 1, executors: 1, name: "by names" }),
    ).rejects.toMatchObject({
      code: "ACTOR_ALREADY_EXISTS",
    });
  });

  test("verl's scorers by data source are the default", async () => {
    await using loop = await RewardLoopManager.create({ workers: 1, executors: 1 });
    const scored = await loop.computeScore({
      dataSource: "openai/gsm8k",
      response: "#### 18",
      groundTruth: "18",
    });
    expect(scored).toMatchObject({ valid: true, rewardScore: 1 });
    const unknown = await loop.computeScore({
      dataSource: "my/own",
      response: "",
      groundTruth: "",
    });
    expect(unknown).toMatchObject({ valid: false, error: { code: "UNKNOWN_DATA_SOURCE" } });
  });

  test.each([
    [{ workers: 0 }, "workers"],
    [{ concurrency: 1.5 }, "concurrency"],
    [{ timeoutMs: -1 }, "timeoutMs"],
    [{ name: " " }, "name"],
  ])("options out of range are named: %o", async (options, option) => {
    await expect(RewardLoopManager.create(options)).rejects.toMatchObject({
      code: "REWARD_LOOP_OPTION",
      option,
    });
  });
});

describe("scores that stand at several tokens", () => {
  const placed = fixture("placed.ts");
  const options = { workers: 1, executors: 1, tokenizer: placed };
  const scoresOf = async (loop: RewardLoopManager, data: DataProto): Promise<unknown> => {
    const { batch, nonTensorBatch } = await loop.computeRmScore(data);
    const errors = nonTensorBatch["rewardError"] as readonly ({ readonly code: string } | null)[];
    const rows = toNested(batch?.["rmScores"] as Tensor) as readonly unknown[];
    return rows.map((row, at) => errors[at]?.code ?? row);
  };

  test("are in the columns of these, and what is behind the last is no score", async () => {
    await using loop = await RewardLoopManager.create({ ...options, reward: `${placed}:byWord` });
    expect(await scoresOf(loop, batchOf([[1, 2, 3], [9], [4]], 4))).toEqual([
      [1, 1, 1, 0],
      "INVALID_SCORE",
      [1, 0, 0, 0],
    ]);
  });

  test("a manager's penalty stands at the last of them", async () => {
    const managerOptions = { maxRespLen: 4, overlongBuffer: { len: 2, penaltyFactor: 1 } };
    const reward = `${placed}:byWord`;
    await using loop = await RewardLoopManager.create({
      ...options,
      reward,
      manager: "dapo",
      managerOptions,
    });
    const penalized = [
      [1, 1, 0.5, 0],
      [1, 0, 0, 0],
    ];
    const tokens = batchOf([[1, 2, 3], [4]], 4);
    expect(await scoresOf(loop, tokens)).toEqual(penalized);
    // A response that is a text is as long as the masks say, or else the column response_length.
    const texts = { ...tokens.nonTensorBatch, response: ["one two three", "one"] };
    const beside = DataProto.fromDict({ tensors: { ...tokens.batch }, nonTensors: texts });
    expect(await scoresOf(loop, beside)).toEqual(penalized);
    const nonTensors = { ...textsOf(["one", "one"]).nonTensorBatch };
    const own = {
      response_mask: tensor(
        [
          [1, 0, 1, 0],
          [1, 0, 0, 0],
        ],
        "int32",
      ),
    };
    const whole = { attention_mask: tokens.batch?.["attention_mask"] as Tensor };
    for (const tensors of [own, { ...own, ...whole }]) {
      const masked = DataProto.fromDict({ tensors, nonTensors });
      expect(await scoresOf(loop, masked)).toEqual([[0.5], [1]]);
    }
    const counted = { ...nonTensors, response_length: [3, null] };
    const alone = DataProto.fromDict({ nonTensors: counted });
    expect(await scoresOf(loop, alone)).toEqual([[0.5], "INVALID_SAMPLE"]);
  });

  test("of turns are where the batch says that these end", async () => {
    await using loop = await RewardLoopManager.create({ ...options, reward: `${placed}:byTurn` });
    const batch = batchOf(
      [
        [1, 2, 3, 4],
        [1, 2, 3],
        [1, 2],
      ],
      4,
    );
    const mask = [
      [1, 0, 1, 1],
      [1, 1, 1, 0],
      [1, 0, 0, 0],
    ];
    const data = DataProto.fromDict({
      tensors: { ...batch.batch, response_mask: tensor(mask, "int32") },
      nonTensors: {
        ...batch.nonTensorBatch,
        extra_info: [{ turns: [0.25, 2] }, { turns: [5] }, { turns: [1, 1] }],
      },
    });
    expect(await scoresOf(loop, data)).toEqual([[0.25, 0, 0, 2], [0, 0, 5, 0], "INVALID_SCORE"]);
  });

  test("a manager of yours sees the tokens, and what was said of each row", async () => {
    const manager = { path: placed, name: "LookingManager" };
    const reward = `${placed}:byWord`;
    await using loop = await RewardLoopManager.create({ ...options, reward, manager });
    expect(await scoresOf(loop, batchOf([[1, 2], [9], [4]], 4))).toEqual([
      [1, 2, 0, 2],
      "INVALID_SCORE",
      [4, 0, 0, 1],
    ]);
  });
});
