/** Rollout correction: verl's own weights, masks, metrics, bounds and presets (test/golden/rollout-correction.json), and bad input. */
import { type Tensor, tensor } from "@rayling/data-proto";
import {
  bypassed,
  correctRollouts,
  drawRows,
  pfPpoWeights,
  rolloutCorrectionMetrics,
  type RolloutCorrectionPreset,
  rolloutCorrectionPreset,
  type RolloutCorrectionSettings,
  TrainerInputError,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import { type Matrix, matrixOf, newMatrix, tensorOf } from "../src/algorithms/matrix.ts";
import { withDefaults } from "../src/algorithms/rollout-correction/correction-settings.ts";
import { offPolicyMetrics } from "../src/algorithms/rollout-correction/off-policy.ts";
import type { RatioBatch } from "../src/algorithms/rollout-correction/ratio-rows.ts";
import { rejectRollouts } from "../src/algorithms/rollout-correction/rejection.ts";
import { rejectionBandsOf, weightBandOf } from "../src/algorithms/rollout-correction/thresholds.ts";
import {
  rolloutWeights,
  type WeightSettings,
} from "../src/algorithms/rollout-correction/weights.ts";
import { optimizerSettingsOf } from "../src/policy/tiny/optimizer/optimizer-settings.ts";
import { type Adapter, camelCased, checkGolden, type GoldenCase, tensorAt } from "./golden.ts";

const matrixAt = (golden: GoldenCase, name: string): Matrix =>
  matrixOf(name, tensorAt(golden, name));

/** Log ratios against a rollout whose log-probabilities are 0. */
const ratiosAt = (golden: GoldenCase): RatioBatch => {
  const logProb = matrixAt(golden, "log_ratio");
  return {
    logProb,
    rolloutLogProb: newMatrix(logProb.rows, logProb.columns),
    mask: matrixAt(golden, "response_mask"),
  };
};

/** verl's config class asks for weights of rows where its functions, and its config files, ask for none. */
const ofClass = { rollout_is: "sequence" };

function corrected(
  golden: GoldenCase,
  [old, rollout]: readonly [string, string],
  settings: Readonly<Record<string, unknown>>,
): { rollout_is_weights?: Tensor; response_mask: Tensor; metrics: object } {
  const { rolloutIsWeights, responseMask, metrics } = correctRollouts(
    {
      oldLogProbs: tensorAt(golden, old),
      rolloutLogProbs: tensorAt(golden, rollout),
      responseMask: tensorAt(golden, "response_mask"),
    },
    camelCased(settings),
  );
  return {
    ...(rolloutIsWeights === undefined ? {} : { rollout_is_weights: rolloutIsWeights }),
    response_mask: responseMask,
    metrics,
  };
}

const dividesByNothing =
  "verl divides by 0 where all weights are; here they have no effective sample size";

const adapters: Readonly<Record<string, Adapter>> = {
  compute_rollout_correction_weights(golden) {
    const { weights, metrics } = rolloutWeights(ratiosAt(golden), {
      rolloutIsBatchNormalize: false,
      ...camelCased(golden.params),
    } as WeightSettings);
    return { weights: tensorOf(weights), metrics };
  },

  _parse_rollout_is_threshold: ({ inputs }) => ({ ...weightBandOf(inputs["spec"]) }),

  _parse_rollout_rs_thresholds({ inputs }) {
    const options = inputs["options"] as string[];
    const bands = rejectionBandsOf(options, inputs["spec"]);
    return {
      thresholds: Object.fromEntries(options.map((option, index) => [option, bands[index]])),
    };
  },

  compute_rollout_rejection_mask(golden) {
    const { rollout_rs: options, rollout_rs_threshold: threshold } = golden.params;
    const { mask, metrics } = rejectRollouts(ratiosAt(golden), options as string, threshold);
    return { mask: tensorOf({ ...mask, data: Float64Array.from(mask.data) }), metrics };
  },

  compute_offpolicy_metrics: (golden) => ({
    metrics: offPolicyMetrics(
      matrixAt(golden, "old_log_prob"),
      golden.inputs["rollout_log_prob"] === undefined
        ? undefined
        : matrixAt(golden, "rollout_log_prob"),
      matrixAt(golden, "response_mask"),
    ),
  }),

  compute_rollout_corr_metrics_from_logprobs: (golden) => ({
    metrics: rolloutCorrectionMetrics({
      logProb: tensorAt(golden, "log_prob"),
      rolloutLogProbs: tensorAt(golden, "rollout_log_prob"),
      responseMask: tensorAt(golden, "response_mask"),
    }),
  }),

  "RolloutCorrectionConfig.preset"({ inputs }) {
    const preset =
      inputs["preset"] === null
        ? { ...rolloutCorrectionPreset("disabled"), rolloutIs: "sequence" }
        : rolloutCorrectionPreset(inputs["preset"] as RolloutCorrectionPreset);
    return Object.fromEntries(
      Object.entries(preset).map(([key, value]) => [
        key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      ]),
    );
  },

  compute_rollout_correction_and_rejection_mask: (golden) =>
    corrected(golden, ["old_log_prob", "rollout_log_prob"], golden.params),

  compute_rollout_correction_and_add_to_batch(golden) {
    const own = golden.params["rollout_correction"] as Readonly<Record<string, unknown>>;
    const parts = corrected(golden, ["old_log_probs", "rollout_log_probs"], { ...ofClass, ...own });
    const keys = new Set([...Object.keys(golden.inputs), ...Object.keys(parts)]);
    keys.delete("metrics");
    return { ...parts, keys: [...keys].toSorted() };
  },
};

checkGolden(goldenFile("rollout-correction.json"), adapters, {
  "compute_rollout_correction_weights/sequence-0.8_1.25-raw-multi": dividesByNothing,
  "compute_rollout_correction_weights/sequence-icepop-zeroes-all-norm": dividesByNothing,
});

describe("rollout correction", () => {
  const batch = {
    oldLogProbs: tensor([[-1, -2, -1]], "float32"),
    rolloutLogProbs: tensor([[-1, -1, -1]], "float32"),
    responseMask: tensor([[1, 1, 0]], "int32"),
  };

  test("keeps the dtype of the mask", () => {
    const { responseMask } = correctRollouts(batch, {
      rolloutRs: "token_k1",
      rolloutRsThreshold: "0.5_2",
    });
    expect(responseMask).toEqual(tensor([[1, 0, 0]], "int32"));
  });

  test("names what it cannot work with", () => {
    const refused = (settings: RolloutCorrectionSettings): string => {
      try {
        correctRollouts(batch, settings);
      } catch (error) {
        return (error as TrainerInputError).input;
      }
      throw new Error("it was not refused");
    };
    expect(refused({ rolloutIs: "geometric" as never })).toBe("rolloutIs");
    expect(refused({ rolloutIs: "token", rolloutIsThreshold: "1_0.5" })).toBe("rolloutIsThreshold");
    expect(refused({ rolloutIs: "token", rolloutIsThreshold: "0x2" })).toBe("rolloutIsThreshold");
    expect(refused({ rolloutRs: "token_k4", rolloutRsThreshold: 1 })).toBe("rolloutRs");
    expect(refused({ rolloutRs: "token_k1" })).toBe("rolloutRsThreshold");
    expect(() => rolloutCorrectionPreset("none" as never)).toThrow(
      'there is no rollout correction preset "none"; there are decoupled_token_is',
    );
  });

  test("a setting that is undefined has its default", () => {
    const absent: object = Object.fromEntries(
      Object.keys(rolloutCorrectionPreset("disabled")).map((name) => [name, undefined]),
    );
    expect(withDefaults(absent)).toEqual(withDefaults({}));
    const names = ["lr", "betas", "eps", "clipGrad", "lrSchedulerType", "totalTrainingSteps"];
    const optim: object = Object.fromEntries(names.map((name) => [name, undefined]));
    expect(optimizerSettingsOf(optim)).toEqual(optimizerSettingsOf({}));
  });

  test.each(["token", "sequence"] as const)(
    "weights by %s are 0, and have no effective sample size, where all are out of the band",
    (rolloutIs) => {
      for (const rolloutIsBatchNormalize of [false, true]) {
        const { rolloutIsWeights, responseMask, metrics } = correctRollouts(batch, {
          rolloutIs,
          rolloutIsThreshold: "3_4",
          rolloutIsBatchNormalize,
        });
        expect(rolloutIsWeights).toEqual(tensor([[0, 0, 0]], "float32"));
        expect(responseMask).toEqual(batch.responseMask);
        expect(metrics).toMatchObject({
          "rollout_corr/rollout_is_mean": 0,
          "rollout_corr/rollout_is_oob_ratio": 1,
        });
        expect(metrics).not.toHaveProperty("rollout_corr/rollout_is_eff_sample_size");
        expect(Object.values(metrics).filter((one) => !Number.isFinite(one))).toEqual([]);
      }
    },
  );

  test("a truncation without a bound leaves weights as they are", () => {
    const { rolloutIsWeights } = correctRollouts(
      { ...batch, oldLogProbs: tensor([[1, -2, -1]], "float32") },
      { rolloutIs: "token", rolloutIsThreshold: "inf" },
    );
    expect(rolloutIsWeights?.data[0]).toBeCloseTo(Math.exp(2), 4);
  });

  test("the bypass needs what the rollout said", () => {
    const { oldLogProbs, lossMode } = bypassed(batch.rolloutLogProbs, {});
    expect([oldLogProbs, lossMode]).toEqual([batch.rolloutLogProbs, "bypass_mode"]);
    expect(() => bypassed(undefined, {})).toThrow(TrainerInputError);
  });
});

describe("PF-PPO", () => {
  const scores = tensor(
    [
      [1, 1],
      [0, 3],
      [Number.NaN, 5],
      [0, 0],
    ],
    "float32",
  );
  const valid = [true, true, false, true];

  test("never draws a row whose score is invalid, and looks at the others without it", () => {
    const weights = pfPpoWeights(
      { tokenLevelScores: scores, valid },
      { reweightMethod: "max_min" },
    );
    expect([...weights]).toEqual([1e-8, 1 + 1e-8, 0, 1 + 1e-8]);
    const ends = [0, 0.999_999_999_9, 1 - 2 ** -53];
    const rows = ends.flatMap((value) => [...drawRows(weights, () => value)]);
    expect(new Set(rows)).toEqual(new Set([0, 3]));
    expect(drawRows(Float64Array.of(1, 3, 0), () => 0.999_999_999)).toEqual(Int32Array.of(1, 1, 1));
  });

  test("draws in proportion", () => {
    const steps = 400;
    let step = 0;
    const drawn = Array.from({ length: steps / 4 }, () => [
      ...drawRows(Float64Array.of(1, 2, 0, 5), () => step++ / steps),
    ]).flat();
    const counts = [0, 1, 2, 3].map((row) => drawn.filter((one) => one === row).length);
    expect(counts).toEqual([50, 100, 0, 250]);
  });

  test("says when no row can be drawn", () => {
    expect(() => drawRows(new Float64Array(2), () => 0.5)).toThrow(
      "the weights of 2 rows add up to 0",
    );
  });
});
