/**
 * Losses of tokens by themselves: vanilla and what was made of it (verl/trainer/ppo/core_algos.py).
 */

import { TrainerInputError } from "../../errors.ts";
import { exponentialsInto } from "../exponential.ts";
import { clamp, unboxed, viewOf } from "../matrix.ts";
import { checkDualClip, clipRangeOf, clipRatios } from "./clip.ts";
import { type LearntLoss, learntLossOf } from "./learnt-loss.ts";
import {
  type PolicyLoss,
  type PolicyLossBatch,
  type PolicyLossResult,
  type PolicyLossSettings,
  type PolicyRows,
  policyRowsOf,
  shareOfTokens,
} from "./policy-loss.ts";
import { ratiosInto, type TokenBlock } from "./token-block.ts";

/** A log ratio beyond this is taken for this. */
const maxLogRatio = 20;

/** PPO's clip, and the dual one where the advantage is below 0. */
export const vanilla: PolicyLoss = (batch, settings = {}) =>
  dualClip(policyRowsOf(batch), settings);

/** @param weigh changes the losses of a block before they are put together */
export function dualClip(
  rows: PolicyRows,
  settings: PolicyLossSettings,
  prefix = "actor/",
  weigh: (block: TokenBlock) => void = () => undefined,
): PolicyLossResult {
  const { clipRatioC = 3 } = settings;
  checkDualClip(clipRatioC);
  const bounds = { range: clipRangeOf(settings), maxLogRatio, clipRatioC };
  const counts = { clipped: 0, lower: 0 };
  const { ppoKl, ...learnt } = learntLossOf(rows, { ...settings, maxLogRatio }, (block) => {
    ratiosInto(block, maxLogRatio);
    clipRatios(block, bounds, counts);
    weigh(block);
  });
  return {
    ...learnt,
    metrics: {
      [`${prefix}pg_clipfrac`]: shareOfTokens(rows, counts.clipped),
      [`${prefix}ppo_kl`]: ppoKl,
      [`${prefix}pg_clipfrac_lower`]: shareOfTokens(rows, counts.lower),
    },
  };
}

/**
 * Learns nothing where the probability has changed by more than the range; elsewhere the ratio is a
 * weight of at most clipRatioC.
 */
export const dppoTv: PolicyLoss = (batch, settings = {}) => {
  const { low, high } = clipRangeOf(settings);
  return dppo(batch, settings, ({ length, advantages, values, slopes }) => {
    const most = unboxed(high);
    const least = -low;
    for (let index = 0; index < length; index++) {
      const change = (values[index] ?? NaN) - (slopes[index] ?? NaN);
      const isKept = (advantages[index] ?? NaN) > 0 ? change <= most : change >= least;
      values[index] = isKept ? 1 : 0;
    }
  });
};

/**
 * Learns nothing where the KL divergence of the token against all others together is beyond the
 * range; elsewhere the ratio is a weight of at most clipRatioC.
 */
export const dppoKl: PolicyLoss = (batch, settings = {}) => {
  const { low, high } = clipRangeOf(settings);
  return dppo(batch, settings, ({ length, advantages, logRatios, values, slopes }) => {
    const above = unboxed(high);
    const below = unboxed(low);
    for (let index = 0; index < length; index++) {
      const probability = values[index] ?? NaN;
      const old = slopes[index] ?? NaN;
      const odds = (1 - old + 1e-8) / (1 - probability + 1e-8);
      const kl = -old * (logRatios[index] ?? NaN) + (1 - old) * Math.log(odds);
      const isKept =
        (advantages[index] ?? NaN) > 0
          ? kl <= above || probability <= old
          : kl <= below || probability >= old;
      values[index] = isKept ? 1 : 0;
    }
  });
};

/**
 * @param markKept finds the probability of each token in `values`, and the old one in `slopes`;
 * leaves 1 in `values` for a token that is learnt from, and 0 for another. It looks at whole
 * blocks: numbers that go into a function for each token are put into memory one by one.
 */
