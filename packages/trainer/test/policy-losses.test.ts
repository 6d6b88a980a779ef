/** Every policy loss and way to put losses together: verl's own numbers and gradients (test/golden/policy-losses.json), bad input. */
import { type Tensor, tensor } from "@rayling/data-proto";
import {
  aggLoss,
  createPolicyLossRegistry,
  decoupled,
  type DecoupledBatch,
  type DecoupledSettings,
  type GlobalBatchInfo,
  type LossAggMode,
  type PolicyLossBatch,
  type PolicyLossResult,
  type PolicyLossSettings,
  reinforce,
  TrainerInputError,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import { matrixOf, rowSums, tensorOf } from "../src/algorithms/matrix.ts";
import { type Adapter, camelCased, checkGolden, type GoldenCase, nestedOf } from "./golden.ts";

const registry = createPolicyLossRegistry();

/** verl's config class asks for weights of rows where its functions, and its config files, ask for none. */
const ofClass = { rollout_is: "sequence" };

function tensorsOf({ inputs }: GoldenCase): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(camelCased(inputs))
      .filter(([key, value]) => key !== "randperm" && value !== null)
      .map(([key, value]) => [key, tensor(nestedOf(value), "float32")]),
  );
}

function settingsOf({ params, inputs }: GoldenCase): PolicyLossSettings {
  const { config = {}, ...rest } = params as { config?: Readonly<Record<string, unknown>> };
  const {
    policy_loss: policyLoss = {},
    global_batch_info: info,
    ...actor
  } = config as {
    policy_loss?: Readonly<Record<string, unknown>>;
    global_batch_info?: Readonly<Record<string, unknown>>;
  };
  const { rollout_correction: rolloutCorrection, ...ofLoss } = policyLoss as {
    rollout_correction?: object;
  };
  return {
    ...camelCased({ ...rest, ...actor, ...ofLoss }),
    ...(rolloutCorrection === undefined
      ? {}
      : { rolloutCorrection: camelCased({ ...ofClass, ...rolloutCorrection }) }),
    ...(info === undefined ? {} : { globalBatchInfo: camelCased(info) }),
    ...(inputs["randperm"] === undefined
      ? {}
      : { permutation: () => inputs["randperm"] as number[] }),
  };
}

/** The older functions name their ranges otherwise; without an own one, both sides have the same. */
function rangesOf({ params }: GoldenCase): DecoupledSettings {
  const { cliprange, cliprange_low: low, cliprange_high: high, mask_dtype: _, ...rest } = params;
  return {
    ...camelCased(rest),
    clipRatio: cliprange as number,
    clipRatioLow: (low ?? null) as number | null,
    clipRatioHigh: (high ?? null) as number | null,
  };
}

const resultOf = ({ loss, gradLogProb, metrics }: PolicyLossResult): Record<string, unknown> => ({
  loss,
  grad_log_prob: gradLogProb,
  metrics,
});
const batchOf = (golden: GoldenCase): PolicyLossBatch =>
  tensorsOf(golden) as unknown as PolicyLossBatch;

/**
 * The recipe stands on verl 0.5.0, whose agg_loss means rows without tokens, too: seq-mean-token-mean divides by their length of 0, seq-mean-token-sum-norm does not divide
 * by rows at all, and the mean of no token is 0. Ours is 0.10.0's; by its losses of single rows the older way is worked out here.
 */
