/** The number that DAPO's filter compares within a group, by the names that verl has for it. */

import { expect, test } from "vitest";
import { differs } from "../src/groups/filter-groups.ts";
import type { ScoredSample } from "../src/samples/rollout-batch.ts";

type Row = readonly [rewardScore: number, extra: Readonly<Record<string, unknown>>] | undefined;

/** Samples with these rewards and extra info; undefined is one without a score. */
function groupOf(rows: readonly Row[]): ScoredSample[] {
  return rows.map((row, at) => {
    const outcome =
      row === undefined
        ? { valid: false }
        : { valid: true, rewardScore: row[0], rewardExtraInfo: row[1] };
    return { sample: { id: `u/${at}` }, outcome } as unknown as ScoredSample;
  });
}

test.each<[string, string, readonly Row[], boolean]>([
  [
    "the reward differs",
    "reward",
    [
      [0, {}],
      [1, {}],
    ],
    true,
  ],
  [
    "the reward is one",
    "reward",
    [
      [1, { acc: 0 }],
      [1, { acc: 1 }],
    ],
    false,
  ],
  [
    "the reward is never of the extra info",
    "reward",
    [
      [1, { reward: 0 }],
      [1, { reward: 1 }],
    ],
    false,
  ],
  [
    "a key of the extra info",
    "acc",
    [
      [0.5, { acc: true }],
      [0.7, { acc: 1 }],
    ],
    false,
  ],
  [
    "score is the reward",
    "score",
    [
      [0, {}],
      [1, {}],
    ],
    true,
  ],
  [
    "seq_reward is the reward",
    "seq_reward",
    [
      [0, {}],
      [1, {}],
    ],
    true,
  ],
  [
    "score before a penalty",
    "score",
    [
      [0.5, { score: 1 }],
      [0.7, { score: 1 }],
    ],
    false,
  ],
  [
    "seq_final_reward of its own",
    "seq_final_reward",
    [
      [1, { seq_final_reward: 0 }],
      [1, { seq_final_reward: 2 }],
    ],
    true,
  ],
  [
    "score of some alone does not count",
    "score",
    [
      [1, { score: 0 }],
      [1, {}],
      [1, { score: "x" }],
    ],
    false,
  ],
  [
    "a sample without a score says nothing",
    "score",
    [[0.5, { score: 1 }], undefined, [0.7, { score: 1 }]],
    false,
  ],
  ["one alone is kept", "reward", [[1, {}]], true],
])("%s", (_, metric, rows, expected) => {
  expect(differs(groupOf(rows), metric)).toBe(expected);
});

test("a valid sample without a number of another name is an error that names it", () => {
  const group = groupOf([
    [0, { acc: 1 }],
    [1, { acc: "right" }],
  ]);
  expect(() => differs(group, "acc")).toThrow(
    "algorithm.filterGroups.metric is acc, but the extra info of sample u/1 has no number of that name",
  );
});
