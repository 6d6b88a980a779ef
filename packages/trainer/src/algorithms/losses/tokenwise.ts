/** Losses of tokens by themselves: vanilla and what was made of it (verl/trainer/ppo/core_algos.py). */

import { TrainerInputError } from "../../errors.ts";
import { clamp, matrixOf, rowSums } from "../matrix.ts";
import {
  checkDualClip,
  clippedLosses,
  clipRangeOf,
  larger,
  type PolicyLoss,
  policyLossOf,
  type PolicyLossBatch,
  type PolicyLossResult,
  type PolicyLossSettings,
  type PolicyRows,
  policyRowsOf,
  ppoKlOf,
  shareOf,
  type TokenLoss,
  tokenLosses,
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
  const range = clipRangeOf(settings);
  const clipped = new Uint8Array(rows.mask.data.length);
  const lower = new Uint8Array(rows.mask.data.length);
  const losses = tokenLosses(rows, (at) => {
    const advantage = rows.advantages.data[at] as number;
    const { ratio, slope } = ratioOf(rows.logRatio.data[at] as number);
    const two = clippedLosses(advantage, ratio, slope, range);
    const loss = larger(two.plain, two.clipped);
    const most = -advantage * clipRatioC;
    clipped[at] = two.clipped.value > two.plain.value ? 1 : 0;
    lower[at] = loss.value > most && advantage < 0 ? 1 : 0;
    return advantage < 0 ? larger({ value: most, slope: 0 }, loss, -1) : loss;
  });
  return policyLossOf(rows, losses, settings, {
    [`${prefix}pg_clipfrac`]: shareOf(rows, (at) => clipped[at] === 1),
    [`${prefix}ppo_kl`]: ppoKlOf(rows, maxLogRatio),
    [`${prefix}pg_clipfrac_lower`]: shareOf(rows, (at) => lower[at] === 1),
  });
}

function ratioOf(logRatio: number): { readonly ratio: number; readonly slope: number } {
  const kept = clamp(logRatio, -maxLogRatio, maxLogRatio);
  const ratio = Math.exp(kept);
  return { ratio, slope: kept === logRatio ? ratio : 0 };
}

/** Where the probability has changed by more than the range, nothing is learnt; elsewhere the ratio is a weight, and no more than clipRatioC. */
export const dppoTv: PolicyLoss = (batch, settings = {}) =>
  dppo(batch, settings, (advantage, { probability, old }, { low, high }) =>
    advantage > 0 ? probability - old <= high : probability - old >= -low,
  );

/** The same by the KL divergence of the token against all others together. */
export const dppoKl: PolicyLoss = (batch, settings = {}) =>
  dppo(batch, settings, (advantage, { probability, old, logRatio }, { low, high }) => {
    const kl = -old * logRatio + (1 - old) * Math.log((1 - old + 1e-8) / (1 - probability + 1e-8));
    return advantage > 0 ? kl <= high || probability <= old : kl <= low || probability >= old;
  });

interface Probabilities {
  readonly probability: number;
  readonly old: number;
  readonly logRatio: number;
}

function dppo(
  batch: PolicyLossBatch,
  settings: PolicyLossSettings,
  isKept: (
    advantage: number,
    token: Probabilities,
    range: { readonly low: number; readonly high: number },
  ) => boolean,
): PolicyLossResult {
  const rows = policyRowsOf(batch);
  const { clipRatioC = 3 } = settings;
  const range = clipRangeOf(settings);
  const dropped = new Uint8Array(rows.mask.data.length);
  const truncated = new Uint8Array(rows.mask.data.length);
  const losses = tokenLosses(rows, (at) => {
    const advantage = rows.advantages.data[at] as number;
    const logProb = rows.logProb.data[at] as number;
    const logRatio = rows.logRatio.data[at] as number;
    const { ratio } = ratioOf(logRatio);
    const token = { probability: Math.exp(logProb), old: Math.exp(logProb - logRatio), logRatio };
    const keeps = isKept(advantage, token, range);
    dropped[at] = keeps ? 0 : 1;
    truncated[at] = keeps && ratio > clipRatioC ? 1 : 0;
    const weight = keeps ? -advantage * Math.min(ratio, clipRatioC) : 0;
    return { value: weight * logProb, slope: weight };
  });
  return policyLossOf(rows, losses, settings, {
    "actor/pg_clipfrac": shareOf(rows, (at) => dropped[at] === 1),
    "actor/ppo_kl": ppoKlOf(rows, maxLogRatio),
    "actor/pg_clipfrac_lower": shareOf(rows, (at) => truncated[at] === 1),
  });
}

