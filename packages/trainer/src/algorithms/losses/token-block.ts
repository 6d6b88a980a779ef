/**
 * Tokens that count, a few hundred neighbours of one weight at a time: what they are read from may
 * be of any number type, and the loops of the losses do not know it. A block stays in the nearest
 * cache, and is used again for the next tokens.
 */

import { exponentialsInto } from "../exponential.ts";
import { clamp, newRoom } from "../matrix.ts";
import type { PolicyRows } from "./policy-loss.ts";

/** Neighbours of one weight. Only the first `length` numbers of each are those of tokens. */
export interface TokenBlock {
  length: number;
  /** Where the first token is in the matrices. */
  from: number;
  /** The weight of each of them in the mask. */
  weight: number;
  readonly advantages: Float64Array;
  readonly logProbs: Float64Array;
  /** logProb - oldLogProb. */
  readonly logRatios: Float64Array;
  /** Room for the exponential of each log ratio, which `ratiosInto` fills. */
  readonly ratios: Float64Array;
  /** Losses of the tokens, which the loss fills. */
  readonly values: Float64Array;
  /** The derivative of each loss by its log-probability, which the loss fills. */
  readonly slopes: Float64Array;
}

export const tokensOfBlock = 256;

export function newTokenBlock(): TokenBlock {
  const numbers = (): Float64Array => newRoom(tokensOfBlock);
  return {
    length: 0,
    from: 0,
    weight: 0,
    advantages: numbers(),
    logProbs: numbers(),
    logRatios: numbers(),
    ratios: numbers(),
    values: numbers(),
    slopes: numbers(),
  };
}

/**
 * Takes the first tokens of these places that count and have one weight. Returns the place behind
 * them.
 *
 * @param keepsSpoilt whether tokens that do not count are taken, too, where they are no numbers
 */
export function tokensInto(
  block: TokenBlock,
  rows: PolicyRows,
  [start, to]: readonly [start: number, to: number],
  keepsSpoilt: boolean,
): number {
  const { advantages, logProbs, logRatios } = block;
  const mask = rows.mask.data;
  const givenAdvantages = rows.advantages.data;
  const givenLogProbs = rows.logProb.data;
  const givenOld = rows.oldLogProb.data;
  const from = keepsSpoilt ? firstTaken(rows, start, to) : firstCounted(mask, start, to);
  const weight = from < to ? (mask[from] ?? NaN) : 0;
  // One that does not count says nothing about its neighbours.
  const most = from + (weight === 0 ? 1 : tokensOfBlock);
  const end = sameUpTo(mask, from, Math.min(most, to));
  for (let at = from, index = 0; at < end; at++, index++) {
    const logProb = givenLogProbs[at] ?? NaN;
    advantages[index] = givenAdvantages[at] ?? NaN;
    logProbs[index] = logProb;
    logRatios[index] = logProb - (givenOld[at] ?? NaN);
  }
  block.length = end - from;
  block.from = from;
  block.weight = weight;
  return end;
}

/** Returns where the numbers that equal the first one end. */
function sameUpTo(numbers: Float64Array | Float32Array, from: number, to: number): number {
  const first = numbers[from];
  let end = Math.min(from + 1, to);
  while (end < to && numbers[end] === first) end++;
  return end;
}

function firstCounted(mask: Float64Array | Float32Array, start: number, to: number): number {
  let from = start;
  while (from < to && mask[from] === 0) from++;
  return from;
}

/** Returns the place of the first token that counts, or is no number. */
function firstTaken(
  { mask: { data: mask }, advantages, logProb, oldLogProb, weights }: PolicyRows,
  start: number,
  to: number,
): number {
  const { data: ofAdvantages } = advantages;
  const { data: ofLogProb } = logProb;
  const { data: ofOld } = oldLogProb;
  // Without weights, log-probabilities once more: no number stays none.
  const { data: ofWeights } = weights ?? logProb;
  for (let at = start; at < to; at++) {
    if (mask[at] !== 0) return at;
    const sum = (ofAdvantages[at] ?? NaN) + (ofLogProb[at] ?? NaN) + (ofOld[at] ?? NaN);
    if (!Number.isFinite(sum + (ofWeights[at] ?? NaN))) return at;
  }
  return to;
}

/** Multiplies losses and slopes by a weight of each token. */
export function scaleBlock(
  { length, from, values, slopes }: TokenBlock,
  scales: Float64Array | Float32Array,
): void {
  for (let index = 0; index < length; index++) {
    const scale = scales[from + index] ?? NaN;
    values[index] = (values[index] ?? NaN) * scale;
    slopes[index] = (slopes[index] ?? NaN) * scale;
  }
}

/** Sums of a row, before its share. */
export interface RowSums {
  losses: number;
  logRatios: number;
}

/**
 * Adds the losses of the block, as far as they count, and the log ratios, each within what is kept
 * of it. Fills in the gradient of the losses.
 *
 * @param factor by what the losses of these tokens are multiplied in the whole loss
 */
export function addBlock(
  { length, from, weight, logRatios: given, values, slopes }: TokenBlock,
  sums: RowSums,
  {
    factor,
    kept,
    gradient,
  }: { readonly factor: number; readonly kept: number; readonly gradient: Float32Array },
): void {
  const scale = weight * factor;
  let losses = 0;
  let logRatios = 0;
  for (let index = 0; index < length; index++) {
    losses += values[index] ?? NaN;
    // A token that does not count may have no number here.
    if (weight === 0) continue;
    logRatios += clamp(given[index] ?? NaN, -kept, kept);
    gradient[from + index] = scale * (slopes[index] ?? NaN);
  }
  sums.losses += losses * weight;
  sums.logRatios += logRatios * weight;
}

/**
 * Fills in the ratios of a block. Where a token does not count NaN does harm, and a ratio that is
 * too large does not.
 */
export function ratiosInto(
  { length, weight, logRatios, ratios }: TokenBlock,
  maxLogRatio: number,
): void {
  const most = weight === 0 ? 1 : maxLogRatio;
  for (let index = 0; index < length; index++) {
    ratios[index] = clamp(logRatios[index] ?? NaN, -most, most);
  }
  exponentialsInto(ratios, ratios, length);
}
