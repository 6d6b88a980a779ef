/** The one pipeline: what a score function receives, what it may return, and that nothing of the caller's is touched. */

import { describe, expect, test } from "vitest";
import {
  DapoRewardManager,
  GdpoRewardManager,
  InvalidScoreError,
  NaiveRewardManager,
  placesOf,
  scoreSample,
  withRewardKwargs,
} from "@rayling/reward-manager-registry";
import type {
  ComputeScore,
  RewardSample,
  ScoreInput,
  Tokenizer,
} from "@rayling/reward-manager-registry";

const sample: RewardSample = { dataSource: "toy", response: "four", groundTruth: "4" };
/** A score function of plain JavaScript, where types promise nothing. */
const returning = (output: unknown): ComputeScore => (() => output) as unknown as ComputeScore;
const words: Tokenizer = {
  decode: (ids, { skipSpecialTokens }) =>
    Array.from(ids)
      .filter((id) => !(skipSpecialTokens && id === 0))
      .map((id) => ["<eos>", "two", "and", "two"][id])
      .join(" "),
};

describe("a good score", () => {
  const table: [string, unknown, number, Record<string, unknown>][] = [
    ["number", 0.5, 0.5, { acc: 0.5 }],
    ["zero", 0, 0, { acc: 0 }],
    ["negative number", -1, -1, { acc: -1 }],
    ["true", true, 1, { acc: 1 }],
    ["false", false, 0, { acc: 0 }],
    ["bigint", 3n, 3, { acc: 3 }],
    ["record", { score: 2 }, 2, { score: 2 }],
    [
      "record with extras",
      { score: true, acc: false, pred: "4" },
      1,
      { score: 1, acc: false, pred: "4" },
    ],
    [
      "record without a prototype",
      Object.assign(Object.create(null), { score: 1n }),
      1,
      { score: 1 },
    ],
    ["tuple without texts", [1, null, undefined], 1, { acc: 1, query: null, response: undefined }],
    ["tuple", [1, "q", "r"], 1, { acc: 1, query: "q", response: "r" }],
    [
      "tuple with a record",
      [{ score: 0.5, pred: "4" }, "q", "r"],
      0.5,
      { score: 0.5, pred: "4", query: "q", response: "r" },
    ],
    [
      "tuple whose record has a query of its own",
      [{ score: 1, query: "mine" }, "q", null],
      1,
      { score: 1, query: "mine", response: null },
    ],
  ];
  test.each(table)("%s", async (_name, output, rewardScore, rewardExtraInfo) => {
    await expect(scoreSample(sample, returning(output))).resolves.toEqual({
      rewardScore,
      rewardExtraInfo,
    });
  });

  test("comes out of a promise and of any thenable", async () => {
    await expect(scoreSample(sample, async () => 1)).resolves.toMatchObject({ rewardScore: 1 });
    // oxlint-disable-next-line unicorn/no-thenable -- exactly that is the case
    const thenable = { then: (settle: (value: unknown) => void) => settle({ score: 0.25 }) };
    await expect(scoreSample(sample, returning(thenable))).resolves.toMatchObject({
      rewardScore: 0.25,
    });
  });
});

