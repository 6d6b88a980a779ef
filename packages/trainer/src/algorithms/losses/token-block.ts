/**
 * The tokens that count, a few hundred of a row at a time and side by side: what they are read from
 * may have gaps and be of any number type, and the loops of the losses know neither. A block stays
 * in the nearest cache, and is used again for the next tokens.
 */

import { clamp } from "../matrix.ts";
import type { PolicyRows } from "./policy-loss.ts";

/** Only the first `length` numbers of each are those of tokens. */
export interface TokenBlock {
  length: number;
  /** Where the tokens are in the matrices. */
  readonly places: Int32Array;
  /** The weight of each token in the mask. */
  readonly mask: Float64Array;
  readonly advantages: Float64Array;
  readonly logProbs: Float64Array;
  /** logProb - oldLogProb. */
  readonly logRatios: Float64Array;
  /** Losses of the tokens, which the loss fills. */
  readonly values: Float64Array;
  /** The derivative of each loss by its log-probability, which the loss fills. */
  readonly slopes: Float64Array;
}

export const tokensOfBlock = 256;

export function newTokenBlock(most: number = tokensOfBlock): TokenBlock {
  const numbers = (): Float64Array => new Float64Array(most);
  return {
    length: 0,
    places: new Int32Array(most),
    mask: numbers(),
    advantages: numbers(),
    logProbs: numbers(),
    logRatios: numbers(),
    values: numbers(),
    slopes: numbers(),
  };
}

/**
 * Takes the tokens of these places that count, which are no more than a block holds.
 *
 * @param keepsSpoilt whether tokens that do not count are taken, too, where they are no numbers
 */
export function tokensInto(
  block: TokenBlock,
  rows: PolicyRows,
  [from, to]: readonly [from: number, to: number],
  keepsSpoilt: boolean,
): void {
  const { places, mask, advantages, logProbs, logRatios } = block;
  const given = rows.mask.data;
  const givenAdvantages = rows.advantages.data;
  const givenLogProbs = rows.logProb.data;
  const givenOld = rows.oldLogProb.data;
  let length = 0;
  for (let at = from; at < to; at++) {
    const counted = given[at] ?? NaN;
    if (counted === 0 && !(keepsSpoilt && isSpoilt(rows, at))) continue;
    const logProb = givenLogProbs[at] ?? NaN;
    places[length] = at;
    mask[length] = counted;
    advantages[length] = givenAdvantages[at] ?? NaN;
    logProbs[length] = logProb;
    logRatios[length] = logProb - (givenOld[at] ?? NaN);
    length++;
  }
  block.length = length;
}

function isSpoilt({ advantages, logProb, oldLogProb, weights }: PolicyRows, at: number): boolean {
  const sum =
    (advantages.data[at] ?? NaN) + (logProb.data[at] ?? NaN) + (oldLogProb.data[at] ?? NaN);
  return !Number.isFinite(sum + (weights === undefined ? 0 : (weights.data[at] ?? NaN)));
}

/** Multiplies losses and slopes by a weight of each token. */
export function scaleBlock(
  { length, places, values, slopes }: TokenBlock,
  scales: Float64Array | Float32Array,
): void {
  for (let index = 0; index < length; index++) {
    const scale = scales[places[index] ?? 0] ?? NaN;
    values[index] = (values[index] ?? NaN) * scale;
    slopes[index] = (slopes[index] ?? NaN) * scale;
  }
}

/** Returns the sum with the log ratios of the block, each within what is kept of it. */
export function addLogRatios(
  { length, mask, logRatios }: TokenBlock,
  sum: number,
  kept: number,
): number {
  let total = sum;
  for (let index = 0; index < length; index++) {
    const counted = mask[index] ?? NaN;
    if (counted !== 0) total += clamp(logRatios[index] ?? NaN, -kept, kept) * counted;
  }
  return total;
}

/**
 * Returns the sum with the losses of the block, as far as they count, and fills in their gradient.
 *
 * @param factor by what the losses of these tokens are multiplied in the whole loss
 */
export function addLosses(
  { length, places, mask, values, slopes }: TokenBlock,
  sum: number,
  factor: number,
  gradient: Float32Array,
): number {
  let total = sum;
  for (let index = 0; index < length; index++) {
    const counted = mask[index] ?? NaN;
    total += (values[index] ?? NaN) * counted;
    if (counted !== 0) gradient[places[index] ?? 0] = counted * factor * (slopes[index] ?? NaN);
  }
  return total;
}
