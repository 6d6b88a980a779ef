/** Registry rules, class initialisation and the naive manager. */

import { describe, expect, test } from "vitest";
import {
  createDefaultRegistry,
  createRegistry,
  NaiveRewardManager,
} from "@rayling/reward-manager-registry";
import type {
  RewardManager,
  RewardManagerArguments,
  RewardManagerClass,
  RewardResult,
  RewardSample,
} from "@rayling/reward-manager-registry";

class Constant implements RewardManager {
  async runSingle(): Promise<RewardResult> {
    return { rewardScore: 7, rewardExtraInfo: {} };
  }
}
class Other extends Constant {}

const sample: RewardSample = { dataSource: "openai/gsm8k", response: "#### 18", groundTruth: "18" };

describe("names", () => {
  test("register returns the class, get finds it, names keep their order", () => {
    const registry = createRegistry();
    expect(registry.names()).toEqual([]);
    expect(registry.register("b", Constant)).toBe(Constant);
    registry.register("a", Other);
    expect(registry.get("b")).toBe(Constant);
    expect(registry.has("a")).toBe(true);
    expect(registry.names()).toEqual(["b", "a"]);
  });

  test("the same class under the same name again is fine", () => {
    const registry = createRegistry();
    registry.register("one", Constant);
    expect(registry.register("one", Constant)).toBe(Constant);
    expect(registry.names()).toEqual(["one"]);
  });

  test("another class under a taken name is an error that names both, and the first stays", () => {
    const registry = createRegistry();
    registry.register("one", Constant);
    expect(() => registry.register("one", Other)).toThrow(
      /"one" is Constant already; Other was not/,
    );
    expect(() => registry.register("one", Other)).toThrow(
      expect.objectContaining({
        code: "REWARD_MANAGER_CONFLICT",
        managerName: "one",
        kept: "Constant",
        refused: "Other",
      }),
    );
    expect(registry.get("one")).toBe(Constant);
  });

  test("an unknown name is an error that lists the known; names are case sensitive", () => {
    const registry = createDefaultRegistry();
    for (const name of ["Naive", "NAIVE", "nope", "", "constructor", "__proto__"]) {
      expect(registry.has(name)).toBe(false);
      expect(() => registry.get(name)).toThrow(
        expect.objectContaining({
          code: "UNKNOWN_REWARD_MANAGER",
          managerName: name,
          known: ["naive", "dapo", "gdpo"],
          message: expect.stringContaining("Known: naive, dapo, gdpo"),
        }),
      );
    }
    expect(() => createRegistry().get("x")).toThrow("Known: none");
  });

  test("two registries know nothing of each other", () => {
    createDefaultRegistry().register("mine", Constant);
    expect(createDefaultRegistry().names()).toEqual(["naive", "dapo", "gdpo"]);
  });
});

function counting(failures = 0): {
  managerClass: RewardManagerClass;
  seen: RewardManagerArguments[];
} {
  const seen: RewardManagerArguments[] = [];
  class Counting extends Constant {
    static async initClass(args: RewardManagerArguments): Promise<void> {
      seen.push(args);
      if (seen.length <= failures) throw new Error(`start ${seen.length}`);
    }
  }
  return { managerClass: Counting, seen };
}

describe("create", () => {
  test("initClass runs once per registry, before the first instance, with its arguments", async () => {
    const { managerClass, seen } = counting();
    const registry = createRegistry();
    registry.register("counting", managerClass);
    const first = { options: { n: 1 } };
    const managers = await Promise.all([
      registry.create("counting", first),
      registry.create("counting"),
      registry.create(managerClass),
    ]);
    expect(new Set(managers).size).toBe(3);
    expect(seen).toEqual([first]);
    await createRegistry().create(managerClass);
    expect(seen).toHaveLength(2);
  });

  test("an initClass that failed is tried again", async () => {
    const { managerClass, seen } = counting(1);
    const registry = createRegistry();
    await expect(
      Promise.all([registry.create(managerClass), registry.create(managerClass)]),
    ).rejects.toThrow("start 1");
    await expect(registry.create(managerClass)).resolves.toBeInstanceOf(managerClass);
    await registry.create(managerClass);
    expect(seen).toHaveLength(2);
  });

  test("a class without runSingle is refused by name", async () => {
    class Empty {
      readonly score = 1;
    }
    const managerClass = Empty as unknown as RewardManagerClass;
    await expect(createRegistry().create(managerClass)).rejects.toMatchObject({
      code: "INVALID_REWARD_MANAGER",
      className: "Empty",
    });
  });

  test.each([
    ["naive", { computescore: () => 1 }, "computescore", "one of computeScore, tokenizer, options"],
    ["dapo", { options: { maxResponseLen: 8 } }, "maxResponseLen", "one of maxRespLen, overlong"],
    ["gdpo", { options: { experiment: "x" } }, "experiment", "one of experimentName"],
    ["naive", { options: { penalty: 1 } }, "penalty", "left out"],
    ["naive", { options: "penalty" }, "options", "an object"],
  ])("%s with %j: %s must be %s", async (manager, args, option, expected) => {
    await expect(createDefaultRegistry().create(manager, args as never)).rejects.toMatchObject({
      code: "INVALID_MANAGER_OPTION",
      manager,
      option,
      message: expect.stringContaining(
        `Option ${option} of reward manager "${manager}" must be ${expected}`,
      ),
    });
  });

  test("a class of the user's own has options that nobody else knows, and the same arguments", async () => {
    class Own extends NaiveRewardManager {}
    const { managerClass, seen } = counting();
    const registry = createRegistry();
    await registry.create(Own, { options: { penalty: 1 } });
    await registry.create(managerClass, { options: { penalty: 1 } });
    const misspelt = registry.create(managerClass, { option: {} } as never);
    await expect(misspelt).rejects.toMatchObject({ manager: "Counting", option: "option" });
    expect(seen).toHaveLength(1);
    expect(() => new NaiveRewardManager({ tokeniser: undefined } as never)).toThrow(
      expect.objectContaining({ manager: "naive", option: "tokeniser" }),
    );
  });

  test("an unknown name rejects", async () => {
    await expect(createRegistry().create("x")).rejects.toMatchObject({
      code: "UNKNOWN_REWARD_MANAGER",
    });
  });
});

