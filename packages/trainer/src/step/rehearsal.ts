/**
 * Runs the algorithms of a training on a few made-up rows: settings that an estimator, a correction
 * or a loss refuses are refused before a policy generates and a judge is paid. Columns that a
 * policy may not report (log-probabilities of its rollouts, sums of squared probabilities) are
 * checked only by the first batch.
 */

import { asTensor, DataProto } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { optional } from "@rayling/reward-manager-registry/values";
import { computeAdvantage } from "../algorithms/advantages/compute.ts";
import { createAdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import type { AdvantageRegistry } from "../algorithms/advantages/advantage-registry.ts";
import { createKlController } from "../algorithms/kl.ts";
import type { PolicyLoss } from "../algorithms/losses/policy-loss.ts";
import { createPolicyLossRegistry } from "../algorithms/losses/policy-loss-registry.ts";
import { withDefaults } from "../algorithms/rollout-correction/correction-settings.ts";
import { weightBandOf } from "../algorithms/rollout-correction/thresholds.ts";
import { TrainerInputError } from "../errors.ts";
import { valueLoss } from "../algorithms/losses/value-loss.ts";
import { actorGradients } from "./actor-gradients.ts";
import { CollectedMetrics } from "../record/collected-metrics.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";

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
export function rehearse(settings: TrainingSettings, parts: RehearsedParts): void {
  checkWeights(settings.algorithm);
  const rows = groups * settings.rollout.n;
  const valid = Array.from({ length: rows }, () => true);
  const estimated = rehearseEstimator(settings, parts.advantages, valid);
  rehearsePolicyLoss(settings, parts.policyLoss, { ...estimated, valid });
  const { returns, responseMask } = estimated;
  const values = {
    vpreds: matrixOf(rows, 0),
    values: matrixOf(rows, 0),
    returns,
    responseMask,
    valid,
  };
  valueLoss(values, settings.criticOptions);
}

/** Refuses importance weights that are 0 for the policy's own tokens: little would be learnt. */
function checkWeights({ rolloutCorrection }: TrainingSettings["algorithm"]): void {
  const { rolloutIs, rolloutIsThreshold } = withDefaults(rolloutCorrection ?? {});
  if (rolloutIs === null || rolloutIsThreshold === null) return;
  const { lower, upper } = weightBandOf(rolloutIsThreshold);
  if (lower === null || (lower <= 1 && upper >= 1)) return;
  throw new TrainerInputError(
    "rolloutIsThreshold",
    `rolloutIsThreshold must hold 1, the weight of a token that the policy itself would say as likely; it is from ${lower} to ${upper}, and weights outside of it are 0`,
  );
}

/** An estimator of the user's own is not called: it may need columns that are not here. */
function rehearseEstimator(
  { algorithm, rollout }: TrainingSettings,
  registry: AdvantageRegistry,
  valid: readonly boolean[],
): Estimated {
  const rows = valid.length;
  const responseMask = asTensor(new Int32Array(rows * width).fill(1), [rows, width]);
  const estimator = registry.get(algorithm.advEstimator);
  const own = createAdvantageRegistry();
  if (!own.names().some((name) => own.get(name) === estimator)) {
    return { advantages: matrixOf(rows, 1), returns: matrixOf(rows, 1), responseMask };
  }
  const isBypassed = algorithm.rolloutCorrection?.bypassMode === true;
  const scores = Float32Array.from({ length: rows * width }, (_, at) => (at % 2) * (at % 3));
  return computeAdvantage(
    {
      tokenLevelScores: asTensor(scores, [rows, width]),
      responseMask,
      groups: valid.map((_, row) => Math.floor(row / rollout.n)),
      valid,
      values: matrixOf(rows, 0),
      rewardBaselines: asTensor(new Float32Array(rows)),
      oldLogProbs: matrixOf(rows, -1),
      refLogProb: matrixOf(rows, -1),
      rolloutLogProbs: matrixOf(rows, -1),
      // The bypass asks no policy for it.
      ...(isBypassed ? {} : { sumPiSquared: matrixOf(rows, 0.5) }),
      rewardComponents: Object.fromEntries(
        (algorithm.gdpoRewardKeys ?? []).map((key) => [key, valid.map((_, row) => row % 2)]),
      ),
    },
    algorithm,
    { registry, klController: createKlController(algorithm.klCtrl), random: () => 0.5 },
  );
}

/** A loss of the user's own is not called: it may need columns that are not here. */
function rehearsePolicyLoss(
  { actor }: TrainingSettings,
  policyLoss: PolicyLoss,
  { advantages, responseMask, rolloutIsWeights, valid }: Estimated & { valid: readonly boolean[] },
): void {
  const losses = createPolicyLossRegistry();
  if (!losses.names().some((name) => losses.get(name) === policyLoss)) return;
  const rows = valid.length;
  const part = DataProto.fromDict({
    tensors: {
      old_log_probs: matrixOf(rows, -1),
      ref_log_prob: matrixOf(rows, -1),
      rollout_log_probs: matrixOf(rows, -1),
      advantages,
      loss_mask: responseMask,
      response_mask: responseMask,
      ...optional("rollout_is_weights", rolloutIsWeights),
    },
    nonTensors: { valid },
  });
  actorGradients(
    part,
    { logProbs: matrixOf(rows, -1), entropys: matrixOf(rows, 1) },
    { actor, policyLoss, permutation: (count) => [...Array(count).keys()] },
    new CollectedMetrics(),
  );
}

function matrixOf(rows: number, value: number): Tensor {
  return asTensor(new Float32Array(rows * width).fill(value), [rows, width]);
}
