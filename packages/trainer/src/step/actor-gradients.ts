/**
 * Gradients of a mini-batch for the policy (verl `ppo_loss`): policy loss - entropyCoeff x entropy
 * + klLossCoef x divergence, each over rows with a valid score.
 */

import type { DataProto, Tensor } from "@rayling/data-proto";
import { optional } from "@rayling/reward-manager-registry/values";
import { klPenalty } from "../algorithms/kl.ts";
import { aggLoss } from "../algorithms/losses/aggregation.ts";
import type { Aggregated } from "../algorithms/losses/aggregation.ts";
import type { PolicyLoss, PolicyLossSettings } from "../algorithms/losses/policy-loss.ts";
import { filled, matrixOf, tensorOf } from "../algorithms/matrix.ts";
import type { Matrix } from "../algorithms/matrix.ts";
import { leavesNoToken, validMask } from "../algorithms/invalid-scores.ts";
import type { CollectedMetrics } from "../record/collected-metrics.ts";
import { tensorIn, validIn } from "../samples/columns.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import { batchInfoOf } from "./batch-info.ts";

/** Answer of the policy for the rows now, [rows, R]. */
export interface PolicyNow {
  readonly logProbs: Tensor;
  readonly entropys: Tensor;
}

export interface ActorGradients {
  readonly gradLogProbs: Tensor;
  readonly gradEntropys?: Tensor;
}

export interface ActorLossSettings {
  readonly actor: PolicyLossSettings &
    Pick<TrainingSettings["actor"], "entropyCoeff" | "useKlLoss" | "klLossCoef" | "klLossType">;
  readonly policyLoss: PolicyLoss;
  /** Permutation for clip_cov, where the settings have none. */
  readonly permutation: NonNullable<PolicyLossSettings["permutation"]>;
}

/**
 * @param part with old_log_probs and advantages, and what the settings ask for. Throws
 *   TrainerInputError
 */
export function actorGradients(
  part: DataProto,
  { logProbs, entropys }: PolicyNow,
  { actor, policyLoss, permutation }: ActorLossSettings,
  metrics: CollectedMetrics,
): ActorGradients {
  const own = { ...actor, globalBatchInfo: batchInfoOf(part, actor.globalBatchInfo) };
  const policy = policyLoss(
    {
      logProb: logProbs,
      oldLogProb: tensorIn(part, "old_log_probs"),
      advantages: tensorIn(part, "advantages"),
      responseMask: tensorIn(part, "response_mask"),
      valid: validIn(part),
      ...optional("rolloutIsWeights", part.batch?.["rollout_is_weights"]),
      ...optional("rolloutLogProbs", part.batch?.["rollout_log_probs"]),
    },
    { permutation, ...own },
  );
  metrics.addAll({ "actor/pg_loss": policy.loss, ...policy.metrics });
  let gradLogProbs: Tensor = policy.gradLogProb;
  if (actor.useKlLoss) {
    const reference = tensorIn(part, "ref_log_prob");
    const { kl, gradLogProb } = klPenalty(logProbs, reference, actor.klLossType);
    const { loss, weights } = ofValidRows(kl, part, own);
    metrics.addAll({ "actor/kl_loss": loss, "actor/kl_coef": actor.klLossCoef });
    gradLogProbs = summed(gradLogProbs, gradLogProb, weights, actor.klLossCoef);
  }
  if (actor.entropyCoeff === 0) return { gradLogProbs };
  const { loss, weights } = ofValidRows(entropys, part, own);
  metrics.add("actor/entropy_loss", loss);
  const gradEntropys = tensorOf(
    filled(weights, (_row, _column, at) => -actor.entropyCoeff * (weights.data[at] ?? NaN)),
  );
  return { gradLogProbs, gradEntropys };
}

/** Put together as the policy's loss is; 0 where no row is valid. */
function ofValidRows(
  values: Tensor,
  part: DataProto,
  { lossAggMode, globalBatchInfo }: PolicyLossSettings,
): Aggregated {
  const matrix = matrixOf("values", values);
  const valid = validIn(part);
  const mask = validMask(matrixOf("responseMask", tensorIn(part, "response_mask"), matrix), valid);
  const aggregated = aggLoss(matrix, mask, lossAggMode, globalBatchInfo);
  return leavesNoToken(mask, valid) ? { ...aggregated, loss: 0 } : aggregated;
}

/**
 * Returns left + factor x weights x right; where a weight is 0, `right` does not count, even if
 * NaN.
 */
function summed(left: Tensor, right: Tensor, weights: Matrix, factor: number): Tensor {
  return tensorOf(
    filled(weights, (_row, _column, at) => {
      const weight = weights.data[at] ?? NaN;
      const more = weight === 0 ? 0 : factor * weight * (right.data[at] ?? NaN);
      return (left.data[at] ?? NaN) + more;
    }),
  );
}
