/** KL penalties, their controllers, the critic's loss and entropy: verl's own numbers and gradients (test/golden/kl-and-value.json). */
import { asTensor, tensor } from "@rayling/data-proto";
import {
  applyKlPenalty,
  createKlController,
  entropyLoss,
  type KlControllerSettings,
  klPenalty,
  type KlPenaltyKind,
  valueLoss,
  type ValueLossBatch,
  type ValueLossSettings,
} from "@rayling/trainer";
import { expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import { camelCased, checkGolden, tensorAt } from "./golden.ts";

checkGolden(goldenFile("kl-and-value.json"), {
  kl_penalty(golden) {
    const logProb = tensorAt(golden, "logprob");
    const kind = golden.params["kl_penalty"] as KlPenaltyKind;
    const { kl, gradLogProb } = klPenalty(logProb, tensorAt(golden, "ref_logprob"), kind);
    // verl's gradient is of a weighted sum.
    const weights = tensorAt(golden, "weights").data;
    const weighted = gradLogProb.data.map((slope, at) => slope * (weights[at] as number));
    return { kl, grad_logprob: asTensor(weighted, logProb.shape) };
  },

  compute_value_loss(golden) {
    const { loss, clipfrac, gradVpreds } = valueLoss(
      {
        vpreds: tensorAt(golden, "vpreds"),
        returns: tensorAt(golden, "returns"),
        values: tensorAt(golden, "values"),
        responseMask: tensorAt(golden, "response_mask"),
      } satisfies ValueLossBatch,
      camelCased(golden.params) as unknown as ValueLossSettings,
    );
    return { loss, clipfrac, grad_vpreds: gradVpreds };
  },

  compute_entropy_loss(golden) {
    const { loss, gradLogits } = entropyLoss(
      tensorAt(golden, "logits"),
      tensorAt(golden, "response_mask"),
      golden.params["loss_agg_mode"] as never,
    );
    return { loss, grad_logits: gradLogits };
  },

  /** Every token counts, and the coefficient stays. */
  compute_rewards(golden) {
    const scores = tensorAt(golden, "token_level_scores");
    const { tokenLevelRewards } = applyKlPenalty(
      {
        tokenLevelScores: scores,
        oldLogProbs: tensorAt(golden, "old_log_prob"),
        refLogProb: tensorAt(golden, "ref_log_prob"),
        responseMask: asTensor(new Int32Array(scores.data.length).fill(1), scores.shape),
      },
      createKlController({ klCoef: golden.params["kl_ratio"] as number }),
    );
    return { token_level_rewards: tokenLevelRewards };
  },

  get_kl_controller({ inputs, params }) {
    const controller = createKlController(camelCased(params) as unknown as KlControllerSettings);
    const values = ((inputs["updates"] ?? []) as [number, number][]).map(([kl, steps]) => {
      controller.update(kl, steps);
      return controller.value;
    });
    // Of a controller verl tells its class, too.
    const name = params["type"] === "adaptive" ? "Adaptive" : "Fixed";
    return { values, class: `${name}KLController` };
  },

  apply_kl_penalty(golden) {
    const { controller: settings, kl_penalty: kind } = golden.params as {
      controller: Record<string, unknown>;
      kl_penalty: KlPenaltyKind;
    };
    const controller = createKlController(camelCased(settings) as unknown as KlControllerSettings);
    const { tokenLevelRewards, metrics } = applyKlPenalty(
      {
        tokenLevelScores: tensorAt(golden, "token_level_scores"),
        oldLogProbs: tensorAt(golden, "old_log_probs"),
        refLogProb: tensorAt(golden, "ref_log_prob"),
        responseMask: tensorAt(golden, "response_mask"),
      },
      controller,
      kind,
    );
    return { token_level_rewards: tokenLevelRewards, metrics, kl_coef_after: controller.value };
  },
});

// By verl 0.9.1 and torch: compute_value_loss of one row, whose values met their bounds exactly.
test.each([
  [0, 0.8020833134651184, [-0.3125, 0.2083333432674408, -0.2604166865348816]],
  [0.5, 0.6354166865348816, [-0.25, 0.375, -0.1875]],
  [0.2, 0.7054166197776794, [-0.32499998807907104, 0.30000001192092896, -0.26249998807907104]],
])("half of the slope is a bound's that is met exactly: a range of %d", (range, loss, slopes) => {
  const values = [0.5, 1, -0.25];
  const result = valueLoss(
    {
      vpreds: tensor([values.map((value) => Math.fround(value + Math.fround(range)))], "float32"),
      values: tensor([values], "float32"),
      returns: tensor([[2, 0, 1]], "float32"),
      responseMask: tensor([[1, 1, 1]], "float32"),
    },
    { cliprangeValue: range },
  );
  expect(result.loss).toBeCloseTo(loss, 6);
  result.gradVpreds.data.forEach((slope, at) => expect(slope).toBeCloseTo(slopes[at]!, 6));
});
