/** A row whose score is invalid changes nothing in any loss, and nothing is learnt from it, whatever stands in it. (Of estimators: advantages.test.ts.) */
import { gatherRows, type Tensor, tensor } from "@rayling/data-proto";
import {
  applyKlPenalty,
  createKlController,
  createPolicyLossRegistry,
  type LossAggMode,
  type PolicyLoss,
  type PolicyLossBatch,
  type PolicyLossSettings,
  reinforce,
  TrainerInputError,
  valueLoss,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";

const invalid = 1;
const others = [0, 2, 3];
const valid = [true, false, true, true];
const columns = 3;
const nan = Number.NaN;

const batch: PolicyLossBatch = {
  logProb: tensor(
    [
      [-1.1, -1.7, -0.4],
      [-0.2, -9, -0.1],
      [-0.75, -1.1, -3.4],
      [-2, -0.5, -0.25],
    ],
    "float32",
  ),
  oldLogProb: tensor(
    [
      [-1, -2, -0.5],
      [-4, -1, -6],
      [-0.7, -1.4, -3],
      [-1.8, -0.5, -0.75],
    ],
    "float32",
  ),
  advantages: tensor(
    [
      [0.5, 0.5, 0.5],
      [nan, nan, nan],
      [-1.5, -0.5, -1],
      [1, 1, -2],
    ],
    "float32",
  ),
  responseMask: tensor(
    [
      [1, 1, 0],
      [1, 1, 1],
      [1, 1, 1],
      [1, 0, 1],
    ],
    "int32",
  ),
  rolloutIsWeights: tensor(
    [
      [1, 0.5, 2],
      [50, 0, nan],
      [1.5, 1, 0.7],
      [1, 0.9, 1.1],
    ],
    "float32",
  ),
  rolloutLogProbs: tensor(
    [
      [-1, -2.5, -0.5],
      [-9, nan, 0],
      [-0.5, -1.2, -3.5],
      [-2.5, -0.5, -0.75],
    ],
    "float32",
  ),
};

const settings: PolicyLossSettings = {
  droBeta: 0.5,
  klCovRatio: 0.4,
  ppoKlCoef: 0.3,
  clipCovRatio: 0.4,
  clipCovLb: -10,
  clipCovUb: 10,
  permutation: (count) => Array.from({ length: count }, (_, at) => at),
  rolloutCorrection: {
    lossType: "reinforce",
    rolloutIs: "sequence",
    rolloutIsBatchNormalize: true,
    rolloutRs: "token_k1",
    rolloutRsThreshold: "0.7_1.3",
  },
};
const modes: readonly LossAggMode[] = [
  "token-mean",
  "token-sum",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
  "seq-mean-token-mean",
];

const registry = createPolicyLossRegistry();
const losses: Readonly<Record<string, PolicyLoss>> = {
  ...Object.fromEntries(registry.names().map((name) => [name, registry.get(name)])),
  "bypass_mode, ppo_clip": (some, own) =>
    registry.get("bypass_mode")(some, {
      ...own,
      rolloutCorrection: { ...own?.rolloutCorrection, lossType: "ppo_clip" },
    }),
  reinforce,
};

const valueBatch = {
  vpreds: batch.logProb,
  values: batch.oldLogProb,
  returns: batch.advantages,
  responseMask: batch.responseMask,
};
const cliprangeValue = 0.3;

function rowsOf<T extends Readonly<Record<string, unknown>>>(
  whole: T,
  rows: readonly number[] = others,
): T {
  return Object.fromEntries(
    Object.entries(whole).map(([name, value]) => [name, gatherRows(value as Tensor, rows)]),
  ) as T;
}

/** Of the rows that are there in both; and nothing of the one that is invalid. */
function expectSameGradient(whole: Tensor, alone: Tensor): void {
  expect([...gatherRows(whole, [invalid]).data]).toEqual(Array.from({ length: columns }, () => 0));
  const kept = gatherRows(whole, others).data;
  expect(kept.some((one) => one !== 0)).toBe(true);
  for (const [at, one] of alone.data.entries()) expect(kept[at]).toBeCloseTo(one, 6);
}

describe.each(Object.entries(losses))("%s", (_name, loss) => {
  test.each(modes)("%s", (lossAggMode) => {
    const own = { ...settings, lossAggMode };
    const whole = loss({ ...batch, valid }, own);
    const alone = loss(rowsOf(batch as never), own);
    expect(whole.loss).toBeCloseTo(alone.loss, 9);
    expectSameGradient(whole.gradLogProb, alone.gradLogProb);
    for (const [metric, value] of Object.entries(alone.metrics)) {
      expect(whole.metrics[metric], metric).toBeCloseTo(value, 6);
    }
  });
});

describe.each([
  ["all but one", [true, false, false, false]],
  ["all", [false, false, false, false]],
])("where the scores of %s are invalid", (_what, someValid) => {
  const rows = [...someValid.keys()].filter((row) => someValid[row]);
  const invalidRows = [...someValid.keys()].filter((row) => !someValid[row]);
  const zeros = (count: number): number[] => Array.from({ length: count * columns }, () => 0);

  test.each(Object.entries(losses))("%s", (_name, loss) => {
    for (const lossAggMode of modes) {
      const own = { ...settings, lossAggMode };
      const whole = loss({ ...batch, valid: someValid }, own);
      expect([...gatherRows(whole.gradLogProb, invalidRows).data]).toEqual(
        zeros(invalidRows.length),
      );
      const alone = rows.length === 0 ? { loss: 0 } : loss(rowsOf(batch as never, rows), own);
      expect(whole.loss).toBeCloseTo(alone.loss, 9);
    }
  });

  test("the value loss", () => {
    for (const lossAggMode of modes) {
      const whole = valueLoss({ ...valueBatch, valid: someValid }, { cliprangeValue, lossAggMode });
      expect([...gatherRows(whole.gradVpreds, invalidRows).data]).toEqual(
        zeros(invalidRows.length),
      );
      const alone =
        rows.length === 0
          ? { loss: 0 }
          : valueLoss(rowsOf(valueBatch, rows), { cliprangeValue, lossAggMode });
      expect(whole.loss).toBeCloseTo(alone.loss, 9);
    }
  });
});

test.each(modes)("the value loss, %s", (lossAggMode) => {
  const own = { cliprangeValue, lossAggMode };
  const whole = valueLoss({ ...valueBatch, valid }, own);
  const alone = valueLoss(rowsOf(valueBatch), own);
  expect(whole.loss).toBeCloseTo(alone.loss, 9);
  expect(whole.clipfrac).toBeCloseTo(alone.clipfrac, 6);
  expectSameGradient(whole.gradVpreds, alone.gradVpreds);
});

test("the divergence in the reward, and what its coefficient comes to", () => {
  const settled = (some: Parameters<typeof applyKlPenalty>[0]): unknown[] => {
    const controller = createKlController({ type: "adaptive", klCoef: 0.5, horizon: 10 });
    const { tokenLevelRewards, metrics } = applyKlPenalty(some, controller);
    return [tokenLevelRewards, metrics, controller.value];
  };
  const rows = {
    tokenLevelScores: batch.responseMask,
    oldLogProbs: batch.logProb,
    refLogProb: batch.oldLogProb,
    responseMask: batch.responseMask,
  };
  const [whole, metrics, klCoef] = settled({ ...rows, valid });
  const [alone, ...told] = settled(rowsOf(rows));
  expect([metrics, klCoef]).toEqual(told);
  expect(klCoef).not.toBe(0.5);
  expect(gatherRows(whole as Tensor, others)).toEqual(alone);
  // Nothing is taken off it.
  expect([...gatherRows(whole as Tensor, [invalid]).data]).toEqual([1, 1, 1]);
  const [, none, kept] = settled({ ...rows, valid: valid.map(() => false) });
  expect(none).toMatchObject({ "actor/reward_kl_penalty": 0 });
  expect(kept).toBe(0.5);
});

test("each row is valid, or not", () => {
  expect(() => registry.get("vanilla")({ ...batch, valid: [true] })).toThrow(TrainerInputError);
});
