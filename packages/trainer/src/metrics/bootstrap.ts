/**
 * Estimates of the best, the worst and the majority of k of n answers, from 1,000 draws of k with
 * replacement (verl `bootstrap_metric`, `calc_maj_val`).
 */

import { wholeStdOf } from "../algorithms/statistics.ts";
import { createMt19937 } from "./mt19937.ts";
import { meanOf } from "../values/sums.ts";

export interface Draws {
  /** Row by row: `count` draws of `size` places each. */
  readonly places: Int32Array;
  readonly count: number;
  readonly size: number;
}

/** Returns equal places for equal numbers: verl seeds again before each draw. */
export function drawPlaces(rows: number, size: number, seed = 42, count = 1000): Draws {
  const generator = createMt19937(seed);
  const places = new Int32Array(count * size);
  for (let at = 0; at < places.length; at++) places[at] = generator.below(rows);
  return { places, count, size };
}

export interface Estimate {
  readonly mean: number;
  /** Standard deviation of all values, divided by n. */
  readonly std: number;
}

/** @param valueOf a draw: its places in what was drawn from */
export function estimateOf(
  { places, count, size }: Draws,
  valueOf: (draw: Int32Array) => number,
): Estimate {
  const values = new Float64Array(count);
  for (let draw = 0; draw < count; draw++) {
    values[draw] = valueOf(places.subarray(draw * size, (draw + 1) * size));
  }
  return { mean: meanOf(values), std: wholeStdOf(values) };
}

/**
 * Returns the value of the most frequent answer, the first one of several; of its rows the first
 * value counts.
 *
 * @param answers equal numbers for equal answers, from 0
 */
export function majorityOf(
  draw: Int32Array,
  answers: Int32Array,
  values: Float64Array,
  counts: Int32Array,
): number {
  counts.fill(0);
  let most = 0;
  for (const place of draw) {
    const answer = answers[place] ?? NaN;
    const count = (counts[answer] ?? NaN) + 1;
    counts[answer] = count;
    if (count > most) most = count;
  }
  for (const place of draw) {
    if (counts[answers[place] ?? NaN] === most) return values[place] ?? NaN;
  }
  return Number.NaN;
}
