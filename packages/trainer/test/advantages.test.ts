/** Every advantage estimator: verl's own numbers (test/golden/advantages.json), rows that are not valid, and bad input. */
import { asTensor, gatherRows, type Tensor, tensor, zeros } from "@rayling/data-proto";
import {
  type AdvantageBatch,
  type AdvantageSettings,
  createAdvantageRegistry,
  drawRows,
  pfPpoWeights,
  TrainerInputError,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import { type Adapter, camelCased, checkGolden, type GoldenCase, nestedOf } from "./golden.ts";

const registry = createAdvantageRegistry();

const matrices = {
  token_level_rewards: "tokenLevelRewards",
  response_mask: "responseMask",
  values: "values",
  reward_baselines: "rewardBaselines",
  old_log_probs: "oldLogProbs",
  sum_pi_squared: "sumPiSquared",
  rollout_is_weights: "rolloutIsWeights",
} as const;

function batchOf({ inputs }: GoldenCase): AdvantageBatch {
  const tensors = Object.entries(matrices).flatMap(([theirs, ours]) =>
    inputs[theirs] === undefined || inputs[theirs] === null
      ? []
      : [[ours, tensor(nestedOf(inputs[theirs]), "float32")] as const],
  );
  return {
    ...Object.fromEntries(tensors),
    ...(inputs["index"] === undefined ? {} : { groups: inputs["index"] }),
    ...(inputs["reward_components"] === undefined
      ? {}
      : { rewardComponents: inputs["reward_components"] }),
  } as unknown as AdvantageBatch;
}

function settingsOf({ params }: GoldenCase): AdvantageSettings {
  const { config, ...own } = params as { config?: Readonly<Record<string, unknown>> };
  return camelCased({ ...own, ...config });
}

const noSpread =
  "verl refuses to whiten one token; here its advantage is 0, and the training goes on";

const estimators = registry
  .names()
  .map((name): [string, Adapter] => [
    name,
    (golden) => ({ ...registry.get(name)(batchOf(golden), settingsOf(golden)) }),
  ]);

checkGolden(
  goldenFile("advantages.json"),
  {
    ...Object.fromEntries(estimators),

    /** Which rows torch draws is its own: their weights must be verl's, and the rows that it drew must be found by them. */
    compute_pf_ppo_reweight_data({ inputs, params, expected }) {
      const weights = pfPpoWeights(
        { tokenLevelScores: tensor(nestedOf(inputs["token_level_scores"]), "float32") },
        camelCased(params),
      );
      const sampled = expected["sampled_rows"] as number[];
      const sum = weights.reduce((total, weight) => total + weight, 0);
      let drawn = 0;
      const rows = drawRows(weights, () => {
        const row = sampled[drawn++] as number;
        const before = weights.subarray(0, row).reduce((total, weight) => total + weight, 0);
        return (before + 0.5 * (weights[row] as number)) / sum;
      });
      const tags = Array.from(rows, (row) => (inputs["tag_values"] as string[])[row]);
      return {
        weights: [...weights],
        sampled_rows: [...rows],
        row: [...rows],
        tag: tags,
        meta_per_row: tags,
      };
    },
  },
  {
    "grpo_passk/config-missing": "verl asserts that a config was given; here there is a default",
    "reinforce_plus_plus_baseline/one-valid-token-error": noSpread,
    "gdpo/one-valid-token-error": noSpread,
    "gae/one-valid-token-error": noSpread,
  },
);

const six: AdvantageBatch = {
  tokenLevelRewards: tensor(
    [
      [0, 1],
      [0, 3],
      [0, 2],
      [5, 0],
      [0, 1],
      [0, 4],
    ],
    "float32",
  ),
  responseMask: tensor(
    [
      [1, 1],
      [1, 1],
      [1, 1],
      [1, 0],
      [1, 1],
      [1, 1],
    ],
    "int32",
  ),
  groups: ["a", "a", "a", "b", "b", "b"],
  values: tensor(
    [
      [1, 2],
      [0, 1],
      [2, 2],
      [1, 0],
      [0, 0],
      [1, 1],
    ],
    "float32",
  ),
  rewardBaselines: tensor([1, 1, 1, 2, 2, 2], "float32"),
  oldLogProbs: tensor(
    [
      [-1, -2],
      [-1, -1],
      [-2, -1],
      [-1, -1],
      [-3, -1],
      [-1, -2],
    ],
    "float32",
  ),
  sumPiSquared: tensor(
    [
      [0.5, 0.2],
      [0.3, 0.4],
      [0.5, 0.1],
      [0.2, 0.3],
      [0.4, 0.4],
      [0.1, 0.6],
    ],
    "float32",
  ),
};

/** Some of the rows alone. */
function onlyRows(rows: readonly number[], batch: AdvantageBatch): AdvantageBatch {
  return Object.fromEntries(
    Object.entries(batch).map(([key, value]) => [
      key,
      Array.isArray(value)
        ? rows.map((row) => (value as unknown[])[row])
        : gatherRows(value as Tensor, rows),
    ]),
  ) as unknown as AdvantageBatch;
}

/** The rewards of invalid rows are what nobody should look at. */
function withInvalid(invalid: readonly number[]): AdvantageBatch {
  const { data, shape } = six.tokenLevelRewards;
  const rewards = data.map((one, at) => (invalid.includes(at >> 1) ? Number.NaN : one));
  return {
    ...six,
    tokenLevelRewards: asTensor(rewards, shape),
    valid: Array.from({ length: 6 }, (_, row) => !invalid.includes(row)),
  };
}

describe.each([
  ["one row", [2]],
  ["one of each group", [2, 5]],
  ["all of a group", [0, 1, 2]],
  ["all but two of a group", [1, 3, 4, 5]],
  ["all but one of a group", [3, 4]],
  ["all but one", [0, 1, 2, 3, 4]],
  ["all but one, of one token", [0, 1, 2, 4, 5]],
  ["all rows", [0, 1, 2, 3, 4, 5]],
])("where the scores of %s are invalid", (_what, invalid) => {
  const rows = [0, 1, 2, 3, 4, 5];
  const others = rows.filter((row) => !invalid.includes(row));

  test.each(registry.names())("%s is that of the others, and of these 0", (name) => {
    const estimate = registry.get(name);
    const { advantages } = estimate(withInvalid(invalid));
    expect([...gatherRows(advantages, invalid).data]).toEqual(invalid.flatMap(() => [0, 0]));
    // What is too little to compare was enough before.
    const hasOthers = (row: number): boolean =>
      others.some((other) => other !== row && six.groups?.[other] === six.groups?.[row]);
    const isCompared = !["gae", "reinforce_plus_plus", "remax"].includes(name);
    const isOneToken = name !== "remax" && others.length === 1 && others[0] === 3;
    const left = others.filter((row) => !isOneToken && (!isCompared || hasOthers(row)));
    const lone = others.filter((row) => !left.includes(row));
    expect([...gatherRows(advantages, lone).data]).toEqual(lone.flatMap(() => [0, 0]));
    if (left.length === 0) return;
    const own = [...gatherRows(advantages, left).data];
    const alone = estimate(onlyRows(left, six)).advantages.data;
    for (const [at, value] of own.entries()) expect(value).toBeCloseTo(alone[at] as number, 5);
  });
});

describe("tokens that are too few to be whitened have an advantage of 0", () => {
  const whitening = ["gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gdpo"];
  const withTokens = (count: number): AdvantageBatch => {
    const responseMask = zeros(six.responseMask.shape, "int32");
    responseMask.data.fill(1, 0, count);
    return { ...six, responseMask };
  };

  test.each(registry.names())("of no token at all: %s", (name) => {
    const { advantages } = registry.get(name)(withTokens(0));
    expect([...advantages.data].filter((one) => one !== 0)).toEqual([]);
  });

  test.each(whitening)("of one token: %s", (name) => {
    const { advantages, returns } = registry.get(name)(withTokens(1));
    expect([...advantages.data].filter((one) => one !== 0)).toEqual([]);
    expect(returns.data.every(Number.isFinite)).toBe(true);
  });

  test("a critic learns from one token all the same", () => {
    const tokenLevelRewards = zeros(six.responseMask.shape, "float32");
    tokenLevelRewards.data[0] = 5;
    const { returns } = registry.get("gae")({ ...withTokens(1), tokenLevelRewards });
    expect(returns.data[0]).toBe(5);
  });
});

test("components of invalid rows are not looked at", () => {
  const valid = [true, true, false, true, true, true];
  const a = [1, 2, Number.NaN, 4, 5, 7];
  const settings = { gdpoRewardKeys: ["a"] };
  const { advantages } = registry.get("gdpo")({ ...six, valid, rewardComponents: { a } }, settings);
  const others = [0, 1, 3, 4, 5];
  const alone = registry.get("gdpo")(
    { ...onlyRows(others, six), rewardComponents: { a: a.filter(Number.isFinite) } },
    settings,
  ).advantages.data;
  const own = gatherRows(advantages, others).data;
  expect(own.some((one) => one !== 0)).toBe(true);
  for (const [at, value] of own.entries()) expect(value).toBeCloseTo(alone[at] as number, 5);
});

test("a group that was too small with all of its rows valid is refused beside one with invalid rows", () => {
  const groups = ["a", "a", "b", "b", "b", "c"];
  const valid = [true, false, true, true, true, true];
  expect(() => registry.get("grpo_passk")({ ...six, groups, valid })).toThrow(
    "pass@k needs at least 2 rows of each group; group c has 1",
  );
});

describe("bad input", () => {
  const run = (
    name: string,
    batch: Partial<AdvantageBatch>,
    settings?: AdvantageSettings,
  ): TrainerInputError => {
    try {
      registry.get(name)({ ...six, ...batch }, settings);
    } catch (error) {
      expect(error).toBeInstanceOf(TrainerInputError);
      return error as TrainerInputError;
    }
    throw new Error("it was not refused");
  };

  test("names what is missing, or has another shape", () => {
    const { groups: _, ...groupless } = six;
    expect(() => registry.get("grpo")(groupless)).toThrow("groups of 6 rows are missing");
    expect(run("grpo", { groups: ["a"] }).input).toBe("groups");
    expect(run("gae", { values: tensor([[1]], "float32") }).message).toBe(
      "values must have shape [6, 2]; it has [1, 1]",
    );
    expect(run("grpo", { tokenLevelRewards: tensor([1, 2], "float32") }).message).toContain(
      "[rows, tokens]",
    );
    expect(run("grpo", { valid: [true] }).input).toBe("valid");
    const { rewardBaselines: __, ...greedless } = six;
    expect(() => registry.get("remax")(greedless)).toThrow(
      "remax needs the reward of the greedy answer",
    );
    const { oldLogProbs: ___, ...probless } = six;
    expect(() => registry.get("optimal_token_baseline")(probless)).toThrow(
      "oldLogProbs is missing",
    );
    const settings = { gdpoRewardKeys: ["a", "b"], gdpoRewardWeights: [1] };
    const components = { rewardComponents: { a: [1, 2, 3, 4, 5, 6], b: [1, 2, 3, 4, 5, 6] } };
    expect(run("gdpo", components, settings).input).toBe("gdpoRewardWeights");
    expect(run("gdpo", components, { gdpoRewardKeys: [] }).input).toBe("gdpoRewardKeys");
    expect(run("gdpo", components).input).toBe("gdpoRewardKeys");
    expect(run("gdpo", {}, { gdpoRewardKeys: ["a"] }).input).toBe("rewardComponents");
  });

  test("a registry knows its names, and keeps them", () => {
    const own = createAdvantageRegistry();
    expect(() => own.get("GRPO")).toThrow(
      'there is no advantage estimator "GRPO"; there are gae, grpo',
    );
    const mine = own.get("grpo");
    own.register("mine", mine);
    expect(own.get("mine")).toBe(mine);
    expect(() => own.register("mine", own.get("gae"))).toThrow('"mine"');
    expect(() => registry.get("mine")).toThrow(TrainerInputError);
  });
});