function dppo(
  batch: PolicyLossBatch,
  settings: PolicyLossSettings,
  markKept: (block: TokenBlock) => void,
): PolicyLossResult {
  const rows = policyRowsOf(batch);
  const { clipRatioC = 3 } = settings;
  let dropped = 0;
  let truncated = 0;
  const { ppoKl, ...learnt } = learntLossOf(rows, { ...settings, maxLogRatio }, (block) => {
    const { length, weight: counted, advantages, logProbs, ratios, values, slopes } = block;
    probabilitiesInto(block);
    markKept(block);
    ratiosInto(block, maxLogRatio);
    let droppedHere = 0;
    let truncatedHere = 0;
    for (let index = 0; index < length; index++) {
      const advantage = advantages[index] ?? NaN;
      const logProb = logProbs[index] ?? NaN;
      const isKept = values[index] === 1;
      values[index] = 0;
      slopes[index] = 0;
      if (counted === 0) continue;
      const ratio = ratios[index] ?? NaN;
      const weight = -advantage * Math.min(ratio, clipRatioC);
      if (!isKept) {
        droppedHere += counted;
        // No number stays none, as verl multiplies by 0: nothing is within a range of NaN, either.
        if (!Number.isFinite(weight * logProb)) values[index] = NaN;
        if (!Number.isFinite(weight)) slopes[index] = NaN;
        continue;
      }
      if (ratio > clipRatioC) truncatedHere += counted;
      values[index] = weight * logProb;
      slopes[index] = weight;
    }
    dropped += droppedHere;
    truncated += truncatedHere;
  });
  return {
    ...learnt,
    metrics: {
      "actor/pg_clipfrac": shareOfTokens(rows, dropped),
      "actor/ppo_kl": ppoKl,
      "actor/pg_clipfrac_lower": shareOfTokens(rows, truncated),
    },
  };
}

/** Puts the probability of each token where its loss goes, and the old one where its slope goes. */
function probabilitiesInto({ length, logProbs, logRatios, values, slopes }: TokenBlock): void {
  exponentialsInto(values, logProbs, length);
  for (let index = 0; index < length; index++) {
    slopes[index] = (logProbs[index] ?? NaN) - (logRatios[index] ?? NaN);
  }
  exponentialsInto(slopes, slopes, length);
}

/** The losses that are put together in one way, whatever the mode. */
const ofRowMeans = { lossAggMode: "seq-mean-token-mean" } as const;

/**
 * Clipped by the ratio of whole rows, to the power of one over their length. Always put together by
 * seq-mean-token-mean, as in its paper and in verl 0.10.0.dev; verl 0.9.1 follows loss_agg_mode.
 */
export const gspo: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const { means, ppoKl } = meanLogRatios(rows);
  const bounds = { range: clipRangeOf(settings), maxLogRatio: Infinity, clipRatioC: NaN };
  const counts = { clipped: 0, lower: 0 };
  const inRowMeans = { ...settings, ...ofRowMeans };
  const { ppoKl: _, ...learnt } = learntLossOf(rows, inRowMeans, (block, row) => {
    const mean = means[row] ?? NaN;
    const kept = Math.min(mean, 10);
    block.ratios.fill(Math.exp(kept), 0, block.length);
    clipRatios(block, bounds, counts);
    if (kept === mean) return;
    // No number stays none.
    for (let at = 0; at < block.length; at++) {
      block.slopes[at] = Number.isFinite(block.slopes[at]) ? 0 : NaN;
    }
  });
  return {
    ...learnt,
    metrics: {
      "actor/pg_clipfrac": shareOfTokens(rows, counts.clipped),
      "actor/ppo_kl": ppoKl,
      "actor/pg_clipfrac_lower": 0,
    },
  };
};

/** Returns the mean log ratio of each row, 0 for a row without tokens, and minus that of all. */
function meanLogRatios(rows: PolicyRows): {
  readonly means: Float64Array;
  readonly ppoKl: number;
} {
  const means = new Float64Array(rows.mask.rows);
  let all = 0;
  for (let row = 0; row < rows.mask.rows; row++) {
    const { sum, length } = logRatiosOf(rows, row);
    all += sum;
    means[row] = sum / Math.max(1, length);
  }
  return { means, ppoKl: -shareOfTokens(rows, all) };
}

function logRatiosOf(
  { mask: { data: mask, columns }, logProb, oldLogProb }: PolicyRows,
  row: number,
): { readonly sum: number; readonly length: number } {
  let sum = 0;
  let length = 0;
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    const counted = mask[at] ?? NaN;
    if (counted === 0) continue;
    sum += ((logProb.data[at] ?? NaN) - (oldLogProb.data[at] ?? NaN)) * counted;
    length += counted;
  }
  return { sum, length };
}

