/**
 * Runs the algorithms of a training on a few made-up rows: settings that an estimator, a correction
 * or a loss refuses are refused before a policy generates and a judge is paid. Columns that a
 * policy may not report (log-probabilities of its rollouts, sums of squared probabilities) are
 * checked only by the first batch.
 */

import { asTensor, DataProto } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { computeAdvantage } from "../algorithms/advantages/compute.ts";
import { createAdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import type { AdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import { createKlController } from "../algorithms/kl.ts";
import type { PolicyLoss } from "../algorithms/losses/policy-loss.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/policy-loss-registry.ts";
import { valueLoss } from "../algorithms/losses/value-loss.ts";
import { actorGradients } from "./actor-gradients.ts";
import { CollectedMetrics } from "../record/collected-metrics.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import { optional } from "../values/present.ts";

/** The user's own are not called with what is not theirs. */
export interface RehearsedParts {
  readonly advantages: AdvantageRegistry;
  readonly policyLoss: PolicyLoss;
}

type Estimated = Record<"advantages" | "returns" | "responseMask", Tensor> & {
  readonly rolloutIsWeights?: Tensor;
};

const groups = 2;
const width = 2;

/** Throws TrainerInputError. */
export function rehearse(
  { algorithm, actor, criticOptions, rollout }: TrainingSettings,
  parts: RehearsedParts,
): void {
  const { n } = rollout;
  const rows = groups * n;
  const matrix = (value: number): Tensor =>
    asTensor(new Float32Array(rows * width).fill(value), [rows, width]);
  const scores = Float32Array.from({ length: rows * width }, (_, at) => (at % 2) * (at % 3));
  const valid = Array.from({ length: rows }, () => true);
  const mask = asTensor(new Int32Array(rows * width).fill(1), [rows, width]);
  const { advEstimator, klCtrl } = algorithm;
  const estimator = parts.advantages.get(advEstimator);
  const isBypassed = algorithm.rolloutCorrection?.bypassMode === true;
  const own = createAdvantageRegistry();
  const isOurs = own.names().some((name) => own.get(name) === estimator);
  const computed: Estimated = isOurs
    ? computeAdvantage(
        {
          tokenLevelScores: asTensor(scores, [rows, width]),
          responseMask: mask,
          groups: valid.map((_, row) => Math.floor(row / n)),
          valid,
          values: matrix(0),
          rewardBaselines: asTensor(new Float32Array(rows)),
          oldLogProbs: matrix(-1),
          refLogProb: matrix(-1),
          rolloutLogProbs: matrix(-1),
          // In the bypass no policy is asked for it.
          ...(isBypassed ? {} : { sumPiSquared: matrix(0.5) }),
          rewardComponents: Object.fromEntries(
            (algorithm.gdpoRewardKeys ?? []).map((key) => [key, valid.map((_, row) => row % 2)]),
          ),
        },
        algorithm,
        { registry: parts.advantages, klController: createKlController(klCtrl), random: () => 0.5 },
      )
    : { advantages: matrix(1), returns: matrix(1), responseMask: mask };
  const { advantages, returns, responseMask } = computed;
  const losses = createPolicyLossRegistry();
  if (losses.names().some((name) => losses.get(name) === parts.policyLoss)) {
    const part = DataProto.fromDict({
      tensors: {
        old_log_probs: matrix(-1),
        ref_log_prob: matrix(-1),
        rollout_log_probs: matrix(-1),
        advantages,
        response_mask: responseMask,
        ...optional("rollout_is_weights", computed.rolloutIsWeights),
      },
      nonTensors: { valid },
    });
    actorGradients(
      part,
      { logProbs: matrix(-1), entropys: matrix(1) },
      { actor, policyLoss: parts.policyLoss, permutation: (count) => [...Array(count).keys()] },
      new CollectedMetrics(),
    );
  }
  const values = { vpreds: matrix(0), values: matrix(0), returns, responseMask, valid };
  valueLoss(values, criticOptions);
}