describe("a score that stands at several tokens", () => {
  const pairs = [
    [0, 0.25],
    [3, 1],
    [3, -0.5],
  ];
  const four: RewardSample = { ...sample, response: "a b c d", responseLength: 4 };

  test.each<[string, unknown, Record<string, unknown>]>([
    ["alone", pairs, { acc: 0.75, score_by_token: pairs }],
    ["in a record", { score: pairs, why: "x" }, { score: 0.75, score_by_token: pairs, why: "x" }],
    [
      "with a query",
      [pairs, "q", null],
      { acc: 0.75, score_by_token: pairs, query: "q", response: null },
    ],
  ])("is their sum, %s", async (_name, output, rewardExtraInfo) => {
    await expect(scoreSample(four, returning(output))).resolves.toEqual({
      rewardScore: 0.75,
      rewardExtraInfo,
    });
  });

  test("of turns stands where these end, where that is known", async () => {
    const output = { score: { turns: [1, 0, -0.5] } };
    const turns = { ...four, turnEnds: [0, 2, 3] };
    await expect(scoreSample(turns, returning(output))).resolves.toEqual({
      rewardScore: 0.5,
      rewardExtraInfo: {
        score: 0.5,
        score_by_turn: [1, 0, -0.5],
        score_by_token: [
          [0, 1],
          [2, 0],
          [3, -0.5],
        ],
      },
    });
    await expect(scoreSample(four, returning(output))).resolves.toEqual({
      rewardScore: 0.5,
      rewardExtraInfo: { score: 0.5, score_by_turn: [1, 0, -0.5] },
    });
  });

  test.each<[unknown, RewardSample, RegExp]>([
    [[[4, 1]], four, /position 4 of a response of 4 tokens/],
    [{ score: [[0, 1]] }, { ...sample, response: "", responseLength: 0 }, /of 0 tokens/],
    [{ score: { turns: [1] } }, { ...four, turnEnds: [0, 3] }, /1 turns for a response of 2/],
    [[[0.5, 1]], four, /array of length 1/],
    [[[-1, 1]], four, /array of length 1/],
    [[[0, Number.NaN]], four, /array of length 1/],
    [
      [
        [0, 1e308],
        [1, 1e308],
      ],
      four,
      /array of length 2/,
    ],
    [{ score: [] }, four, /score is an array of length 0/],
    [{ score: { turns: [] } }, four, /score is an object with the keys turns/],
    [{ score: { turns: [1, "2"] } }, four, /score is an object with the keys turns/],
    [{ turns: [1] }, four, /an object with the keys turns/],
  ])("%j is none of them", async (output, given, received) => {
    await expect(scoreSample(given, returning(output))).rejects.toMatchObject({
      code: "INVALID_SCORE",
      received: expect.stringMatching(received) as string,
    });
  });

  test("all of a row's places together are its score, whatever was added to that", () => {
    const row = { length: 3, width: 5 };
    const placed = (rewardScore: number, said: unknown, at = row): unknown =>
      placesOf({ rewardScore, rewardExtraInfo: { score_by_token: said } }, at);
    const tokens = [
      [0, 1],
      [1, 2],
    ];
    expect(placed(3, tokens)).toEqual(tokens);
    expect(placed(2, tokens)).toEqual([...tokens, [2, -1]]);
    expect(placed(3, undefined)).toEqual([[2, 3]]);
    expect(placed(3, undefined, { length: 0, width: 5 })).toEqual([[4, 3]]);
    // Somebody else's extra info of that name.
    for (const said of ["text", [1, 2], [[0]], [[7, 3]], [[Number.NaN, 1]]]) {
      expect(placed(3, said)).toEqual([[2, 3]]);
    }
  });
});

