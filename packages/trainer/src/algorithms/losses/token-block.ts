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

/** A batch that is shown in blocks. */
export interface BlockSource {
  readonly block: TokenBlock;
  readonly rows: PolicyRows;
  /** Whether tokens that do not count are taken, too, where they are no numbers. */
  readonly keepsSpoilt: boolean;
}

/** Shows the tokens of a row that count, block by block. */
export function eachBlock(
  source: BlockSource,
  row: number,
  look: (block: TokenBlock) => void,
): void {
  const { block, rows, keepsSpoilt } = source;
  const { firsts, starts, ends, weights } = rows.runs;
  const { columns } = rows.mask;
  const last = firsts[row + 1] ?? NaN;
  let behind = row * columns;
  for (let run = firsts[row] ?? NaN; run < last; run++) {
    const start = starts[run] ?? NaN;
    const end = ends[run] ?? NaN;
    if (keepsSpoilt) eachSpoilt(source, [behind, start], look);
    block.weight = weights[run] ?? NaN;
    for (let from = start; from < end; from += tokensOfBlock) {
      tokensInto(block, rows, from, Math.min(from + tokensOfBlock, end));
      look(block);
    }
    behind = end;
  }
  if (keepsSpoilt) eachSpoilt(source, [behind, (row + 1) * columns], look);
}

/** Shows tokens that do not count, each by itself, where they are no numbers. */
function eachSpoilt(
  { block, rows }: BlockSource,
  [start, to]: readonly [start: number, to: number],
  look: (block: TokenBlock) => void,
): void {
  block.weight = 0;
  for (let at = firstSpoilt(rows, start, to); at < to; at = firstSpoilt(rows, at + 1, to)) {
    tokensInto(block, rows, at, at + 1);
    look(block);
  }
}

function tokensInto(block: TokenBlock, rows: PolicyRows, from: number, end: number): void {
  const { advantages, logProbs, logRatios } = block;
  const givenAdvantages = rows.advantages.data;
  const givenLogProbs = rows.logProb.data;
  const givenOld = rows.oldLogProb.data;
  for (let at = from, index = 0; at < end; at++, index++) {
    const logProb = givenLogProbs[at] ?? NaN;
    advantages[index] = givenAdvantages[at] ?? NaN;
    logProbs[index] = logProb;
    logRatios[index] = logProb - (givenOld[at] ?? NaN);
  }
  block.length = end - from;
  block.from = from;
}

/** Returns the place of the first token that is no number. */
function firstSpoilt(
  { advantages, logProb, oldLogProb, weights }: PolicyRows,
  start: number,
  to: number,
): number {
  const { data: ofAdvantages } = advantages;
  const { data: ofLogProb } = logProb;
  const { data: ofOld } = oldLogProb;
  // Without weights, log-probabilities once more: no number stays none.
  const { data: ofWeights } = weights ?? logProb;
  for (let at = start; at < to; at++) {
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
  // A token that does not count may have no number.
  if (weight === 0) return void (sums.losses += (values[0] ?? NaN) * weight);
  const scale = weight * factor;
  let losses = 0;
  let logRatios = 0;
  for (let index = 0; index < length; index++) {
    losses += values[index] ?? NaN;
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
  exponentialsInto(ratios, logRatios, length, weight === 0 ? 1 : maxLogRatio);
}
