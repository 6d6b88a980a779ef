/**
 * Losses of tokens by themselves: vanilla and what was made of it (verl/trainer/ppo/core_algos.py).
 */

import { TrainerInputError } from "../../errors.ts";
import { maskedRowSums } from "../masked-sums.ts";
import { clamp, matrixOf, rowSums, viewOf } from "../matrix.ts";
import {
  checkDualClip,
  clipInto,
  clipRangeOf,
  newClippedLoss,
  newTokenLosses,
  type PolicyLoss,
  policyLossOf,
  type PolicyLossBatch,
  type PolicyLossResult,
  type PolicyLossSettings,
  type PolicyRows,
  policyRowsOf,
  ppoKlOf,
  shareOfTokens,
  slopeOfLarger,
  uncounted,
} from "./policy-loss.ts";

/** A log ratio beyond this is taken for this. */
const maxLogRatio = 20;

/** PPO's clip, and the dual one where the advantage is below 0. */
export const vanilla: PolicyLoss = (batch, settings = {}) =>
  dualClip(policyRowsOf(batch), settings);

export function dualClip(
  rows: PolicyRows,
  settings: PolicyLossSettings,
  prefix = "actor/",
): PolicyLossResult {
  const { clipRatioC = 3 } = settings;
  checkDualClip(clipRatioC);
  const losses = newTokenLosses(rows);
  const token = newClippedLoss(clipRangeOf(settings));
  let clipped = 0;
  let lower = 0;
  for (let at = 0; at < losses.values.length; at++) {
    const advantage = rows.advantages.data[at] ?? NaN;
    const logRatio = rows.logRatio.data[at] ?? NaN;
    const weight = rows.mask.data[at] ?? NaN;
    if (weight === 0) {
      losses.values[at] = uncounted(advantage, logRatio);
      continue;
    }
    const kept = clamp(logRatio, -maxLogRatio, maxLogRatio);
    const ratio = Math.exp(kept);
    clipInto(token, advantage, ratio, kept === logRatio ? ratio : 0);
    if (token.isClipped) clipped += weight;
    losses.values[at] = token.value;
    losses.slopes[at] = token.slope;
    if (!(advantage < 0)) continue;
    const most = -advantage * clipRatioC;
    if (token.value > most) lower += weight;
    losses.values[at] = Math.min(most, token.value);
    losses.slopes[at] = slopeOfLarger(-most, 0, -token.value, token.slope);
  }
  return policyLossOf(rows, losses, settings, {
    [`${prefix}pg_clipfrac`]: shareOfTokens(rows, clipped),
    [`${prefix}ppo_kl`]: ppoKlOf(rows, maxLogRatio),
    [`${prefix}pg_clipfrac_lower`]: shareOfTokens(rows, lower),
  });
}

/**
 * Learns nothing where the probability has changed by more than the range; elsewhere the ratio is a
 * weight of at most clipRatioC.
 */
export const dppoTv: PolicyLoss = (batch, settings = {}) => {
  const { low, high } = clipRangeOf(settings);
  return dppo(batch, settings, (advantage, probability, old) =>
    advantage > 0 ? probability - old <= high : probability - old >= -low,
  );
};

/**
 * Learns nothing where the KL divergence of the token against all others together is beyond the
 * range; elsewhere the ratio is a weight of at most clipRatioC.
 */
export const dppoKl: PolicyLoss = (batch, settings = {}) => {
  const { low, high } = clipRangeOf(settings);
  return dppo(batch, settings, (advantage, probability, old, logRatio) => {
    const kl = -old * logRatio + (1 - old) * Math.log((1 - old + 1e-8) / (1 - probability + 1e-8));
    return advantage > 0 ? kl <= high || probability <= old : kl <= low || probability >= old;
  });
};

function dppo(
  batch: PolicyLossBatch,
  settings: PolicyLossSettings,
  isKept: (advantage: number, probability: number, old: number, logRatio: number) => boolean,
): PolicyLossResult {
  const rows = policyRowsOf(batch);
  const { clipRatioC = 3 } = settings;
  const losses = newTokenLosses(rows);
  let dropped = 0;
  let truncated = 0;
  for (let at = 0; at < losses.values.length; at++) {
    const advantage = rows.advantages.data[at] ?? NaN;
    const logProb = rows.logProb.data[at] ?? NaN;
    const logRatio = rows.logRatio.data[at] ?? NaN;
    const counted = rows.mask.data[at] ?? NaN;
    if (counted === 0) continue;
    if (!isKept(advantage, Math.exp(logProb), Math.exp(logProb - logRatio), logRatio)) {
      dropped += counted;
      continue;
    }
    const ratio = Math.exp(clamp(logRatio, -maxLogRatio, maxLogRatio));
    if (ratio > clipRatioC) truncated += counted;
    const weight = -advantage * Math.min(ratio, clipRatioC);
    losses.values[at] = weight * logProb;
    losses.slopes[at] = weight;
  }
  return policyLossOf(rows, losses, settings, {
    "actor/pg_clipfrac": shareOfTokens(rows, dropped),
    "actor/ppo_kl": ppoKlOf(rows, maxLogRatio),
    "actor/pg_clipfrac_lower": shareOfTokens(rows, truncated),
  });
}