describe("garbage is an InvalidScoreError that names it, never a zero", () => {
  const table: [unknown, string][] = [
    [undefined, "undefined"],
    [Number.NaN, "NaN"],
    [Infinity, "Infinity"],
    [-Infinity, "-Infinity"],
    [10n ** 400n, "the bigint 1000"],
    ["1.0", 'the string "1.0"'],
    [Symbol("s"), "Symbol(s)"],
    [() => 1, "the function"],
    [{}, "an object without keys"],
    [{ acc: 1, pred: "4" }, "an object with the keys acc, pred"],
    [{ score: undefined }, "an object whose score is undefined"],
    [{ score: "1" }, 'an object whose score is the string "1"'],
    [{ score: Number.NaN }, "an object whose score is NaN"],
    [{ score: { score: 1 } }, "an object whose score is an object with the keys score"],
    [[], "an array of length 0"],
    [[1], "an array of length 1"],
    [[1, "q"], "an array of length 2"],
    [[1, "q", "r", "s"], "an array of length 4"],
    [[0.5, 0.25, 1], "an array of length 3 whose query is 0.25"],
    [[1, "q", 2], "an array of length 3 whose response is 2"],
    [[1, ["q"], "r"], "an array of length 3 whose query is an array of length 1"],
    [[{ score: 1 }, {}, null], "an array of length 3 whose query is an object"],
    [[undefined, "q", "r"], "[score, query, response] with, as its score, undefined"],
    [[[1, "q", "r"], "q", "r"], "as its score, an array of length 3"],
    [new Map([["score", 1]]), "a value of type Map"],
    [new Date(0), "a value of type Date"],
    [new Float32Array(1), "a value of type Float32Array"],
  ];
  test.each(table)("%o", async (output, received) => {
    const failure: unknown = await scoreSample(sample, returning(output)).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(InvalidScoreError);
    expect(failure).toMatchObject({
      code: "INVALID_SCORE",
      dataSource: "toy",
      received: expect.stringContaining(received),
    });
    expect((failure as Error).message).toContain(received);
  });
});

test.each<[unknown, object]>([
  [null, {}],
  [{ score: null, reason: "no rule" }, { reason: "no rule" }],
  [[null, "q", "r"], {}],
  [[{ score: null, usage: { total_tokens: 3 } }, "q", "r"], { usage: { total_tokens: 3 } }],
])(
  "%j says that it cannot tell, which is neither garbage nor a zero",
  async (output, extraInfo) => {
    await expect(scoreSample(sample, returning(output))).rejects.toMatchObject({
      name: "CannotTellError",
      code: "CANNOT_TELL",
      dataSource: "toy",
      extraInfo,
    });
  },
);

test("what the score function throws passes through unchanged", async () => {
  const mine = new RangeError("mine");
  const thrower: ComputeScore = () => {
    throw mine;
  };
  await expect(scoreSample(sample, thrower)).rejects.toBe(mine);
  await expect(scoreSample(sample, async () => await Promise.reject(mine))).rejects.toBe(mine);
});

async function inputOf(
  given: RewardSample,
  options?: Parameters<typeof scoreSample>[2],
): Promise<ScoreInput> {
  let seen: ScoreInput | undefined;
  await scoreSample(given, (input) => ((seen = input), 1), options);
  return seen!;
}

