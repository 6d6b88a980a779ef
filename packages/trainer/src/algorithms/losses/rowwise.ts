/** Losses that look at more than one token: at the covariance of all of them, or at rows. */

import { asTensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { shuffled } from "../../values/random.ts";
import { countOf, maskedMean } from "../masked.ts";
import { clamp, rowSums } from "../matrix.ts";
import {
  clipInto,
  clipRangeOf,
  markedShare,
  newClippedLoss,
  newTokenLosses,
  type PolicyLoss,
  policyLossOf,
  type PolicyRows,
  policyRowsOf,
  ppoKlOf,
} from "./policy-loss.ts";

/**
 * PPO's clip; a few of the tokens whose log-probability goes along with their advantage are left
 * out, drawn at random: they are what entropy is lost by.
 */
export const clipCov: PolicyLoss = (batch, settings = {}) => {
  const { clipCovRatio = 0.0002, clipCovLb = 1, clipCovUb = 5, permutation = anyOrder } = settings;
  checkRatio("clipCovRatio", clipCovRatio);
  const rows = policyRowsOf(batch);
  const losses = newTokenLosses(rows);
  const meanAdvantage = maskedMean(rows.advantages, rows.mask);
  const meanLogProb = maskedMean(rows.logProb, rows.mask);
  const token = newClippedLoss(clipRangeOf(settings));
  const candidates: number[] = [];
  for (let at = 0; at < losses.values.length; at++) {
    const ratio = Math.exp(rows.logRatio.data[at] ?? NaN);
    clipInto(token, rows.advantages.data[at] ?? NaN, ratio, ratio);
    losses.values[at] = token.value;
    losses.slopes[at] = token.slope;
    if (token.isClipped || !((rows.mask.data[at] ?? NaN) > 0)) continue;
    const covariance = covarianceAt(rows, at, meanAdvantage, meanLogProb);
    if (covariance < clipCovUb && covariance > clipCovLb) candidates.push(at);
  }
  const wanted = Math.max(Math.trunc(clipCovRatio * countOf(rows.mask)), 1);
  const order = candidates.length === 0 ? [] : permutation(candidates.length);
  const left = new Uint8Array(losses.values.length);
  for (const place of order.slice(0, Math.min(wanted, candidates.length))) {
    const at = candidates[place] ?? NaN;
    left[at] = 1;
    losses.values[at] = 0;
    losses.slopes[at] = 0;
  }
  return policyLossOf(rows, losses, settings, {
    "actor/pg_clipfrac": markedShare(rows, left),
    "actor/ppo_kl": ppoKlOf(rows),
  });
};

const anyOrder = (count: number): readonly number[] => shuffled(count, Math.random);

/** No clip; the tokens of the largest covariance pay for how far they have moved. */
export const klCov: PolicyLoss = (batch, settings = {}) => {
  const { klCovRatio = 0.0002, ppoKlCoef = 0.1 } = settings;
  checkRatio("klCovRatio", klCovRatio);
  const rows = policyRowsOf(batch);
  const losses = newTokenLosses(rows);
  const distances = new Float64Array(losses.values.length);
  for (let at = 0; at < losses.values.length; at++) {
    const logRatio = rows.logRatio.data[at] ?? NaN;
    distances[at] = Math.abs(logRatio);
    const loss = -(rows.advantages.data[at] ?? NaN) * Math.exp(logRatio);
    losses.values[at] = loss;
    losses.slopes[at] = loss;
  }
  for (const at of largestCovariances(rows, klCovRatio)) {
    losses.values[at] = (losses.values[at] ?? NaN) + ppoKlCoef * (distances[at] ?? NaN);
    losses.slopes[at] =
      (losses.slopes[at] ?? NaN) + ppoKlCoef * Math.sign(rows.logRatio.data[at] ?? NaN);
  }
  const distance = { ...rows.mask, data: distances };
  return policyLossOf(rows, losses, settings, { "actor/ppo_kl": maskedMean(distance, rows.mask) });
};

/**
 * Returns the tokens with the largest covariances: this share of the tokens that count, at least
 * one. Of equal covariances the first ones are taken.
 */
function largestCovariances(rows: PolicyRows, share: number): Int32Array {
  const { mask } = rows;
  const places = new Int32Array(mask.data.length);
  let valid = 0;
  let advantages = 0;
  let logProbs = 0;
  for (let at = 0; at < mask.data.length; at++) {
    if (!((mask.data[at] ?? NaN) > 0)) continue;
    places[valid++] = at;
    advantages += rows.advantages.data[at] ?? NaN;
    logProbs += rows.logProb.data[at] ?? NaN;
  }
  if (valid === 0) return places.subarray(0, 0);
  const count = Math.max(1, Math.trunc(valid * share));
  const covariances = new Float64Array(valid);
  for (let index = 0; index < valid; index++) {
    const at = places[index] ?? NaN;
    covariances[index] = covarianceAt(rows, at, advantages / valid, logProbs / valid);
  }
  const least = covariances.toSorted()[valid - count] ?? NaN;
  const above = covariances.reduce((sum, one) => sum + (one > least ? 1 : 0), 0);
  let ties = count - above;
  return places.subarray(0, valid).filter((_, index) => {
    const covariance = covariances[index] ?? NaN;
    return covariance > least || (covariance === least && ties-- > 0);
  });
}

function covarianceAt(
  { advantages, logProb }: PolicyRows,
  at: number,
  meanAdvantage: number,
  meanLogProb: number,
): number {
  return ((advantages.data[at] ?? NaN) - meanAdvantage) * ((logProb.data[at] ?? NaN) - meanLogProb);
}

function checkRatio(name: string, ratio: number): void {
  if (ratio > 0 && ratio <= 1) return;
  throw new TrainerInputError(name, `${name} must be above 0 and at most 1; it is ${ratio}`);
}

/**
 * The geometric mean of a row's ratios, each clipped in log space on the side of its advantage.
 * Takes the mean over all rows, whatever the mode: a row without tokens counts as 0, an invalid row
 * does not count.
 */
export const geoMean: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const { low, high } = clipRangeOf(settings);
  const { rows: count, columns } = rows.mask;
  const lengths = rowSums(rows.mask);
  const used = lengths.filter((_, row) => rows.isValid(row)).length;
  const gradient = new Float32Array(rows.mask.data.length);
  const clipped = new Uint8Array(gradient.length);
  const lower = new Uint8Array(gradient.length);
  let loss = 0;
  for (let row = 0; row < count; row++) {
    if (lengths[row] === 0) continue;
    const length = lengths[row] ?? NaN;
    let logRatios = 0;
    let advantages = 0;
    let logWeights = 0;
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      const mask = rows.mask.data[at] ?? NaN;
      const advantage = rows.advantages.data[at] ?? NaN;
      const logRatio = rows.logRatio.data[at] ?? NaN;
      const kept = clamp(logRatio, -low, high);
      if (kept !== logRatio && advantage > 0) clipped[at] = 1;
      if (kept !== logRatio && advantage < 0) lower[at] = 1;
      logRatios += keptLogRatio(advantage, logRatio, kept) * mask;
      advantages += advantage * mask;
      if (rows.weights !== undefined)
        logWeights += Math.log((rows.weights.data[at] ?? NaN) + 1e-10) * mask;
    }
    const value = (-(advantages / length) * Math.exp((logRatios + logWeights) / length)) / used;
    loss += value;
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      const mask = rows.mask.data[at] ?? NaN;
      const advantage = rows.advantages.data[at] ?? NaN;
      const logRatio = rows.logRatio.data[at] ?? NaN;
      const isFree =
        advantage !== 0 &&
        keptLogRatio(advantage, logRatio, clamp(logRatio, -low, high)) === logRatio;
      if (mask !== 0 && isFree) gradient[at] = (value * mask) / length;
    }
  }
  return {
    loss,
    gradLogProb: asTensor(gradient, [count, columns]),
    metrics: {
      "actor/pg_clipfrac": markedShare(rows, clipped),
      "actor/ppo_kl": ppoKlOf(rows),
      "actor/pg_clipfrac_lower": markedShare(rows, lower),
    },
  };
};

/** The smaller, in the direction of the advantage. */
function keptLogRatio(advantage: number, logRatio: number, clipped: number): number {
  if (advantage === 0) return 0;
  return advantage > 0 ? Math.min(logRatio, clipped) : Math.max(logRatio, clipped);
}