function inOlderWay(batch: DecoupledBatch, settings: DecoupledSettings): PolicyLossResult {
  const { lossAggMode = "token-mean", ...rest } = settings;
  const mask = matrixOf("responseMask", batch.responseMask);
  const lengths = rowSums(mask);
  const tokens = lengths.reduce((sum, one) => sum + one, 0);
  const weightOf = (row: number): number => {
    switch (lossAggMode) {
      case "seq-mean-token-sum":
        return 1 / mask.rows;
      case "seq-mean-token-sum-norm":
        return 1 / mask.columns;
      case "seq-mean-token-mean":
        return 1 / mask.rows / (lengths[row] as number);
      default:
        return 1 / (tokens + 1e-8);
    }
  };
  const only = (row: number): PolicyLossBatch["responseMask"] => ({
    ...batch.responseMask,
    data: batch.responseMask.data.map((one, at) =>
      Math.floor(at / mask.columns) === row ? one : 0,
    ),
  });
  const sums = Array.from(
    lengths,
    (_, row) =>
      decoupled({ ...batch, responseMask: only(row) }, { ...rest, lossAggMode: "token-sum" }).loss,
  );
  const { gradLogProb, metrics } = decoupled(batch, { ...rest, lossAggMode: "token-sum" });
  // What is clipped has no gradient, whatever it is multiplied by.
  const { behavImpWeightCap: _, ...open } = rest;
  const everywhere = { ...batch.responseMask, data: batch.responseMask.data.map(() => 1) };
  const slopes = decoupled(
    { ...batch, responseMask: everywhere },
    { ...open, lossAggMode: "token-sum" },
  );
  const gradientAt = (one: number, at: number): number =>
    slopes.gradLogProb.data[at] === 0 ? 0 : one * weightOf(Math.floor(at / mask.columns));
  return {
    loss: sums.reduce((total, sum, row) => total + sum * weightOf(row), 0),
    gradLogProb: { ...gradLogProb, data: gradLogProb.data.map(gradientAt) },
    metrics,
  };
}

const losses = registry
  .names()
  .map((name): [string, Adapter] => [
    name,
    (golden) => resultOf(registry.get(name)(batchOf(golden), settingsOf(golden))),
  ]);

checkGolden(
  goldenFile("policy-losses.json"),
  {
    ...Object.fromEntries(losses),

    compute_policy_loss_reinforce: (golden) =>
      resultOf(reinforce(batchOf(golden), settingsOf(golden))),

    compute_policy_loss(golden) {
      const result = registry.get("vanilla")(batchOf(golden), rangesOf(golden));
      const plain = Object.entries(result.metrics).map(([key, value]) => [
        key.replace("actor/", ""),
        value,
      ]);
      return { ...resultOf(result), metrics: Object.fromEntries(plain) };
    },

    "compute_decoupled_policy_loss@newest_agg_loss": (golden) =>
      resultOf(decoupled(tensorsOf(golden) as unknown as DecoupledBatch, rangesOf(golden))),

    compute_decoupled_policy_loss: (golden) =>
      resultOf(inOlderWay(tensorsOf(golden) as unknown as DecoupledBatch, rangesOf(golden))),

    agg_loss(golden) {
      const { lossMat, lossMask } = tensorsOf(golden) as Record<"lossMat" | "lossMask", Tensor>;
      const { lossAggMode, mask_dtype: _, ...info } = camelCased(golden.params);
      const given = Object.entries(info).filter(([, value]) => value !== null);
      const { loss, weights } = aggLoss(
        matrixOf("lossMat", lossMat),
        matrixOf("lossMask", lossMask),
        lossAggMode as LossAggMode,
        Object.fromEntries(given) as GlobalBatchInfo,
      );
      return { loss, grad_loss_mat: tensorOf(weights) };
    },

    get_policy_loss_fn: ({ params }) => ({ name: registry.get(params["name"] as string).name }),
  },
  {
    "compute_decoupled_policy_loss/no-cap-integer-mask":
      "torch.where asks for a mask of bool; a mask has any dtype here",
  },
);

describe("decoupled, as a loss_mode", () => {
  const batch = {
    logProb: tensor([[-1, -2, -0.5]], "float32"),
    oldLogProb: tensor([[-1.2, -1.9, -0.6]], "float32"),
    advantages: tensor([[1, -1, 2]], "float32"),
    responseMask: tensor([[1, 1, 1]], "int32"),
  };
  const rolloutLogProbs = tensor([[-1.5, -2.2, -4]], "float32");
  const byRecipe = {
    ...batch,
    proximalLogProb: batch.oldLogProb,
    behavLogProb: rolloutLogProbs,
  };

  test("is the recipe's, with its cap, against what the rollout said", () => {
    const { metrics, ...result } = registry.get("decoupled")({ ...batch, rolloutLogProbs });
    const { metrics: named, ...expected } = decoupled(byRecipe, { behavImpWeightCap: 5 });
    expect(result).toEqual(expected);
    // The last token is 30 times as likely as it was.
    expect(result.gradLogProb.data[2]).toBeCloseTo(0, 12);
    expect(metrics).toEqual(
      Object.fromEntries(Object.entries(named).map(([name, value]) => [`actor/${name}`, value])),
    );
    const open = { behavImpWeightCap: 50 };
    expect(registry.get("decoupled")({ ...batch, rolloutLogProbs }, open).loss).toBe(
      decoupled(byRecipe, open).loss,
    );
  });

  test("needs it", () => {
    expect(() => registry.get("decoupled")(batch)).toThrow(
      "rolloutLogProbs are missing, which decoupled needs",
    );
  });
});

