/**
 * The ratios of the trained policy's probabilities to the rollout's, row by row: what weights,
 * tests and metrics look at. The exponential of a token is worked out once for all of them.
 */

import { exponentialsInto } from "../exponential.ts";
import { clamp, type MatrixView, newRoom } from "../matrix.ts";

/** A log ratio beyond this is taken for this: exp of it is still a number to work with. */
export const safetyBound = 20;

export interface RatioBatch {
  readonly logProb: MatrixView;
  readonly rolloutLogProb: MatrixView;
  readonly mask: MatrixView;
}

/** The tokens of a row that count, side by side; the object is used again for the next row. */
export interface RatioRow {
  row: number;
  /** How many tokens there are: the first ones of each list. */
  length: number;
  /** The sum of their mask. */
  count: number;
  /** Masked sums. */
  logProbSum: number;
  rolloutSum: number;
  logRatioSum: number;
  /** Where the tokens are in the matrices. */
  readonly places: Int32Array;
  readonly mask: Float64Array;
  readonly logRatios: Float64Array;
  /** Log ratios within the safety bound. */
  readonly bounded: Float64Array;
  /** exp of `bounded`. */
  readonly ratios: Float64Array;
}

/** Shows each row to `look`. */
export function eachRatioRow(batch: RatioBatch, look: (row: RatioRow) => void): void {
  const { rows, columns } = batch.mask;
  const tokens = newRatioRow(columns);
  for (let row = 0; row < rows; row++) {
    tokens.row = row;
    tokensInto(tokens, batch);
    const { length, logRatios, bounded, ratios } = tokens;
    for (let index = 0; index < length; index++) {
      bounded[index] = clamp(logRatios[index] ?? NaN, -safetyBound, safetyBound);
    }
    exponentialsInto(ratios, bounded, length);
    look(tokens);
  }
}

function newRatioRow(columns: number): RatioRow {
  const numbers = (): Float64Array => newRoom(columns);
  return {
    row: 0,
    length: 0,
    count: 0,
    logProbSum: 0,
    rolloutSum: 0,
    logRatioSum: 0,
    places: new Int32Array(columns),
    mask: numbers(),
    logRatios: numbers(),
    bounded: numbers(),
    ratios: numbers(),
  };
}

function tokensInto(tokens: RatioRow, { logProb, rolloutLogProb, mask: given }: RatioBatch): void {
  const { row, places, mask, logRatios } = tokens;
  const { data: weights } = given;
  const { data: ofLogProb } = logProb;
  const { data: ofRollout } = rolloutLogProb;
  const end = (row + 1) * given.columns;
  let length = 0;
  let count = 0;
  let logProbSum = 0;
  let rolloutSum = 0;
  let logRatioSum = 0;
  for (let at = row * given.columns; at < end; at++) {
    const counted = weights[at] ?? NaN;
    if (counted === 0) continue;
    const own = ofLogProb[at] ?? NaN;
    const rollout = ofRollout[at] ?? NaN;
    const logRatio = own - rollout;
    places[length] = at;
    mask[length] = counted;
    logRatios[length] = logRatio;
    length++;
    count += counted;
    logProbSum += own * counted;
    rolloutSum += rollout * counted;
    logRatioSum += logRatio * counted;
  }
  tokens.length = length;
  tokens.count = count;
  tokens.logProbSum = logProbSum;
  tokens.rolloutSum = rolloutSum;
  tokens.logRatioSum = logRatioSum;
}
