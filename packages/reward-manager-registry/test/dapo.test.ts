/** The dapo and gdpo managers: verl's own results (test/golden/dapo-overlong.json), and what bad options say. */
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import {
  createDefaultRegistry,
  DapoRewardManager,
  GdpoRewardManager,
  type RewardSample,
} from "@rayling/reward-manager-registry";

interface GoldenCase {
  readonly name: string;
  readonly fn: string;
  readonly inputs: { readonly lengths: readonly number[]; readonly scores: readonly number[] };
  readonly params: {
    readonly max_resp_len?: number | null;
    readonly overlong_buffer?: {
      readonly enable: boolean;
      readonly len: number;
      readonly penalty_factor: number;
      readonly log: boolean;
    } | null;
    readonly dict_score?: boolean;
  };
  readonly expected: {
    readonly error?: unknown;
    readonly reward: readonly number[];
    readonly extra: readonly Record<string, unknown>[] | Record<string, readonly unknown[]>;
  };
}

const { cases } = goldenFile("dapo-overlong.json") as { cases: readonly GoldenCase[] };
const tokenizer = { decode: (ids: ArrayLike<number>): string => `${ids.length} tokens` };
const ofLength = (length: number): RewardSample => ({
  dataSource: "mine",
  response: new Int32Array(length),
  groundTruth: "",
});

test("there are no other functions in the file", () => {
  expect([...new Set(cases.map(({ fn }) => fn))].toSorted()).toEqual([
    "DAPORewardManager",
    "DAPORewardManager.run_single",
  ]);
});

describe.each(["DAPORewardManager", "DAPORewardManager.run_single"])("%s", (fn) => {
  test.each(cases.filter((golden) => golden.fn === fn))(
    "$name",
    async ({ inputs, params, expected }) => {
      const {
        max_resp_len: maxRespLen,
        overlong_buffer: buffer,
        dict_score: isRecord = false,
      } = params;
      const options = {
        ...(maxRespLen === undefined || maxRespLen === null ? {} : { maxRespLen }),
        ...(buffer === undefined || buffer === null
          ? {}
          : {
              overlongBuffer: {
                enable: buffer.enable,
                len: buffer.len,
                penaltyFactor: buffer.penalty_factor,
                log: buffer.log,
              },
            }),
      };
      let index = 0;
      const make = (): DapoRewardManager =>
        new DapoRewardManager({
          tokenizer,
          options,
          computeScore: () => {
            const score = inputs.scores[index] as number;
            return isRecord ? { score, acc: score > 0 } : score;
          },
        });
      if (expected.error !== undefined) {
        expect(make).toThrow(expect.objectContaining({ code: "INVALID_MANAGER_OPTION" }));
        return;
      }
      const manager = make();
      for (; index < inputs.lengths.length; index++) {
        const result = await manager.runSingle(ofLength(inputs.lengths[index] as number));
        const { extra } = expected;
        const wanted = Array.isArray(extra)
          ? (extra[index] as Record<string, unknown>)
          : Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, values[index]]));
        expect(result.rewardScore).toBeCloseTo(expected.reward[index] as number, 5);
        const { overlong_reward: penalty, ...rest } = result.rewardExtraInfo;
        const { overlong_reward: wantedPenalty, ...wantedRest } = wanted;
        expect(rest).toEqual(wantedRest);
        if (wantedPenalty === undefined) expect(penalty).toBeUndefined();
        else expect(penalty).toBeCloseTo(wantedPenalty as number, 5);
      }
    },
  );
});

describe("bad input of dapo", () => {
  const buffer = { len: 4 };
  test.each([
    [{ overlongBuffer: 3 }, "overlongBuffer"],
    [{ overlongBuffer: { len: 0 }, maxRespLen: 8 }, "overlongBuffer.len"],
    [{ overlongBuffer: buffer }, "maxRespLen"],
    [{ overlongBuffer: buffer, maxRespLen: 3 }, "maxRespLen"],
    [
      { overlongBuffer: { ...buffer, penaltyFactor: Number.NaN }, maxRespLen: 8 },
      "overlongBuffer.penaltyFactor",
    ],
    [{ overlongBuffer: { ...buffer, log: 1 }, maxRespLen: 8 }, "overlongBuffer.log"],
    [
      { overlongBuffer: { ...buffer, penaltyFacto: 2 }, maxRespLen: 8 },
      "overlongBuffer.penaltyFacto",
    ],
    [{ overlongBuffer: { enable: false, lne: 4 } }, "overlongBuffer.lne"],
    [{ maxResponseLen: 8 }, "maxResponseLen"],
    [{ overlongBuffer: { ...buffer, enable: 1 }, maxRespLen: 8 }, "overlongBuffer.enable"],
  ])("%j names %s", (options, option) => {
    expect(() => new DapoRewardManager({ options })).toThrow(
      expect.objectContaining({ code: "INVALID_MANAGER_OPTION", manager: "dapo", option }),
    );
  });

  test("a response that is a text has as many tokens as its sample says, or no length", async () => {
    const manager = new DapoRewardManager({
      computeScore: () => 1,
      options: { overlongBuffer: buffer, maxRespLen: 8 },
    });
    const sample = { dataSource: "mine", response: "text", groundTruth: "" };
    await expect(manager.runSingle(sample)).rejects.toMatchObject({
      code: "INVALID_SAMPLE",
      field: "responseLength",
    });
    // 2 of the 4 tokens of the buffer.
    await expect(manager.runSingle({ ...sample, responseLength: 6 })).resolves.toEqual({
      rewardScore: 0.5,
      rewardExtraInfo: { acc: 1 },
    });
    await expect(manager.runSingle({ ...sample, responseLength: -1 })).rejects.toMatchObject({
      code: "INVALID_SAMPLE",
      field: "responseLength",
    });
    // Without the buffer it needs none.
    await expect(
      new DapoRewardManager({ computeScore: () => 1 }).runSingle(sample),
    ).resolves.toMatchObject({ rewardScore: 1 });
  });
});

test("gdpo tells the score function the experiment's name", async () => {
  const computeScore = ({ extraInfo }: { extraInfo: Record<string, unknown> }): object => ({
    score: 1,
    ...extraInfo,
  });
  const registry = createDefaultRegistry();
  expect(registry.names()).toEqual(["naive", "dapo", "gdpo"]);
  const sample = { dataSource: "mine", response: "x", groundTruth: "", extraInfo: { index: 2 } };
  const named = await registry.create("gdpo", {
    computeScore: computeScore as never,
    options: { experimentName: "one" },
  });
  expect((await named.runSingle(sample)).rewardExtraInfo).toEqual({
    score: 1,
    index: 2,
    experimentName: "one",
    experiment_name: "one",
  });
  const nameless = new GdpoRewardManager({ computeScore: computeScore as never });
  expect((await nameless.runSingle(sample)).rewardExtraInfo).toMatchObject({
    experimentName: null,
    experiment_name: null,
  });
  const ofRow = { ...sample, extraInfo: { experiment_name: "two" } };
  expect((await nameless.runSingle(ofRow)).rewardExtraInfo).toMatchObject({
    experimentName: "two",
    experiment_name: "two",
  });
  expect(() => new GdpoRewardManager({ options: { experimentName: 5 } })).toThrow(
    expect.objectContaining({ code: "INVALID_MANAGER_OPTION", option: "experimentName" }),
  );
});
