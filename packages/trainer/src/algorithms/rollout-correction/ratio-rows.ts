/**
 * The ratios of the trained policy's probabilities to the rollout's, row by row: what weights,
 * tests and metrics look at. The exponential of a token is worked out once for all of them.
 */

import { exponentialsInto } from "../exponential.ts";
import { clamp, type MatrixView, newRoom, unboxed } from "../matrix.ts";
import { runsOf, type TokenRuns } from "../runs.ts";

/** A log ratio beyond this is taken for this: exp of it is still a number to work with. */
export const safetyBound = 20;

export interface RatioBatch {
  readonly logProb: MatrixView;
  readonly rolloutLogProb: MatrixView;
  readonly mask: MatrixView;
  /** The tokens that count. Default: they are looked for in the mask. */
  readonly runs?: TokenRuns;
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
  const runs = batch.runs ?? runsOf(batch.mask);
  for (let row = 0; row < rows; row++) {
    startRow(tokens, row);
    const last = runs.firsts[row + 1] ?? NaN;
    for (let run = runs.firsts[row] ?? NaN; run < last; run++) addRun(tokens, batch, runs, run);
    exponentialsInto(tokens.ratios, tokens.bounded, tokens.length);
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

function startRow(tokens: RatioRow, row: number): void {
  tokens.row = row;
  tokens.length = 0;
  tokens.count = 0;
  tokens.logProbSum = 0;
  tokens.rolloutSum = 0;
  tokens.logRatioSum = 0;
}

function addRun(
  tokens: RatioRow,
  { logProb, rolloutLogProb }: RatioBatch,
  { starts, ends, weights }: TokenRuns,
  run: number,
): void {
  const { places, mask, logRatios, bounded } = tokens;
  const { data: ofLogProb } = logProb;
  const { data: ofRollout } = rolloutLogProb;
  const start = starts[run] ?? NaN;
  const end = ends[run] ?? NaN;
  const weight = unboxed(weights[run] ?? NaN);
  let { length, logProbSum, rolloutSum, logRatioSum } = tokens;
  mask.fill(weight, length, length + end - start);
  for (let at = start; at < end; at++, length++) {
    const own = ofLogProb[at] ?? NaN;
    const rollout = ofRollout[at] ?? NaN;
    const logRatio = own - rollout;
    places[length] = at;
    logRatios[length] = logRatio;
    bounded[length] = clamp(logRatio, -safetyBound, safetyBound);
    logProbSum += own * weight;
    rolloutSum += rollout * weight;
    logRatioSum += logRatio * weight;
  }
  tokens.length = length;
  tokens.count += weight * (end - start);
  tokens.logProbSum = logProbSum;
  tokens.rolloutSum = rolloutSum;
  tokens.logRatioSum = logRatioSum;
}
