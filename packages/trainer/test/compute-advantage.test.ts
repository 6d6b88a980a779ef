/** From scores to advantages: each step is the one of its own function, in verl's order; sessions with several outputs; what is missing. */
import { gatherRows, type Tensor, tensor, zeros } from "@rayling/data-proto";
import {
  type AdvantageColumns,
  applyKlPenalty,
  computeAdvantage,
  correctRollouts,
  createAdvantageRegistry,
  createKlController,
  type RolloutCorrectionSettings,
  TrainerInputError,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";

const float = (rows: readonly (readonly number[])[]): Tensor => tensor(rows, "float32");
const columns: AdvantageColumns = {
  tokenLevelScores: float([
    [0, 1],
    [0, 3],
    [2, 0],
    [0, 5],
  ]),
  responseMask: tensor(
    [
      [1, 1],
      [1, 1],
      [1, 0],
      [1, 1],
    ],
    "int32",
  ),
  groups: ["a", "a", "b", "b"],
  oldLogProbs: float([
    [-1, -2],
    [-0.5, -1],
    [-2, -1],
    [-1, -1],
  ]),
  refLogProb: float([
    [-1.5, -1],
    [-1, -1],
    [-1, -1],
    [-2, -3],
  ]),
  rolloutLogProbs: float([
    [-1.1, -2],
    [-0.5, -3],
    [-2, -1],
    [-1, -1.2],
  ]),
  values: float([
    [1, 0],
    [0, 1],
    [1, 1],
    [2, 0],
  ]),
};
const estimator = (name: string): ReturnType<ReturnType<typeof createAdvantageRegistry>["get"]> =>
  createAdvantageRegistry().get(name);

test("scores are rewards where nothing is taken off them", () => {
  const { tokenLevelScores, responseMask, groups } = columns as Required<AdvantageColumns>;
  const result = computeAdvantage(columns, {
    advEstimator: "grpo",
    normAdvByStdInGrpo: false,
  });
  const expected = estimator("grpo")(
    { tokenLevelRewards: tokenLevelScores, responseMask, groups },
    { normAdvByStdInGrpo: false },
  );
  expect(result).toEqual({
    ...expected,
    tokenLevelRewards: tokenLevelScores,
    responseMask,
    metrics: {},
  });
});

test("KL is taken off first, then rollouts are corrected, then the estimator sees both", () => {
  const { oldLogProbs, refLogProb, rolloutLogProbs } = columns as Required<AdvantageColumns>;
  const rolloutCorrection: RolloutCorrectionSettings = {
    rolloutIs: "token",
    rolloutRs: "token_k1",
    rolloutRsThreshold: "0.5_2",
  };
  const klController = createKlController({
    type: "adaptive",
    klCoef: 0.5,
    targetKl: 0.1,
    horizon: 10,
  });
  const result = computeAdvantage(
    columns,
    {
      advEstimator: "reinforce_plus_plus",
      gamma: 0.9,
      useKlInReward: true,
      klPenalty: "low_var_kl",
      rolloutCorrection,
    },
    { klController },
  );
  const { tokenLevelRewards, metrics } = applyKlPenalty(
    { ...columns, oldLogProbs, refLogProb },
    createKlController({ klCoef: 0.5 }),
    "low_var_kl",
  );
  const corrected = correctRollouts(
    { ...columns, oldLogProbs, rolloutLogProbs },
    rolloutCorrection,
  );
  const { responseMask } = corrected;
  expect(responseMask).not.toEqual(columns.responseMask);
  const expected = estimator("reinforce_plus_plus")(
    { tokenLevelRewards, responseMask },
    { gamma: 0.9 },
  );
  expect(result).toEqual({
    ...expected,
    tokenLevelRewards,
    responseMask,
    rolloutIsWeights: corrected.rolloutIsWeights,
    metrics: { ...metrics, ...corrected.metrics },
  });
  expect(klController.value).not.toBe(0.5);
});

test.each([
  ["horizon", { horizon: 0 }],
  ["targetKl", { targetKl: 0 }],
  ["targetKl", { targetKl: Number.NaN }],
])("an adaptive KL controller with such a %s is refused", (input, settings) => {
  expect(() => createKlController({ type: "adaptive", klCoef: 0.1, ...settings })).toThrow(
    expect.objectContaining({ input }),
  );
});

test("in the bypass, and without what the rollout said, nothing is corrected", () => {
  const settings = { advEstimator: "grpo" };
  const bypass = {
    ...settings,
    rolloutCorrection: { rolloutIs: "token", bypassMode: true },
  } as const;
  const { rolloutLogProbs: _, ...silent } = columns;
  const correct = { ...settings, rolloutCorrection: { rolloutIs: "token" } } as const;
  expect(computeAdvantage(columns, bypass)).toEqual(computeAdvantage(columns, settings));
  expect(computeAdvantage(silent, correct)).toEqual(computeAdvantage(silent, settings));
});

test("PF-PPO says which rows to learn from, and never one whose score is invalid", () => {
  let draws = 0;
  const { drawnRows } = computeAdvantage(
    { ...columns, valid: [true, true, true, false] },
    { usePfPpo: true, pfPpo: { reweightMethod: "max_min" } },
    { random: () => (draws++ % 4) / 4 },
  );
  expect(drawnRows).toEqual(Int32Array.of(0, 0, 1, 1));
  expect(() =>
    computeAdvantage(columns, { advEstimator: "grpo", usePfPpo: true }, { random: () => 0 }),
  ).toThrow("usePfPpo goes with gae");
});

test("where no score is valid nothing can be drawn: all rows are there, with nothing to learn", () => {
  const { drawnRows, advantages } = computeAdvantage(
    { ...columns, valid: [false, false, false, false] },
    { usePfPpo: true },
    { random: () => 0 },
  );
  expect(drawnRows).toEqual(Int32Array.of(0, 1, 2, 3));
  expect([...advantages.data]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
});

describe("the correction of rollouts where scores are invalid", () => {
  const settings = {
    advEstimator: "grpo",
    rolloutCorrection: {
      rolloutIs: "token",
      rolloutIsBatchNormalize: true,
      rolloutRs: "token_k1",
      rolloutRsThreshold: "0.5_2",
    },
  } as const;

  test("is that of the other rows", () => {
    const others = [0, 2, 3];
    const whole = computeAdvantage({ ...columns, valid: [true, false, true, true] }, settings);
    const alone = computeAdvantage(
      Object.fromEntries(
        Object.entries(columns).map(([name, value]) => [
          name,
          Array.isArray(value)
            ? others.map((row) => (value as unknown[])[row])
            : gatherRows(value as Tensor, others),
        ]),
      ) as unknown as AdvantageColumns,
      settings,
    );
    const weights = whole.rolloutIsWeights as Tensor;
    expect(whole.metrics).toEqual(alone.metrics);
    expect(gatherRows(whole.responseMask, others)).toEqual(alone.responseMask);
    expect(gatherRows(weights, others)).toEqual(alone.rolloutIsWeights);
    expect([...gatherRows(weights, [1]).data]).toEqual([0, 0]);
    expect(gatherRows(whole.responseMask, [1])).toEqual(gatherRows(columns.responseMask, [1]));
  });

  test("does nothing where all of them are", () => {
    const none = computeAdvantage({ ...columns, valid: [false, false, false, false] }, settings);
    expect(none.responseMask).toEqual(columns.responseMask);
    expect(none.rolloutIsWeights).toEqual(zeros(columns.responseMask.shape, "float32"));
    expect(none.metrics).toEqual({});
  });
});

describe("the correction of rollouts that have no token", () => {
  const rolloutCorrection: RolloutCorrectionSettings = {
    rolloutIs: "token",
    rolloutRs: "token_k1",
    rolloutRsThreshold: 2,
  };
  const silent = { ...columns, responseMask: zeros(columns.responseMask.shape, "int32") };

  test.each([undefined, [true, true, true, true], [true, false, true, true]])(
    "does nothing: rows that are valid are %s",
    (valid) => {
      const rows = valid === undefined ? silent : { ...silent, valid };
      const settings = { advEstimator: "grpo", rolloutCorrection };
      const { responseMask, rolloutIsWeights, metrics } = computeAdvantage(rows, settings);
      expect(responseMask).toEqual(silent.responseMask);
      // As in the other mini-batches of a step, which are joined with it.
      expect(rolloutIsWeights).toEqual(zeros(columns.responseMask.shape, "float32"));
      expect(metrics).toEqual({});
      const unweighted = computeAdvantage(rows, { ...settings, rolloutCorrection: {} });
      expect(unweighted.rolloutIsWeights).toBeUndefined();
    },
  );

  test("is refused where it is asked for by itself, as in verl", () => {
    const { oldLogProbs, rolloutLogProbs } = columns as Required<AdvantageColumns>;
    expect(() => correctRollouts({ ...silent, oldLogProbs, rolloutLogProbs })).toThrow(
      "at least one token of responseMask must count",
    );
  });
});

/** Of verl's tests (test_multi_trajectories_advantage_on_cpu.py). */
describe("sessions with several outputs", () => {
  const many: AdvantageColumns = {
    tokenLevelScores: float([
      [100, 0, 0, 0],
      [1, 2, 3, 4],
      [200, 200, 0, 0],
      [150, 0, 0, 150],
      [4, 5, 6, 7],
      [8, 9, 10, 11],
    ]),
    responseMask: tensor(
      [
        [1, 0, 0, 0],
        [1, 1, 1, 1],
        [1, 0, 1, 0],
        [0, 1, 0, 1],
        [1, 1, 0, 1],
        [0, 0, 0, 0],
      ],
      "int32",
    ),
    groups: ["a", "a", "a", "a", "a", "a"],
    sessions: [0, 0, 2, 2, 3, 4],
    outputIndex: [0, 1, 0, 1, 0, 0],
  };
  const settings = { advEstimator: "grpo" };

  test("of which each has one, are rows", () => {
    const { sessions: _, outputIndex: __, ...plain } = many;
    const single = { ...many, sessions: [0, 1, 2, 3, 4, 5], outputIndex: [0, 0, 0, 0, 0, 0] };
    expect(computeAdvantage(single, settings)).toEqual(computeAdvantage(plain, settings));
  });

  test("have the advantage of the last one", () => {
    const last = [1, 3, 4, 5];
    const alone = estimator("grpo")({
      tokenLevelRewards: gatherRows(many.tokenLevelScores, last),
      responseMask: gatherRows(many.responseMask, last),
      groups: ["a", "a", "a", "a"],
    }).advantages.data;
    const places = [0, 0, 5, 5, 8, 12];
    const expected = Array.from(many.responseMask.data, (weight, at) =>
      weight === 0 ? 0 : (alone[places[Math.floor(at / 4)] as number] as number),
    );
    const { advantages, returns } = computeAdvantage(many, settings);
    expect([...advantages.data]).toEqual(expected);
    expect(returns).toEqual(advantages);
  });

  test("have none where the last one's score is invalid, and leave the others alone", () => {
    const valid = [true, false, true, true, true, true];
    const { advantages } = computeAdvantage({ ...many, valid }, settings);
    expect([...advantages.data.subarray(0, 8)]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    const without = [2, 3, 4, 5];
    const rest = computeAdvantage(
      {
        tokenLevelScores: gatherRows(many.tokenLevelScores, without),
        responseMask: gatherRows(many.responseMask, without),
        groups: ["a", "a", "a", "a"],
        sessions: [2, 2, 3, 4],
        outputIndex: [0, 1, 0, 0],
      },
      settings,
    );
    expect([...advantages.data.subarray(8)]).toEqual([...rest.advantages.data]);
  });

  test("need an index for each row", () => {
    const { outputIndex: _, ...missing } = many;
    expect(() => computeAdvantage(missing, settings)).toThrow("sessions and outputIndex");
  });
});

test("what is missing is named", () => {
  const { refLogProb: _, oldLogProbs: __, ...rest } = columns;
  const klController = createKlController({ klCoef: 0.1 });
  expect(() => computeAdvantage(rest, { useKlInReward: true }, { klController })).toThrow(
    "oldLogProbs is missing, which useKlInReward needs",
  );
  expect(() => computeAdvantage(columns, { useKlInReward: true })).toThrow("klController");
  expect(() => computeAdvantage(columns, { usePfPpo: true })).toThrow("random is missing");
  expect(() => computeAdvantage(columns, { advEstimator: "ppo" })).toThrow(TrainerInputError);
});