describe("naive", () => {
  test("scores with verl's default function when none is given", async () => {
    const manager = await createDefaultRegistry().create("naive");
    await expect(manager.runSingle(sample)).resolves.toEqual({
      rewardScore: 1,
      rewardExtraInfo: { acc: 1 },
    });
    await expect(manager.runSingle({ ...sample, dataSource: "mine" })).rejects.toMatchObject({
      code: "UNKNOWN_DATA_SOURCE",
    });
    await expect(manager.runSingle({ ...sample, groundTruth: 18 })).rejects.toMatchObject({
      code: "INVALID_SAMPLE",
      field: "groundTruth",
    });
  });

  const seeExtraInfo = new NaiveRewardManager({
    computeScore: ({ extraInfo }) => ({ score: 1, extraInfo }),
  });

  test("merges tool fields, turns and rollout scores into a copy of extraInfo", async () => {
    const extraInfo = Object.freeze({ index: 3, tool_a: "old" });
    const { rewardExtraInfo } = await seeExtraInfo.runSingle({
      ...sample,
      extraInfo,
      toolExtraFields: { tool_a: "new", numTurns: 99 },
      numTurns: 2,
      rolloutRewardScores: { turn: [1] },
    });
    expect(rewardExtraInfo["extraInfo"]).toEqual({
      index: 3,
      tool_a: "new",
      numTurns: 2,
      num_turns: 2,
      rolloutRewardScores: { turn: [1] },
      rollout_reward_scores: { turn: [1] },
    });
  });

  test("says null turns and no rollout scores where the rollout said nothing", async () => {
    const { rewardExtraInfo } = await seeExtraInfo.runSingle(sample);
    expect(rewardExtraInfo["extraInfo"]).toStrictEqual({
      numTurns: null,
      num_turns: null,
      rolloutRewardScores: {},
      rollout_reward_scores: {},
    });
  });

  test("takes them out of the row, in either spelling, where the sample does not say", async () => {
    const facts = { num_turns: 6, rollout_reward_scores: { tool: [1] } };
    const fromVerl = await seeExtraInfo.runSingle({ ...sample, extraInfo: facts });
    expect(fromVerl.rewardExtraInfo["extraInfo"]).toEqual({
      ...facts,
      numTurns: 6,
      rolloutRewardScores: { tool: [1] },
    });
    const inCamel = await seeExtraInfo.runSingle({ ...sample, extraInfo: { numTurns: 5 } });
    expect(inCamel.rewardExtraInfo["extraInfo"]).toMatchObject({ numTurns: 5, num_turns: 5 });
    const said = await seeExtraInfo.runSingle({ ...sample, extraInfo: facts, numTurns: 2 });
    expect(said.rewardExtraInfo["extraInfo"]).toMatchObject({ numTurns: 2, num_turns: 2 });
  });

  test("rows that share one extraInfo do not see each other's changes", async () => {
    const shared = { seen: [] as string[] };
    const manager = new NaiveRewardManager({
      computeScore: async ({ extraInfo, solutionStr }) => {
        const seen = extraInfo["seen"] as string[];
        seen.push(solutionStr);
        await Promise.resolve();
        return seen.length;
      },
    });
    const results = await Promise.all(
      ["a", "b", "c"].map(
        async (response) => await manager.runSingle({ ...sample, response, extraInfo: shared }),
      ),
    );
    expect(results.map((result) => result.rewardScore)).toEqual([1, 1, 1]);
    expect(shared.seen).toEqual([]);
  });
});
