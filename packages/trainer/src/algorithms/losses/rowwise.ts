/** Losses that look at more than one token: at the covariance of all of them, or at rows. */

import { asTensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { shuffled } from "../../values/random.ts";
import { maskedMean } from "../masked-sums.ts";
import { clamp, rowSums } from "../matrix.ts";
import {
  clipInto,
  clipRangeOf,
  newClippedLoss,
  newTokenLosses,
  type PolicyLoss,
  policyLossOf,
  type PolicyRows,
  policyRowsOf,
  ppoKlOf,
  shareOfTokens,
  uncounted,
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
    const advantage = rows.advantages.data[at] ?? NaN;
    const logRatio = rows.logRatio.data[at] ?? NaN;
    if (rows.mask.data[at] === 0) {
      losses.values[at] = uncounted(advantage, logRatio);
      continue;
    }
    const ratio = Math.exp(logRatio);
    clipInto(token, advantage, ratio, ratio);
    losses.values[at] = token.value;
    losses.slopes[at] = token.slope;
    if (token.isClipped || !((rows.mask.data[at] ?? NaN) > 0)) continue;
    const covariance = covarianceAt(rows, at, meanAdvantage, meanLogProb);
    if (covariance < clipCovUb && covariance > clipCovLb) candidates.push(at);
  }
  const wanted = Math.max(Math.trunc(clipCovRatio * rows.count), 1);
  const order = candidates.length === 0 ? [] : permutation(candidates.length);
  let left = 0;
  for (const place of order.slice(0, Math.min(wanted, candidates.length))) {
    const at = candidates[place] ?? NaN;
    left += rows.mask.data[at] ?? NaN;
    losses.values[at] = 0;
    losses.slopes[at] = 0;
  }
  return policyLossOf(rows, losses, settings, {
    "actor/pg_clipfrac": shareOfTokens(rows, left),
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
  let distance = 0;
  for (let at = 0; at < losses.values.length; at++) {
    const advantage = rows.advantages.data[at] ?? NaN;
    const logRatio = rows.logRatio.data[at] ?? NaN;
    const weight = rows.mask.data[at] ?? NaN;
    if (weight === 0) {
      losses.values[at] = uncounted(advantage, logRatio);
      continue;
    }
    distance += Math.abs(logRatio) * weight;
    const loss = -advantage * Math.exp(logRatio);
    losses.values[at] = loss;
    losses.slopes[at] = loss;
  }
  for (const at of largestCovariances(rows, klCovRatio)) {
    const logRatio = rows.logRatio.data[at] ?? NaN;
    losses.values[at] = (losses.values[at] ?? NaN) + ppoKlCoef * Math.abs(logRatio);
    losses.slopes[at] = (losses.slopes[at] ?? NaN) + ppoKlCoef * Math.sign(logRatio);
  }
  return policyLossOf(rows, losses, settings, { "actor/ppo_kl": shareOfTokens(rows, distance) });
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
  const least = largestOf(covariances, count);
  const above = covariances.reduce((sum, one) => sum + (one > least ? 1 : 0), 0);
  let ties = count - above;
  return places.subarray(0, valid).filter((_, index) => {
    const covariance = covariances[index] ?? NaN;
    return covariance > least || (covariance === least && ties-- > 0);
  });
}

/** Returns the number of that rank from above, by selection; NaN is above all. */
function largestOf(numbers: Float64Array, rank: number): number {
  const left = numbers.slice();
  const wanted = left.length - rank;
  // NaN is not below or above anything: a sort knows where it goes.
  if (left.some(Number.isNaN)) return left.toSorted()[wanted] ?? NaN;
  let from = 0;
  let to = left.length - 1;
  while (from < to) {
    const pivot = left[(from + to) >>> 1] ?? NaN;
    let low = from;
    let high = to;
    while (low <= high) {
      while ((left[low] ?? NaN) < pivot) low++;
      while ((left[high] ?? NaN) > pivot) high--;
      if (low > high) break;
      const moved = left[low] ?? NaN;
      left[low++] = left[high] ?? NaN;
      left[high--] = moved;
    }
    if (wanted <= high) to = high;
    else if (wanted >= low) from = low;
    else break;
  }
  return left[wanted] ?? NaN;
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
  let clipped = 0;
  let lower = 0;
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
      if (kept !== logRatio && advantage > 0) clipped += mask;
      if (kept !== logRatio && advantage < 0) lower += mask;
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
      "actor/pg_clipfrac": shareOfTokens(rows, clipped),
      "actor/ppo_kl": ppoKlOf(rows),
      "actor/pg_clipfrac_lower": shareOfTokens(rows, lower),
    },
  };
};

/** The smaller, in the direction of the advantage. */
function keptLogRatio(advantage: number, logRatio: number, clipped: number): number {
  if (advantage === 0) return 0;
  return advantage > 0 ? Math.min(logRatio, clipped) : Math.max(logRatio, clipped);
}