test("what kl_cov is not told is as verl has it", () => {
  const batch = {
    logProb: tensor([[-1, -2]], "float32"),
    oldLogProb: tensor([[-1.5, -1]], "float32"),
    advantages: tensor([[1, -1]], "float32"),
    responseMask: tensor([[1, 1]], "int32"),
  };
  const lossOf = (settings: PolicyLossSettings): PolicyLossResult =>
    registry.get("kl_cov")(batch, settings);
  expect(lossOf({})).toEqual(lossOf({ klCovRatio: 0.0002, ppoKlCoef: 0.1 }));
  expect(lossOf({})).not.toEqual(lossOf({ ppoKlCoef: 1 }));
});

describe("bad input", () => {
  test("of another shape, or out of range, is named", () => {
    const batch = {
      logProb: tensor([[1, 2]], "float32"),
      oldLogProb: tensor([[1]], "float32"),
      advantages: tensor([[1, 2]], "float32"),
      responseMask: tensor([[1, 1]], "int32"),
    };
    expect(() => registry.get("vanilla")(batch)).toThrow(
      "oldLogProb must have shape [1, 2]; it has [1, 1]",
    );
    const whole = { ...batch, oldLogProb: batch.logProb };
    expect(() => registry.get("vanilla")(whole, { clipRatioC: 1 })).toThrow(TrainerInputError);
    expect(() => registry.get("dro")(whole, {})).toThrow(
      "droBeta must be above 0 for dro; it is missing",
    );
    expect(() => registry.get("kl_cov")(whole, { klCovRatio: 0 })).toThrow("klCovRatio");
    for (const rolloutCorrection of [undefined, null]) {
      const settings = { rolloutCorrection } as object;
      expect(() => registry.get("bypass_mode")(whole, settings)).toThrow(
        "rolloutCorrection is missing",
      );
    }
    expect(() => registry.get("gpg")(whole, { lossAggMode: "mean" as never })).toThrow(
      'loss_agg_mode "mean"',
    );
    expect(() => registry.register("vanilla", registry.get("gpg"))).toThrow('"vanilla"');
  });

  test.each(registry.names())(
    "a token that counts and is no number is never left out: %s",
    (name) => {
      const log = (first: number): Tensor => tensor([[first, -1, -1]], "float32");
      const settings = { droBeta: 1, rolloutCorrection: { bypassMode: true } };
      for (const advantage of [1, -1, 0]) {
        for (const [own, old] of [
          [NaN, -1],
          [-1, NaN],
        ] as const) {
          const batch = {
            logProb: log(own),
            oldLogProb: log(old),
            rolloutLogProbs: log(old),
            advantages: tensor([[advantage, 1, -1]], "float32"),
            responseMask: tensor([[1, 1, 1]], "int32"),
          };
          // gpg does not look at the old one.
          const isUsed = name !== "gpg" || Number.isNaN(own);
          expect([own, old, advantage, registry.get(name)(batch, settings).loss]).toEqual([
            own,
            old,
            advantage,
            isUsed ? NaN : expect.any(Number),
          ]);
        }
      }
    },
  );

  test("no token at all: NaN where there is nothing to divide by, and no gradient", () => {
    const empty = {
      logProb: tensor([[1, 2]], "float32"),
      oldLogProb: tensor([[1, 2]], "float32"),
      advantages: tensor([[1, 2]], "float32"),
      responseMask: tensor([[0, 0]], "int32"),
    };
    const { loss, gradLogProb } = registry.get("vanilla")(empty);
    expect(loss).toBeNaN();
    expect([...gradLogProb.data]).toEqual([0, 0]);
    expect(registry.get("gpg")(empty, { lossAggMode: "token-sum" }).loss).toBe(0);
  });
});