/**
 * Clipped by the ratio of whole rows, to the power of one over their length. Always put together by
 * seq-mean-token-mean.
 */
export const gspo: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const { columns } = rows.mask;
  const sums = maskedRowSums(rows.logRatio, rows.mask);
  const lengths = rowSums(rows.mask);
  const losses = newTokenLosses(rows);
  const token = newClippedLoss(clipRangeOf(settings));
  let clipped = 0;
  for (let row = 0; row < rows.mask.rows; row++) {
    const mean = (sums[row] ?? NaN) / Math.max(1, lengths[row] ?? NaN);
    const kept = Math.min(mean, 10);
    const ratio = Math.exp(kept);
    const slope = kept === mean ? ratio : 0;
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      clipInto(token, rows.advantages.data[at] ?? NaN, ratio, slope);
      if (token.isClipped) clipped += rows.mask.data[at] ?? NaN;
      losses.values[at] = token.value;
      losses.slopes[at] = token.slope;
    }
  }
  return policyLossOf(
    rows,
    losses,
    { ...settings, lossAggMode: "seq-mean-token-mean" },
    {
      "actor/pg_clipfrac": shareOfTokens(rows, clipped),
      "actor/ppo_kl": ppoKlOf(rows),
      "actor/pg_clipfrac_lower": 0,
    },
  );
};

/** A smooth gate in place of the clip. Always put together by seq-mean-token-mean. */
export const sapo: PolicyLoss = (batch, settings = {}) => {
  const { tauPos = 1, tauNeg = 1.05 } = settings;
  const rows = policyRowsOf(batch);
  const losses = newTokenLosses(rows);
  for (let at = 0; at < losses.values.length; at++) {
    const advantage = rows.advantages.data[at] ?? NaN;
    const logRatio = rows.logRatio.data[at] ?? NaN;
    if (rows.mask.data[at] === 0) {
      losses.values[at] = uncounted(advantage, logRatio);
      continue;
    }
    const kept = clamp(logRatio, -maxLogRatio, maxLogRatio);
    const ratio = Math.exp(kept);
    const tau = advantage > 0 ? tauPos : tauNeg;
    const gate = 1 / (1 + Math.exp(-tau * (ratio - 1)));
    losses.values[at] = -advantage * gate * (4 / tau);
    losses.slopes[at] = kept === logRatio ? -advantage * 4 * gate * (1 - gate) * ratio : 0;
  }
  return policyLossOf(
    rows,
    losses,
    { ...settings, lossAggMode: "seq-mean-token-mean" },
    {
      "actor/pg_clipfrac": 0,
      "actor/ppo_kl": ppoKlOf(rows, maxLogRatio),
      "actor/pg_clipfrac_lower": 0,
    },
  );
};

/** -A log p. */
export const gpg: PolicyLoss = (batch, settings = {}) =>
  policyGradient(policyRowsOf(batch), settings, {});

/**
 * -A log p for rollouts of another policy, for which the weights correct (verl
 * `compute_policy_loss_reinforce`).
 */
export const reinforce: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  return policyGradient(rows, settings, { "actor/ppo_kl": ppoKlOf(rows) });
};

export function policyGradient(
  rows: PolicyRows,
  settings: PolicyLossSettings,
  metrics: Readonly<Record<string, number>>,
): PolicyLossResult {
  const losses = newTokenLosses(rows);
  for (let at = 0; at < losses.values.length; at++) {
    const weight = -(rows.advantages.data[at] ?? NaN);
    losses.values[at] = weight * (rows.logProb.data[at] ?? NaN);
    losses.slopes[at] = weight;
  }
  return policyLossOf(rows, losses, settings, metrics);
}

