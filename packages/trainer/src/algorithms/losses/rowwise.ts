/** Losses that look at more than one token: at the covariance of all of them, or at rows. */

import { asTensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { firstShuffled } from "../../values/random.ts";
import { divisorOf } from "../masked-sums.ts";
import { clamp, unboxed } from "../matrix.ts";
import type { TokenRuns } from "../runs.ts";
import { type ClipRange, clipRangeOf, clipRatios, isClipped } from "./clip.ts";
import {
  addSums,
  boundOf,
  covarianceOf,
  newSelection,
  selectIn,
  type TokenMeans,
} from "./covariances.ts";
import { fillRow, learntOf, newLossWork } from "./learnt-loss.ts";
import {
  type PolicyLoss,
  type PolicyLossSettings,
  type PolicyRows,
  policyRowsOf,
  shareOfTokens,
} from "./policy-loss.ts";
import { eachBlock, newTokenBlock, ratiosInto, type TokenBlock } from "./token-block.ts";

/**
 * PPO's clip; a few of the tokens whose log-probability goes along with their advantage are left
 * out, drawn at random: they are what entropy is lost by. Rows of such tokens are worked out twice.
 */
export const clipCov: PolicyLoss = (batch, settings = {}) => {
  const { clipCovRatio = 0.0002, clipCovLb = 1, clipCovUb = 5, permutation } = settings;
  checkRatio("clipCovRatio", clipCovRatio);
  const rows = policyRowsOf(batch);
  const bounds = { range: clipRangeOf(settings), maxLogRatio: Infinity, clipRatioC: NaN };
  const search: Search = {
    means: weightedMeans(rows),
    range: bounds.range,
    bounds: { low: clipCovLb, high: clipCovUb },
    candidates: [],
  };
  const work = newLossWork(rows, settings);
  const counts = { clipped: 0, lower: 0 };
  const clip = (block: TokenBlock): void => {
    ratiosInto(block, Infinity);
    clipRatios(block, bounds, counts);
  };
  const fill = (block: TokenBlock): void => {
    clip(block);
    addCandidates(block, search);
  };
  for (let row = 0; row < rows.mask.rows; row++) fillRow(work, row, fill);
  const wanted = Math.max(Math.trunc(clipCovRatio * rows.runs.count), 1);
  const drawn = drawnFrom(search.candidates, wanted, permutation);
  const { columns } = rows.mask;
  let left = 0;
  for (const [row, places] of Map.groupBy(drawn, (place) => Math.floor(place / columns))) {
    fillRow(work, row, (block) => {
      clip(block);
      left += leaveOut(block, places);
    });
  }
  const { ppoKl, ...learnt } = learntOf(work);
  return {
    ...learnt,
    metrics: { "actor/pg_clipfrac": shareOfTokens(rows, left), "actor/ppo_kl": ppoKl },
  };
};

function weightedMeans(rows: PolicyRows): TokenMeans {
  const { runs } = rows;
  const sums = { advantage: 0, logProb: 0 };
  for (const [run, weight] of runs.weights.entries()) addSums(sums, rows, run, weight);
  const divisor = divisorOf(runs.count);
  return { advantage: sums.advantage / divisor, logProb: sums.logProb / divisor };
}

/** Adds the places of tokens that are not clipped, and whose covariance is within the bounds. */
function addCandidates(
  { length, from, weight, advantages, logProbs, ratios }: TokenBlock,
  { means, range, bounds, candidates }: Search,
): void {
  if (!(weight > 0)) return;
  const meanAdvantage = unboxed(means.advantage);
  const meanLogProb = unboxed(means.logProb);
  const low = unboxed(bounds.low);
  const high = unboxed(bounds.high);
  for (let index = 0; index < length; index++) {
    const advantage = advantages[index] ?? NaN;
    const covariance = (advantage - meanAdvantage) * ((logProbs[index] ?? NaN) - meanLogProb);
    if (!(covariance < high && covariance > low)) continue;
    if (!isClipped(advantage, ratios[index] ?? NaN, range)) candidates.push(from + index);
  }
}

/** Which tokens may be left out. */
interface Search {
  readonly means: TokenMeans;
  readonly range: ClipRange;
  /** A covariance must lie between them. */
  readonly bounds: ClipRange;
  /** Their places in the matrices. */
  readonly candidates: number[];
}

/** Takes the tokens at these places out of the loss. Returns how many of them count. */
function leaveOut(
  { length, from, weight, values, slopes }: TokenBlock,
  places: readonly number[],
): number {
  let left = 0;
  for (const place of places) {
    const index = place - from;
    if (index < 0 || index >= length) continue;
    left += weight;
    values[index] = 0;
    slopes[index] = 0;
  }
  return left;
}

/** Returns the places of so many candidates, the first ones by their order. */
function drawnFrom(
  candidates: readonly number[],
  wanted: number,
  permutation: PolicyLossSettings["permutation"],
): readonly number[] {
  if (candidates.length === 0) return [];
  const order =
    permutation === undefined
      ? firstShuffled(candidates.length, wanted, Math.random)
      : permutation(candidates.length).slice(0, wanted);
  return order.map((place) => candidates[place] ?? NaN);
}

/**
 * No clip; the tokens of the largest covariance pay for how far they have moved. Rows of such
 * tokens are worked out twice: which ones they are is known when all rows were seen.
 */
export const klCov: PolicyLoss = (batch, settings = {}) => {
  const { klCovRatio = 0.0002, ppoKlCoef = 0.1 } = settings;
  checkRatio("klCovRatio", klCovRatio);
  const rows = policyRowsOf(batch);
  const selection = newSelection(rows, klCovRatio);
  const work = newLossWork(rows, settings);
  const distance = { sum: 0 };
  const fill = (block: TokenBlock, row: number): void => {
    distance.sum += unclipped(block) * block.weight;
    selectIn(selection, block, row);
  };
  for (let row = 0; row < rows.mask.rows; row++) fillRow(work, row, fill);
  const { least, ties } = boundOf(selection);
  const penalty = { means: selection.means, least, ties, ppoKlCoef };
  for (const [row, most] of selection.most.entries()) {
    if (!(most >= least)) continue;
    fillRow(work, row, (block) => {
      unclipped(block);
      penalise(block, penalty);
    });
  }
  const { ppoKl: _, ...learnt } = learntOf(work);
  return { ...learnt, metrics: { "actor/ppo_kl": shareOfTokens(rows, distance.sum) } };
};

/** Makes losses of -A times the ratio. Returns the sum of how far the tokens have moved. */
function unclipped(block: TokenBlock): number {
  const { length, weight, advantages, logRatios, ratios, values, slopes } = block;
  ratiosInto(block, Infinity);
  let distance = 0;
  for (let index = 0; index < length; index++) {
    const loss = -(advantages[index] ?? NaN) * (ratios[index] ?? NaN);
    values[index] = loss;
    slopes[index] = loss;
    distance += Math.abs(logRatios[index] ?? NaN);
  }
  // A token that does not count may have no number.
  return weight === 0 ? 0 : distance;
}

/** Adds what tokens pay whose covariance is above `least`, or is it while there are ties left. */
function penalise(
  { length, weight, advantages, logProbs, logRatios, values, slopes }: TokenBlock,
  penalty: { readonly means: TokenMeans; readonly least: number; ties: number; ppoKlCoef: number },
): void {
  const { means, least, ppoKlCoef } = penalty;
  if (!(weight > 0)) return;
  for (let index = 0; index < length; index++) {
    const covariance = covarianceOf(means, advantages[index] ?? NaN, logProbs[index] ?? NaN);
    if (!(covariance >= least)) continue;
    if (covariance === least && penalty.ties-- <= 0) continue;
    const logRatio = logRatios[index] ?? NaN;
    values[index] = (values[index] ?? NaN) + ppoKlCoef * Math.abs(logRatio);
    slopes[index] = (slopes[index] ?? NaN) + ppoKlCoef * Math.sign(logRatio);
  }
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
  const range = clipRangeOf(settings);
  const { lengths } = rows.runs;
  const used = lengths.filter((_, row) => rows.isValid(row)).length;
  const gradient = new Float32Array(rows.mask.data.length);
  const source = { rows, block: newTokenBlock(), keepsSpoilt: true };
  const sums = { clipped: 0, lower: 0, distance: 0 };
  let loss = 0;
  for (const [row, length] of lengths.entries()) {
    if (length === 0) continue;
    const ofRow = { keptRatios: 0, advantages: 0 };
    eachBlock(source, row, (block) => addKept(block, rows, { range, sums, ofRow, gradient }));
    const value = (-(ofRow.advantages / length) * Math.exp(ofRow.keptRatios / length)) / used;
    loss += value;
    freeGradient(gradient, rows.runs, row, value / length);
  }
  return {
    loss,
    gradLogProb: asTensor(gradient, [rows.mask.rows, rows.mask.columns]),
    metrics: {
      "actor/pg_clipfrac": shareOfTokens(rows, sums.clipped),
      "actor/ppo_kl": -shareOfTokens(rows, sums.distance),
      "actor/pg_clipfrac_lower": shareOfTokens(rows, sums.lower),
    },
  };
};

interface KeptSums {
  readonly range: ClipRange;
  readonly sums: { clipped: number; lower: number; distance: number };
  /** The log ratios of a row as far as they are kept, with its weights, and its advantages. */
  readonly ofRow: { keptRatios: number; advantages: number };
  readonly gradient: Float32Array;
}

/** Adds a block. Marks by a gradient of 1 the tokens whose log ratio is kept as it is. */
function addKept(
  block: TokenBlock,
  rows: PolicyRows,
  { range, sums, ofRow, gradient }: KeptSums,
): void {
  const { length, from, weight, advantages, logRatios } = block;
  const least = -range.low;
  const most = unboxed(range.high);
  let clipped = 0;
  let lower = 0;
  let distance = 0;
  let keptRatios = 0;
  let advantageSum = 0;
  for (let index = 0; index < length; index++) {
    const advantage = advantages[index] ?? NaN;
    const logRatio = logRatios[index] ?? NaN;
    let kept = advantage === 0 ? 0 : logRatio;
    if (!(logRatio >= least && logRatio <= most)) {
      const inRange = clamp(logRatio, least, most);
      if (advantage > 0) clipped++;
      if (advantage < 0) lower++;
      kept = keptLogRatio(advantage, logRatio, inRange);
    }
    gradient[from + index] = weight !== 0 && advantage !== 0 && kept === logRatio ? 1 : 0;
    keptRatios += kept;
    advantageSum += advantage;
    distance += logRatio;
  }
  sums.clipped += clipped * weight;
  sums.lower += lower * weight;
  if (weight !== 0) sums.distance += distance * weight;
  ofRow.keptRatios += keptRatios * weight + logWeightsOf(block, rows);
  ofRow.advantages += advantageSum * weight;
}

/** Gives the tokens of a row that are marked their gradient. */
function freeGradient(
  gradient: Float32Array,
  { firsts, starts, ends, weights }: TokenRuns,
  row: number,
  value: number,
): void {
  const last = firsts[row + 1] ?? NaN;
  for (let run = firsts[row] ?? NaN; run < last; run++) {
    const end = ends[run] ?? NaN;
    const ofToken = value * (weights[run] ?? NaN);
    for (let at = starts[run] ?? NaN; at < end; at++) {
      if (gradient[at] === 1) gradient[at] = ofToken;
    }
  }
}

function logWeightsOf({ length, from, weight }: TokenBlock, { weights }: PolicyRows): number {
  if (weights === undefined) return 0;
  let sum = 0;
  for (let index = 0; index < length; index++) {
    sum += Math.log((weights.data[from + index] ?? NaN) + 1e-10) * weight;
  }
  return sum;
}

/** The smaller, in the direction of the advantage. */
function keptLogRatio(advantage: number, logRatio: number, clipped: number): number {
  if (advantage === 0) return Number.isFinite(logRatio) ? 0 : NaN;
  return advantage > 0 ? Math.min(logRatio, clipped) : Math.max(logRatio, clipped);
}
