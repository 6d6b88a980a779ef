/** Losses that look at more than one token: at the covariance of all of them, or at rows. */

import { asTensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { shuffled } from "../../values/random.ts";
import { divisorOf } from "../masked-sums.ts";
import { clamp, rowSums } from "../matrix.ts";
import { type ClipRange, clipRangeOf, clipRatios, isClipped, ratiosInto } from "./clip.ts";
import { covarianceOf, largestCovariances, type TokenMeans } from "./covariances.ts";
import { learntLossOf } from "./learnt-loss.ts";
import { type PolicyLoss, type PolicyRows, policyRowsOf, shareOfTokens } from "./policy-loss.ts";
import { addLogRatios, newTokenBlock, type TokenBlock, tokensInto } from "./token-block.ts";

/**
 * PPO's clip; a few of the tokens whose log-probability goes along with their advantage are left
 * out, drawn at random: they are what entropy is lost by.
 */
export const clipCov: PolicyLoss = (batch, settings = {}) => {
  const { clipCovRatio = 0.0002, clipCovLb = 1, clipCovUb = 5, permutation = anyOrder } = settings;
  checkRatio("clipCovRatio", clipCovRatio);
  const rows = policyRowsOf(batch);
  const range = clipRangeOf(settings);
  const candidates = candidatesOf(rows, range, { low: clipCovLb, high: clipCovUb });
  const wanted = Math.max(Math.trunc(clipCovRatio * rows.count), 1);
  const order = candidates.length === 0 ? [] : permutation(candidates.length);
  const drawn = order.slice(0, Math.min(wanted, candidates.length));
  const places = Int32Array.from(drawn, (place) => candidates[place] ?? NaN).toSorted();
  let next = 0;
  let left = 0;
  const { ppoKl, ...learnt } = learntLossOf(rows, settings, (block) => {
    ratiosInto(block, Infinity);
    clipRatios(block, range);
    const held = block.places.subarray(0, block.length);
    const last = held.at(-1) ?? NaN;
    for (let from = 0; next < places.length && (places[next] ?? NaN) <= last; next++) {
      from = held.indexOf(places[next] ?? NaN, from);
      left += block.mask[from] ?? NaN;
      block.values[from] = 0;
      block.slopes[from] = 0;
    }
  });
  return {
    ...learnt,
    metrics: { "actor/pg_clipfrac": shareOfTokens(rows, left), "actor/ppo_kl": ppoKl },
  };
};

/** Returns the places of tokens that are not clipped, and whose covariance is within the bounds. */
function candidatesOf(rows: PolicyRows, range: ClipRange, bounds: ClipRange): readonly number[] {
  const sums = { advantage: 0, logProb: 0 };
  for (let row = 0; row < rows.mask.rows; row++) addWeighted(sums, rows, row);
  const divisor = divisorOf(rows.count);
  const means = { advantage: sums.advantage / divisor, logProb: sums.logProb / divisor };
  const candidates: number[] = [];
  for (let row = 0; row < rows.mask.rows; row++) {
    addCandidates(candidates, rows, row, { means, range, bounds });
  }
  return candidates;
}

function addWeighted(
  sums: { advantage: number; logProb: number },
  { mask: { data: mask, columns }, advantages, logProb }: PolicyRows,
  row: number,
): void {
  let { advantage, logProb: logProbSum } = sums;
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    const counted = mask[at] ?? NaN;
    if (counted === 0) continue;
    advantage += (advantages.data[at] ?? NaN) * counted;
    logProbSum += (logProb.data[at] ?? NaN) * counted;
  }
  Object.assign(sums, { advantage, logProb: logProbSum });
}

function addCandidates(
  candidates: number[],
  { mask: { data: mask, columns }, advantages, logProb, oldLogProb }: PolicyRows,
  row: number,
  {
    means,
    range,
    bounds,
  }: { readonly means: TokenMeans; readonly range: ClipRange; readonly bounds: ClipRange },
): void {
  const { low, high } = bounds;
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    if (!((mask[at] ?? NaN) > 0)) continue;
    const advantage = advantages.data[at] ?? NaN;
    const own = logProb.data[at] ?? NaN;
    const covariance = covarianceOf(means, advantage, own);
    if (!(covariance < high && covariance > low)) continue;
    const ratio = Math.exp(own - (oldLogProb.data[at] ?? NaN));
    if (!isClipped(advantage, ratio, range)) candidates.push(at);
  }
}

const anyOrder = (count: number): readonly number[] => shuffled(count, Math.random);