describe("what a score function receives", () => {
  test("four fields and nothing else where there is no reward model", async () => {
    const expected = { dataSource: "toy", solutionStr: "four", groundTruth: "4", extraInfo: {} };
    expect(await inputOf(sample)).toStrictEqual(expected);
    expect(await inputOf(sample, { rewardModelTokenizer: words })).toStrictEqual(expected);
  });

  test("the router's address and the reward model's tokenizer where there is one", async () => {
    const input = await inputOf(sample, {
      rewardRouterAddress: "host:1",
      rewardModelTokenizer: words,
    });
    expect(input).toMatchObject({ rewardRouterAddress: "host:1", rewardModelTokenizer: words });
  });

  test("its reward models by name, also where none of them is the default one", async () => {
    const judge = { engine: "vllm", model: "m", routerAddress: "host:1", routerToken: "t" };
    const rewardModels = { judge, safety: { ...judge, routerAddress: "host:2" } };
    const input = await inputOf(sample, { rewardModels });
    expect(input.rewardModels).toEqual(rewardModels);
    expect(input).not.toHaveProperty("rewardRouterAddress");
    const managers = [NaiveRewardManager, DapoRewardManager, GdpoRewardManager];
    for (const Manager of managers) {
      const seen: ScoreInput[] = [];
      const manager = new Manager({
        computeScore: (given) => seen.push(given),
        rewardRouterAddress: "host:1",
        rewardModels,
        options: Manager === GdpoRewardManager ? { experimentName: "e" } : {},
      });
      await manager.runSingle(sample);
      expect(seen).toMatchObject([{ rewardRouterAddress: "host:1", rewardModels }]);
    }
  });

  test("text of the token ids, special tokens skipped, for lists, typed arrays and slow tokenizers", async () => {
    expect(
      (await inputOf({ ...sample, response: [1, 2, 3, 0] }, { tokenizer: words })).solutionStr,
    ).toBe("two and two");
    expect(
      (await inputOf({ ...sample, response: Int32Array.of(3, 0) }, { tokenizer: words }))
        .solutionStr,
    ).toBe("two");
    const slow: Tokenizer = { decode: async (ids, options) => await words.decode(ids, options) };
    expect((await inputOf({ ...sample, response: [1] }, { tokenizer: slow })).solutionStr).toBe(
      "two",
    );
    expect((await inputOf({ ...sample, response: [] }, { tokenizer: words })).solutionStr).toBe("");
  });

  test("a copy of extraInfo at every depth, with cycles and shared parts as they were", async () => {
    const inner = {
      list: [1, { deep: true }],
      when: new Date(5),
      bytes: Buffer.from([1, 2]),
      set: new Set([1]),
      map: new Map([["k", { v: 1 }]]),
    };
    const extraInfo: Record<string, unknown> = {
      inner,
      again: inner,
      call: Math.max,
      parsed: JSON.parse('{"__proto__":{"x":1}}'),
    };
    extraInfo["self"] = extraInfo;
    const before = structuredClone(inner);
    const copy = (await inputOf({ ...sample, extraInfo })).extraInfo;
    const copied = copy["inner"] as typeof inner;
    expect(copied).toEqual({ ...inner, bytes: Uint8Array.of(1, 2) });
    expect(copy["again"]).toBe(copied);
    expect(copy["call"]).toBe(Math.max);
    expect(Object.hasOwn(copy["parsed"] as object, "__proto__")).toBe(true);
    copied.list.push(2);
    (copied.list[1] as { deep: boolean }).deep = false;
    copied.when.setTime(9);
    copied.bytes[0] = 9;
    copied.set.add(2);
    copied.map.get("k")!.v = 2;
    expect({ ...inner, bytes: Uint8Array.from(inner.bytes) }).toEqual(before);
  });

  test("what the manager adds to extraInfo wins, and the sample stays as it was", async () => {
    const extraInfo = Object.freeze({ a: 1, b: 1 });
    const input = await inputOf({ ...sample, extraInfo }, { extraInfo: { b: 2 } });
    expect(input.extraInfo).toEqual({ a: 1, b: 2 });
  });

  test("rewardKwargs override arguments of the same name", async () => {
    const computeScore = withRewardKwargs(
      ({ groundTruth, bonus }) => ({ score: Number(groundTruth) + Number(bonus) }),
      { groundTruth: "10", bonus: 5 },
    );
    await expect(scoreSample(sample, computeScore)).resolves.toMatchObject({ rewardScore: 15 });
  });
});

describe("a sample that cannot be scored", () => {
  const table: [string, Record<string, unknown>][] = [
    ["dataSource", { dataSource: undefined }],
    ["dataSource", { dataSource: 7 }],
    ["groundTruth", { groundTruth: undefined }],
    ["response", { response: undefined }],
    ["response", { response: null }],
    ["response", { response: 12 }],
    ["response", { response: {} }],
  ];
  test.each(table)("%s in %o", async (field, change) => {
    await expect(scoreSample({ ...sample, ...change }, () => 1)).rejects.toMatchObject({
      code: "INVALID_SAMPLE",
      field,
    });
  });

  test("token ids without a tokenizer", async () => {
    await expect(scoreSample({ ...sample, response: [1] }, () => 1)).rejects.toMatchObject({
      code: "MISSING_TOKENIZER",
      dataSource: "toy",
    });
  });

  test("a ground truth of null counts as given", async () => {
    await expect(scoreSample({ ...sample, groundTruth: null }, () => 1)).resolves.toMatchObject({
      rewardScore: 1,
    });
  });
});