/** A smooth gate in place of the clip. Always put together by seq-mean-token-mean. */
export const sapo: PolicyLoss = (batch, settings = {}) => {
  const { tauPos = 1, tauNeg = 1.05 } = settings;
  const rows = policyRowsOf(batch);
  const { ppoKl, ...learnt } = learntLossOf(
    rows,
    { ...settings, ...ofRowMeans, maxLogRatio },
    (block) => {
      const { length, advantages, logRatios, ratios, values, slopes } = block;
      ratiosInto(block, maxLogRatio);
      for (let index = 0; index < length; index++) {
        const tau = (advantages[index] ?? NaN) > 0 ? tauPos : tauNeg;
        values[index] = -tau * ((ratios[index] ?? NaN) - 1);
      }
      exponentialsInto(values, values, length);
      for (let index = 0; index < length; index++) {
        const advantage = advantages[index] ?? NaN;
        const ratio = ratios[index] ?? NaN;
        const tau = advantage > 0 ? tauPos : tauNeg;
        const gate = 1 / (1 + (values[index] ?? NaN));
        const isKept = Math.abs(logRatios[index] ?? NaN) <= maxLogRatio;
        values[index] = -advantage * gate * (4 / tau);
        slopes[index] = isKept ? -advantage * 4 * gate * (1 - gate) * ratio : 0;
      }
    },
  );
  return {
    ...learnt,
    metrics: {
      "actor/pg_clipfrac": 0,
      "actor/ppo_kl": ppoKl,
      "actor/pg_clipfrac_lower": 0,
    },
  };
};

/** -A log p. */
export const gpg: PolicyLoss = (batch, settings = {}) => {
  const { ppoKl: _, ...learnt } = policyGradient(policyRowsOf(batch), settings);
  return { ...learnt, metrics: {} };
};

/**
 * -A log p for rollouts of another policy, for which the weights correct (verl
 * `compute_policy_loss_reinforce`).
 */
export const reinforce: PolicyLoss = (batch, settings = {}) =>
  weightedGradient(policyRowsOf(batch), settings);

export function weightedGradient(rows: PolicyRows, settings: PolicyLossSettings): PolicyLossResult {
  const { ppoKl, ...learnt } = policyGradient(rows, settings);
  return { ...learnt, metrics: { "actor/ppo_kl": ppoKl } };
}

function policyGradient(rows: PolicyRows, settings: PolicyLossSettings): LearntLoss {
  return learntLossOf(rows, settings, (block) => {
    const { length, advantages, logProbs, values, slopes } = block;
    for (let index = 0; index < length; index++) {
      const weight = -(advantages[index] ?? NaN);
      values[index] = weight * (logProbs[index] ?? NaN);
      slopes[index] = weight;
    }
  });
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
  const { ppoKl, ...learnt } = learntLossOf(
    policyRowsOf(batch),
    settings,
    ({ length, advantages, logProbs, logRatios, values, slopes }) => {
      for (let index = 0; index < length; index++) {
        const advantage = advantages[index] ?? NaN;
        const logRatio = logRatios[index] ?? NaN;
        const penalty = (droBeta / 2) * logRatio * logRatio;
        values[index] = penalty - advantage * (logProbs[index] ?? NaN);
        slopes[index] = droBeta * logRatio - advantage;
      }
    },
  );
  return { ...learnt, metrics: { "actor/ppo_kl": ppoKl } };
};

/** -A log p, weighted by the clipped ratio: what is clipped is learnt from all the same. */
export const cispo: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const { low, high } = clipRangeOf(settings);
  let clipped = 0;
  const { ppoKl, ...learnt } = learntLossOf(rows, { ...settings, maxLogRatio }, (block) => {
    const { length, weight: counted, advantages, logProbs, ratios, values, slopes } = block;
    ratiosInto(block, maxLogRatio);
    const least = 1 - low;
    const most = 1 + high;
    let clippedHere = 0;
    for (let index = 0; index < length; index++) {
      const ratio = ratios[index] ?? NaN;
      const kept = clamp(ratio, least, most);
      if (kept !== ratio) clippedHere += counted;
      const weight = -kept * (advantages[index] ?? NaN);
      values[index] = weight * (logProbs[index] ?? NaN);
      slopes[index] = weight;
    }
    clipped += clippedHere;
  });
  return {
    ...learnt,
    metrics: {
      "actor/pg_clipfrac": shareOfTokens(rows, clipped),
      "actor/ppo_kl": ppoKl,
      "actor/pg_clipfrac_lower": 0,
    },
  };
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
    { ...settings, behavImpWeightCap: settings.behavImpWeightCap ?? 5 },
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
  const behaviour = viewOf("behavLogProb", behavLogProb, rows.logProb);
  return dualClip({ ...rows, weights: undefined }, settings, prefix, (block) => {
    const { length, from, ratios, values, slopes } = block;
    for (let index = 0; index < length; index++) {
      const at = from + index;
      ratios[index] = (rows.oldLogProb.data[at] ?? NaN) - (behaviour.data[at] ?? NaN);
    }
    exponentialsInto(ratios, ratios, length);
    for (let index = 0; index < length; index++) {
      const weight = ratios[index] ?? NaN;
      const kept = weight > cap ? 0 : weight;
      values[index] = (values[index] ?? NaN) * kept;
      slopes[index] = (slopes[index] ?? NaN) * kept;
    }
  });
}