/** No clip; the tokens of the largest covariance pay for how far they have moved. */
export const klCov: PolicyLoss = (batch, settings = {}) => {
  const { klCovRatio = 0.0002, ppoKlCoef = 0.1 } = settings;
  checkRatio("klCovRatio", klCovRatio);
  const rows = policyRowsOf(batch);
  const { means, least, ...largest } = largestCovariances(rows, klCovRatio);
  let ties = largest.ties;
  let distance = 0;
  const withoutKl = { ...settings, maxLogRatio: null };
  const { ppoKl: _, ...learnt } = learntLossOf(rows, withoutKl, (block) => {
    const { length, mask, advantages, logProbs, logRatios, values, slopes } = block;
    let sum = distance;
    for (let index = 0; index < length; index++) {
      const logRatio = logRatios[index] ?? NaN;
      const counted = mask[index] ?? NaN;
      if (counted !== 0) sum += Math.abs(logRatio) * counted;
      // NaN does harm where the token does not count, and a ratio that is too large does not.
      const ratio = Math.exp(counted === 0 ? clamp(logRatio, -1, 1) : logRatio);
      const loss = -(advantages[index] ?? NaN) * ratio;
      values[index] = loss;
      slopes[index] = loss;
    }
    distance = sum;
    for (let index = 0; index < length; index++) {
      const covariance = covarianceOf(means, advantages[index] ?? NaN, logProbs[index] ?? NaN);
      if (!(covariance >= least && (mask[index] ?? NaN) > 0)) continue;
      if (covariance === least && ties-- <= 0) continue;
      const logRatio = logRatios[index] ?? NaN;
      values[index] = (values[index] ?? NaN) + ppoKlCoef * Math.abs(logRatio);
      slopes[index] = (slopes[index] ?? NaN) + ppoKlCoef * Math.sign(logRatio);
    }
  });
  return { ...learnt, metrics: { "actor/ppo_kl": shareOfTokens(rows, distance) } };
};

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
  const range = clipRangeOf(settings);
  const { columns } = rows.mask;
  const lengths = rowSums(rows.mask);
  const used = lengths.filter((_, row) => rows.isValid(row)).length;
  const gradient = new Float32Array(rows.mask.data.length);
  const block = newTokenBlock(columns);
  const sums = { clipped: 0, lower: 0, distance: 0 };
  let loss = 0;
  for (const [row, length] of lengths.entries()) {
    if (length === 0) continue;
    tokensInto(block, rows, [row * columns, (row + 1) * columns], true);
    const { logRatio, advantage } = keptMeans(sums, block, rows, { range, length });
    const value = (-advantage * Math.exp(logRatio)) / used;
    loss += value;
    freeGradient(block, value, length, gradient);
  }
  return {
    loss,
    gradLogProb: asTensor(gradient, [rows.mask.rows, columns]),
    metrics: {
      "actor/pg_clipfrac": shareOfTokens(rows, sums.clipped),
      "actor/ppo_kl": -shareOfTokens(rows, sums.distance),
      "actor/pg_clipfrac_lower": shareOfTokens(rows, sums.lower),
    },
  };
};

/**
 * Returns means over a row: of its log ratios as far as they are kept, with its weights, and of its
 * advantages. Marks by a slope of 1 the tokens whose log ratio is kept as it is.
 */
function keptMeans(
  sums: { clipped: number; lower: number; distance: number },
  block: TokenBlock,
  rows: PolicyRows,
  { range: { low, high }, length }: { readonly range: ClipRange; readonly length: number },
): { readonly logRatio: number; readonly advantage: number } {
  const { mask, advantages, logRatios, slopes } = block;
  let { clipped, lower } = sums;
  let keptRatios = 0;
  let advantageSum = 0;
  for (let index = 0; index < block.length; index++) {
    const counted = mask[index] ?? NaN;
    const advantage = advantages[index] ?? NaN;
    const logRatio = logRatios[index] ?? NaN;
    const inRange = clamp(logRatio, -low, high);
    if (inRange !== logRatio && advantage > 0) clipped += counted;
    if (inRange !== logRatio && advantage < 0) lower += counted;
    const kept = keptLogRatio(advantage, logRatio, inRange);
    slopes[index] = advantage !== 0 && kept === logRatio ? 1 : 0;
    keptRatios += kept * counted;
    advantageSum += advantage * counted;
  }
  const distance = addLogRatios(block, sums.distance, Infinity);
  Object.assign(sums, { clipped, lower, distance });
  const logRatio = (keptRatios + logWeightsOf(block, rows)) / length;
  return { logRatio, advantage: advantageSum / length };
}

function freeGradient(
  { length: tokens, places, mask, slopes }: TokenBlock,
  value: number,
  length: number,
  gradient: Float32Array,
): void {
  for (let index = 0; index < tokens; index++) {
    const counted = mask[index] ?? NaN;
    if (counted === 0 || slopes[index] !== 1) continue;
    gradient[places[index] ?? 0] = (value * counted) / length;
  }
}

function logWeightsOf({ length, places, mask }: TokenBlock, { weights }: PolicyRows): number {
  if (weights === undefined) return 0;
  let sum = 0;
  for (let index = 0; index < length; index++) {
    const weight = weights.data[places[index] ?? 0] ?? NaN;
    sum += Math.log(weight + 1e-10) * (mask[index] ?? NaN);
  }
  return sum;
}

/** The smaller, in the direction of the advantage. */
function keptLogRatio(advantage: number, logRatio: number, clipped: number): number {
  if (advantage === 0) return 0;
  return advantage > 0 ? Math.min(logRatio, clipped) : Math.max(logRatio, clipped);
}