/** Clipped by the ratio of whole rows, to the power of one over their length. Always put together by seq-mean-token-mean. */
export const gspo: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const range = clipRangeOf(settings);
  const lengths = rowSums(rows.mask);
  const { columns } = rows.mask;
  const means = Array.from(lengths, (length, row) => {
    let sum = 0;
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      sum += (rows.logRatio.data[at] as number) * (rows.mask.data[at] as number);
    }
    return sum / Math.max(1, length);
  });
  const clipped = new Uint8Array(rows.mask.data.length);
  const losses = tokenLosses(rows, (at) => {
    const mean = means[Math.floor(at / columns)] as number;
    const kept = Math.min(mean, 10);
    const ratio = Math.exp(kept);
    const two = clippedLosses(
      rows.advantages.data[at] as number,
      ratio,
      kept === mean ? ratio : 0,
      range,
    );
    clipped[at] = two.clipped.value > two.plain.value ? 1 : 0;
    return larger(two.plain, two.clipped);
  });
  return policyLossOf(
    rows,
    losses,
    { ...settings, lossAggMode: "seq-mean-token-mean" },
    {
      "actor/pg_clipfrac": shareOf(rows, (at) => clipped[at] === 1),
      "actor/ppo_kl": ppoKlOf(rows),
      "actor/pg_clipfrac_lower": 0,
    },
  );
};

/** A smooth gate in place of the clip. Always put together by seq-mean-token-mean. */
export const sapo: PolicyLoss = (batch, settings = {}) => {
  const { tauPos = 1, tauNeg = 1.05 } = settings;
  const rows = policyRowsOf(batch);
  const losses = tokenLosses(rows, (at) => {
    const advantage = rows.advantages.data[at] as number;
    const { ratio, slope } = ratioOf(rows.logRatio.data[at] as number);
    const tau = advantage > 0 ? tauPos : tauNeg;
    const gate = 1 / (1 + Math.exp(-tau * (ratio - 1)));
    return {
      value: -advantage * gate * (4 / tau),
      slope: -advantage * 4 * gate * (1 - gate) * slope,
    };
  });
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

/** The same, for rollouts of another policy where weights make up for it (verl `compute_policy_loss_reinforce`). */
export const reinforce: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  return policyGradient(rows, settings, { "actor/ppo_kl": ppoKlOf(rows) });
};

export function policyGradient(
  rows: PolicyRows,
  settings: PolicyLossSettings,
  metrics: Readonly<Record<string, number>>,
): PolicyLossResult {
  const losses = tokenLosses(rows, (at) =>
    weighted(rows, at, -(rows.advantages.data[at] as number)),
  );
  return policyLossOf(rows, losses, settings, metrics);
}

function weighted({ logProb }: PolicyRows, at: number, weight: number): TokenLoss {
  return { value: weight * (logProb.data[at] as number), slope: weight };
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
  const losses = tokenLosses(rows, (at) => {
    const advantage = rows.advantages.data[at] as number;
    const logRatio = rows.logRatio.data[at] as number;
    return {
      value: -(advantage * (rows.logProb.data[at] as number) - (droBeta / 2) * logRatio ** 2),
      slope: -(advantage - droBeta * logRatio),
    };
  });
  return policyLossOf(rows, losses, settings, { "actor/ppo_kl": ppoKlOf(rows) });
};

/** -A log p, weighted by the clipped ratio: what is clipped is learnt from all the same. */
export const cispo: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const { low, high } = clipRangeOf(settings);
  const clipped = new Uint8Array(rows.mask.data.length);
  const losses = tokenLosses(rows, (at) => {
    const { ratio } = ratioOf(rows.logRatio.data[at] as number);
    const kept = clamp(ratio, 1 - low, 1 + high);
    clipped[at] = kept === ratio ? 0 : 1;
    return weighted(rows, at, -kept * (rows.advantages.data[at] as number));
  });
  return policyLossOf(rows, losses, settings, {
    "actor/pg_clipfrac": shareOf(rows, (at) => clipped[at] === 1),
    "actor/ppo_kl": ppoKlOf(rows, maxLogRatio),
    "actor/pg_clipfrac_lower": 0,
  });
};

export interface DecoupledBatch extends Omit<PolicyLossBatch, "oldLogProb" | "rolloutIsWeights"> {
  /** Of the policy that the clip keeps to. */
  readonly proximalLogProb: PolicyLossBatch["oldLogProb"];
  /** Of the policy that made the rollout. */
  readonly behavLogProb: PolicyLossBatch["oldLogProb"];
}

export interface DecoupledSettings extends PolicyLossSettings {
  /** Tokens whose weight is above it are left out. Default: none is. */
  readonly behavImpWeightCap?: number;
}

/**
 * The recipe's decoupled loss: vanilla against the proximal policy, each token weighted by how much more likely that one is to make it than the one that did.
 * Metrics have no prefix, as there.
 */
export function decoupled(
  batch: DecoupledBatch,
  settings: DecoupledSettings = {},
): PolicyLossResult {
  const { behavImpWeightCap: cap = Infinity } = settings;
  const { proximalLogProb, behavLogProb, ...rest } = batch;
  const rows = policyRowsOf({ ...rest, oldLogProb: proximalLogProb });
  const proximal = matrixOf("proximalLogProb", proximalLogProb, rows.logProb);
  const behaviour = matrixOf("behavLogProb", behavLogProb, rows.logProb);
  const weights = proximal.data.map((one, at) => {
    if (rows.mask.data[at] === 0) return 0;
    const weight = Math.exp(one - (behaviour.data[at] as number));
    return weight > cap ? 0 : weight;
  });
  return dualClip({ ...rows, weights: { ...rows.mask, data: weights } }, settings, "");
}
