/** Where the sum of several weighted rewards stands, of which some name the tokens of theirs. */

import * as ray from "@rayling/core";
import { DataProto, tensor, toNested } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { placesOf, weightedPlaces } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeLoops, fixture, loopOf } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
});

const placed = fixture("placed.ts");
const byWord = { reward: `${placed}:byWord` };
const byTurn = { reward: `${placed}:byTurn` };
const half = { reward: `${fixture("groups.ts")}:half` };

/** Ids of tokens; four columns, and in each row two turns or one. */
function batchOf(responses: readonly (readonly number[])[], masks: readonly number[][]): DataProto {
  const padded = responses.map((ids) => [...ids, 0, 0, 0, 0].slice(0, 4));
  const attention = responses.map((ids) => [
    1,
    ...[0, 1, 2, 3].map((at) => Number(at < ids.length)),
  ]);
  const rows = responses.map((_, row) => row);
  return DataProto.fromDict({
    tensors: {
      prompts: tensor(
        rows.map(() => [1]),
        "int32",
      ),
      responses: tensor(padded, "int32"),
      attention_mask: tensor(attention, "int32"),
      response_mask: tensor(masks, "int32"),
    },
    nonTensors: {
      data_source: rows.map(() => "test"),
      reward_model: rows.map(() => ({ ground_truth: "" })),
      extra_info: rows.map(() => ({ turns: [0.25, 2] })),
    },
  });
}

const twoTurns = [1, 0, 1, 1];

async function scored(
  options: RewardLoopOptions,
  data: DataProto,
): Promise<{ readonly rows: readonly unknown[]; readonly scores: readonly unknown[] }> {
  const loop = await loopOf({ tokenizer: placed, ...options });
  const { batch, nonTensorBatch } = await loop.computeRmScore(data);
  const errors = nonTensorBatch["rewardError"] as readonly ({ readonly code: string } | null)[];
  const rows = toNested(batch?.["rmScores"] as Tensor) as readonly unknown[];
  return {
    rows: rows.map((row, at) => errors[at]?.code ?? row),
    scores: nonTensorBatch["score"] ?? [],
  };
}

describe("each part of a reward stands at its token, with its weight", () => {
  const words = [[1, 2, 3, 4]];
  const twoParts = { words: { ...byWord, weight: 2 }, half: { ...half, weight: 3 } };
  const cases: readonly [string, RewardLoopOptions, readonly number[], number][] = [
    [
      "beside a reward without places, at the last token",
      { rewards: twoParts },
      [2, 2, 2, 3.5],
      9.5,
    ],
    [
      "of tokens and of turns",
      { rewards: { words: { ...byWord, weight: -1 }, turns: { ...byTurn, weight: 4 } } },
      [0, -1, -1, 7],
      5,
    ],
    [
      "of a mean",
      {
        combine: "mean",
        rewards: { words: { ...byWord, weight: 1 }, turns: { ...byTurn, weight: 3 } },
      },
      [0.4375, 0.25, 0.25, 1.75],
      2.6875,
    ],
    [
      "of a stage of a cascade",
      {
        rewards: {
          either: { cascade: { words: byWord, turns: byTurn }, weight: 0.5 },
          turns: { ...byTurn, weight: 2 },
        },
      },
      [1, 0.5, 0.5, 4.5],
      6.5,
    ],
    [
      "with a weight of 0",
      { rewards: { words: { ...byWord, weight: 0 }, half: { ...half, weight: 1 } } },
      [0, 0, 0, 0.5],
      0.5,
    ],
  ];
  // A mean and a cascade have tokens and turns beside each other, too; a weight of 0 is a number of the sum below.
  const inGate = cases.filter(([name]) => !/and of turns|of 0/.test(name));
  test.each(sized({ gate: inGate, full: cases }))("%s", async (_, options, row, score) => {
    const { rows, scores } = await scored(options, batchOf(words, [twoTurns]));
    expect(rows).toEqual([row]);
    expect(scores).toEqual([score]);
  });

  test("and one that is invalid leaves the others at theirs", async () => {
    // A place behind the last token, and two turns of a response that has one.
    const data = batchOf(
      [[9], [1, 2]],
      [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
      ],
    );
    const rewards = {
      words: { ...byWord, onInvalid: "leaveOut" },
      turns: { ...byTurn, onInvalid: { score: -2 } },
      half: { ...half, weight: 2 },
    } as const;
    expect(await scored({ rewards }, data)).toMatchObject({
      rows: [
        [-1, 0, 0, 0],
        [1, 0, 0, 0],
      ],
      scores: [-1, 1],
    });
    expect((await scored({ rewards: twoParts }, data)).rows).toEqual([
      "INVALID_SCORE",
      [2, 3.5, 0, 0],
    ]);
  });
});

test("the sum of weighted places is the score: what rounding makes of it is no part of its own", () => {
  const said = Array.from({ length: 30 }, (_, at) => [at, 0.1 * (at + 1)] as const);
  const own = said.reduce((sum, [, value]) => sum + value, 0);
  for (const weight of [1, 0.1, -0.3, 1 / 3, 1e9, 1e-9, 0]) {
    const score = { rewardScore: own, rewardExtraInfo: { score_by_token: said }, weight };
    const rewardScore = 0 + weight * own;
    const places = placesOf(
      { rewardScore, rewardExtraInfo: weightedPlaces([score]) },
      { length: 30, width: 30 },
    );
    expect(places).toHaveLength(30);
    const sum = places.reduce((total, [, value]) => total + value, 0);
    expect(Math.abs(sum - rewardScore)).toBeLessThanOrEqual(1e-12 * Math.abs(rewardScore));
  }
});
