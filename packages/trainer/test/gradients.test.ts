/** Gradients are finite differences, in the direction in which what verl keeps from the gradient stays the same. */
import { type Tensor, tensor } from "@rayling/data-proto";
import {
  createPolicyLossRegistry,
  decoupled,
  entropyFromLogits,
  entropyLoss,
  klPenalty,
  type KlPenaltyKind,
  logProbsFromLogits,
  type LossAggMode,
  type PolicyLoss,
  type PolicyLossBatch,
  type PolicyLossSettings,
  reinforce,
  sumPiSquaredFromLogits,
  valueLoss,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";

type Rows = readonly (readonly number[])[];
const float64 = (rows: Rows): Tensor => tensor(rows, "float64");
const step = 1e-5;

const now: Rows = [
  [-1.1, -1.7, -0.4],
  [-0.75, -1.1, -3.4],
];
const old: Rows = [
  [-1, -2, -0.5],
  [-0.7, -1.4, -3],
];
const columns = 3;

/** Which log-probs are moved at once: those of a token, now; those of a token, now and before, so that their ratio stays; all of a row. */
type Direction = "token" | "token of both" | "row";

function moved(rows: Rows, row: number, column: number | undefined, by: number): Rows {
  return rows.map((values, at) =>
    values.map((value, place) =>
      at === row && (column === undefined || column === place) ? value + by : value,
    ),
  );
}

function batchOf(logProb: Rows, oldLogProb: Rows): PolicyLossBatch {
  return {
    logProb: float64(logProb),
    oldLogProb: float64(oldLogProb),
    advantages: float64([
      [0.5, 0.5, 0.5],
      [-1.5, -0.5, -1],
    ]),
    responseMask: tensor(
      [
        [1, 1, 0],
        [1, 1, 1],
      ],
      "int32",
    ),
    rolloutIsWeights: float64([
      [1, 0.5, 2],
      [1.5, 1, 0.7],
    ]),
  };
}

const settings: PolicyLossSettings = {
  droBeta: 0.5,
  klCovRatio: 0.4,
  ppoKlCoef: 0.3,
  clipCovRatio: 0.4,
  clipCovLb: -10,
  clipCovUb: 10,
  permutation: (count) => Array.from({ length: count }, (_, at) => at),
};
const registry = createPolicyLossRegistry();

const decoupledFromOld: PolicyLoss = ({ logProb, oldLogProb, advantages, responseMask }, own) =>
  decoupled(
    {
      logProb,
      advantages,
      responseMask,
      proximalLogProb: oldLogProb,
      behavLogProb: float64([
        [-1.2, -1.9, -0.5],
        [-0.6, -1.5, -2],
      ]),
    },
    own,
  );
const bypass =
  (rolloutCorrection: NonNullable<PolicyLossSettings["rolloutCorrection"]>): PolicyLoss =>
  (batch, own) =>
    registry.get("bypass_mode")(batch, { ...own, rolloutCorrection });

const subjects: Readonly<Record<string, readonly [PolicyLoss, Direction]>> = {
  vanilla: [registry.get("vanilla"), "token"],
  dppo_tv: [registry.get("dppo_tv"), "token of both"],
  dppo_kl: [registry.get("dppo_kl"), "token of both"],
  gspo: [registry.get("gspo"), "row"],
  sapo: [registry.get("sapo"), "token"],
  gpg: [registry.get("gpg"), "token"],
  clip_cov: [registry.get("clip_cov"), "token"],
  kl_cov: [registry.get("kl_cov"), "token"],
  geo_mean: [registry.get("geo_mean"), "token"],
  dro: [registry.get("dro"), "token"],
  cispo: [registry.get("cispo"), "token of both"],
  bypass_mode: [bypass({ rolloutRs: "token_k1", rolloutRsThreshold: "0.75_1.2" }), "token"],
  "bypass_mode, reinforce": [
    bypass({ lossType: "reinforce", rolloutIs: "sequence", rolloutIsThreshold: 5 }),
    "token of both",
  ],
  reinforce: [reinforce, "token"],
  decoupled: [decoupledFromOld, "token"],
};

const modes: readonly LossAggMode[] = [
  "token-mean",
  "token-sum",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
  "seq-mean-token-mean",
];

test("no policy loss is left out", () => {
  expect(registry.names().filter((name) => !Object.hasOwn(subjects, name))).toEqual([]);
});

describe.each(Object.entries(subjects))("%s", (_name, [loss, direction]) => {
  test.each(modes)("%s", (lossAggMode) => {
    const own = { ...settings, lossAggMode };
    const gradient = loss(batchOf(now, old), own).gradLogProb.data;
    expect(gradient.some((one) => one !== 0)).toBe(true);
    for (const [row, values] of now.entries()) {
      const places = direction === "row" ? [undefined] : [...values.keys()];
      for (const column of places) {
        const lossAt = (by: number): number =>
          loss(
            batchOf(
              moved(now, row, column, by),
              direction === "token of both" ? moved(old, row, column, by) : old,
            ),
            own,
          ).loss;
        const slope = (lossAt(step) - lossAt(-step)) / (2 * step);
        const start = columns * row;
        const inRow = gradient.subarray(start, start + columns);
        const got = column === undefined ? inRow.reduce((sum, one) => sum + one, 0) : inRow[column];
        expect(got).toBeCloseTo(slope, 5);
      }
    }
  });
});

test("a ratio is kept within exp(20), and has no gradient beyond", () => {
  const batch = {
    oldLogProb: float64([[-26, -26]]),
    logProb: float64([[-1, -6.5]]),
    advantages: float64([[-1, -1]]),
    responseMask: tensor([[1, 1]], "int32"),
  };
  const unclipped = { clipRatioC: 1e12, lossAggMode: "token-sum" as const };
  const { loss, gradLogProb } = registry.get("vanilla")(batch, unclipped);
  expect(loss / (Math.exp(20) + Math.exp(19.5))).toBeCloseTo(1, 6);
  expect(gradLogProb.data[0]).toBe(0);
  expect((gradLogProb.data[1] as number) / Math.exp(19.5)).toBeCloseTo(1, 6);
});

test.each(modes)("the value loss, %s", (lossAggMode) => {
  const lossOf = (vpreds: Rows): ReturnType<typeof valueLoss> =>
    valueLoss(
      {
        vpreds: float64(vpreds),
        values: float64(old),
        returns: float64([
          [0, -1, 0],
          [-1, -2, -3],
        ]),
        responseMask: batchOf(now, old).responseMask,
      },
      { cliprangeValue: 0.25, lossAggMode },
    );
  const gradient = lossOf(now).gradVpreds.data;
  for (const at of gradient.keys()) {
    const lossAt = (by: number): number =>
      lossOf(moved(now, Math.floor(at / columns), at % columns, by)).loss;
    expect(gradient[at]).toBeCloseTo((lossAt(step) - lossAt(-step)) / (2 * step), 5);
  }
});

test.each<KlPenaltyKind>(["kl", "abs", "mse", "low_var_kl", "k2+"])("KL, %s", (kind) => {
  const gradient = klPenalty(float64(now), float64(old), kind).gradLogProb.data;
  // Values are float32: the step is as large as they are exact.
  const wide = 1e-2;
  for (const at of gradient.keys()) {
    const klAt = (by: number): number =>
      klPenalty(float64(moved(now, Math.floor(at / columns), at % columns, by)), float64(old), kind)
        .kl.data[at] as number;
    expect(gradient[at]).toBeCloseTo((klAt(wide) - klAt(-wide)) / (2 * wide), 3);
  }
});

describe("of logits", () => {
  const logits: Rows = [
    [0.5, -1, 2, 0.1],
    [1, 1.5, -2, 0.3],
  ];
  const mask = tensor([[1, 1]], "int32");
  const asTokens = (rows: Rows): Tensor => tensor([rows], "float64");
  const labels = tensor([[2, 0]], "int32");
  const functions: Readonly<
    Record<string, (rows: Rows) => { readonly sum: number; readonly gradient: Float32Array }>
  > = {
    entropyLoss(rows) {
      const { loss, gradLogits } = entropyLoss(asTokens(rows), mask, "token-sum");
      return { sum: loss, gradient: gradLogits.data };
    },
    entropyFromLogits: (rows) => sumOf(entropyFromLogits(asTokens(rows))),
    logProbsFromLogits: (rows) => sumOf(logProbsFromLogits(asTokens(rows), labels)),
    sumPiSquaredFromLogits: (rows) => sumOf(sumPiSquaredFromLogits(asTokens(rows))),
  };

  test.each(Object.entries(functions))("%s", (_name, work) => {
    const { gradient } = work(logits);
    const wide = 1e-2;
    for (const at of gradient.keys()) {
      const sumAt = (by: number): number => work(moved(logits, Math.floor(at / 4), at % 4, by)).sum;
      expect(gradient[at]).toBeCloseTo((sumAt(wide) - sumAt(-wide)) / (2 * wide), 3);
    }
  });
});

function sumOf({ values, gradLogits }: ReturnType<typeof entropyFromLogits>): {
  readonly sum: number;
  readonly gradient: Float32Array;
} {
  return {
    sum: values.data.reduce((sum, one) => sum + one, 0),
    gradient: gradLogits.data,
  };
}