/** -(A log p - beta / 2 (log ratio)^2). */
export const dro: PolicyLoss = (batch, settings = {}) => {
  const { droBeta = 0 } = settings;
  if (!(droBeta > 0)) {
    throw new TrainerInputError(
      "droBeta",
      `droBeta must be above 0 for dro; it is ${settings.droBeta ?? "missing"}`,
    );
  }
  const rows = policyRowsOf(batch);
  const losses = newTokenLosses(rows);
  for (let at = 0; at < losses.values.length; at++) {
    const advantage = rows.advantages.data[at] ?? NaN;
    const logRatio = rows.logRatio.data[at] ?? NaN;
    const penalty = (droBeta / 2) * logRatio * logRatio;
    losses.values[at] = penalty - advantage * (rows.logProb.data[at] ?? NaN);
    losses.slopes[at] = droBeta * logRatio - advantage;
  }
  return policyLossOf(rows, losses, settings, { "actor/ppo_kl": ppoKlOf(rows) });
};

/** -A log p, weighted by the clipped ratio: what is clipped is learnt from all the same. */
export const cispo: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const { low, high } = clipRangeOf(settings);
  const losses = newTokenLosses(rows);
  let clipped = 0;
  for (let at = 0; at < losses.values.length; at++) {
    const advantage = rows.advantages.data[at] ?? NaN;
    const logRatio = rows.logRatio.data[at] ?? NaN;
    const counted = rows.mask.data[at] ?? NaN;
    if (counted === 0) {
      losses.values[at] = uncounted(advantage, logRatio) * (rows.logProb.data[at] ?? NaN);
      continue;
    }
    const ratio = Math.exp(clamp(logRatio, -maxLogRatio, maxLogRatio));
    const kept = clamp(ratio, 1 - low, 1 + high);
    if (kept !== ratio) clipped += counted;
    const weight = -kept * advantage;
    losses.values[at] = weight * (rows.logProb.data[at] ?? NaN);
    losses.slopes[at] = weight;
  }
  return policyLossOf(rows, losses, settings, {
    "actor/pg_clipfrac": shareOfTokens(rows, clipped),
    "actor/ppo_kl": ppoKlOf(rows, maxLogRatio),
    "actor/pg_clipfrac_lower": 0,
  });
};

/** Input of the decoupled loss. All are [rows, tokens]. */
export interface DecoupledBatch extends Omit<
  PolicyLossBatch,
  "oldLogProb" | "rolloutIsWeights" | "rolloutLogProbs"
> {
  /** Log-probabilities of the policy that the clip keeps to. */
  readonly proximalLogProb: PolicyLossBatch["oldLogProb"];
  /** Log-probabilities of the policy that generated the rollout. */
  readonly behavLogProb: PolicyLossBatch["oldLogProb"];
}

/** Settings of the decoupled loss. */
export interface DecoupledSettings extends PolicyLossSettings {
  /** Tokens whose weight is above it are left out. Default: none is. */
  readonly behavImpWeightCap?: number;
}

/**
 * The recipe's loss_mode "decoupled", whose cap is 5: what the rollout said of itself is the
 * behaviour, the old log-probs are proximal.
 */
export const decoupledFromRollout: PolicyLoss = (batch, settings = {}) => {
  const { oldLogProb, rolloutLogProbs, rolloutIsWeights: _, ...rest } = batch;
  if (rolloutLogProbs === undefined) {
    throw new TrainerInputError(
      "rolloutLogProbs",
      "rolloutLogProbs are missing, which decoupled needs: let the rollout return log-probs",
    );
  }
  return weightedByBehaviour(
    { ...rest, proximalLogProb: oldLogProb, behavLogProb: rolloutLogProbs },
    { behavImpWeightCap: 5, ...settings },
    "actor/",
  );
};

/**
 * The recipe's decoupled loss: vanilla against the proximal policy, each token weighted by how much
 * more likely that one is to make it than the one that did. Metrics have no prefix, as there.
 */
export function decoupled(
  batch: DecoupledBatch,
  settings: DecoupledSettings = {},
): PolicyLossResult {
  return weightedByBehaviour(batch, settings, "");
}

function weightedByBehaviour(
  batch: DecoupledBatch,
  settings: DecoupledSettings,
  prefix: string,
): PolicyLossResult {
  const { behavImpWeightCap: cap = Infinity } = settings;
  const { proximalLogProb, behavLogProb, ...rest } = batch;
  const rows = policyRowsOf({ ...rest, oldLogProb: proximalLogProb });
  const proximal = viewOf("proximalLogProb", proximalLogProb, rows.logProb);
  const weights = matrixOf("behavLogProb", behavLogProb, rows.logProb);
  for (let at = 0; at < weights.data.length; at++) {
    if (rows.mask.data[at] === 0) {
      weights.data[at] = 0;
      continue;
    }
    const weight = Math.exp((proximal.data[at] ?? NaN) - (weights.data[at] ?? NaN));
    weights.data[at] = weight > cap ? 0 : weight;
  }
  return dualClip({ ...rows, weights }, settings, prefix);
}
