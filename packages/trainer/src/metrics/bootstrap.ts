/**
 * Estimates of the best, the worst and the majority of k of n answers, from 1,000 draws of k with
 * replacement (verl `bootstrap_metric`, `calc_maj_val`).
 *
 * A validation makes millions of draws: loops are flat, over typed arrays, and sums are in the
 * order of the draws, since another order has other last digits.
 */

import { wholeStdOf } from "../algorithms/statistics.ts";
import { createMt19937 } from "./mt19937.ts";

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

/** @param values one value for each draw */
export function estimateOf(values: Float64Array): Estimate {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at] ?? NaN;
  const mean = sum / values.length;
  return { mean, std: wholeStdOf(values, mean) };
}

/** The best and the worst value of each draw; NaN where a value of it is NaN. */
export interface Extremes {
  readonly best: Float64Array;
  readonly worst: Float64Array;
}

/** @param into overwritten: it has room for `count` draws */
export function extremesOf(
  { places, count, size }: Draws,
  values: Float64Array,
  into: Extremes,
): Extremes {
  const { best, worst } = into;
  let at = 0;
  for (let draw = 0; draw < count; draw++) {
    const end = at + size;
    let most = -Infinity;
    let least = Infinity;
    for (; at < end; at++) {
      const value = values[places[at] ?? NaN] ?? NaN;
      most = Math.max(most, value);
      least = Math.min(least, value);
    }
    best[draw] = most;
    worst[draw] = least;
  }
  return into;
}

/**
 * Returns for each draw the place whose value counts: the first of the most frequent answer, and
 * of several as frequent ones the first.
 *
 * @param answers equal numbers for equal answers, from 0
 */
export function majoritiesOf({ places, count, size }: Draws, answers: Int32Array): Int32Array {
  const winners = new Int32Array(count);
  const votes = new Int32Array(1 + answers.reduce((most, answer) => Math.max(most, answer), 0));
  for (let draw = 0; draw < count; draw++) {
    const begin = draw * size;
    const end = begin + size;
    let most = 0;
    for (let at = begin; at < end; at++) {
      const answer = answers[places[at] ?? NaN] ?? NaN;
      const so = (votes[answer] ?? NaN) + 1;
      votes[answer] = so;
      if (so > most) most = so;
    }
    let first = begin;
    while (first < end && votes[answers[places[first] ?? NaN] ?? NaN] !== most) first++;
    winners[draw] = places[first] ?? NaN;
    for (let at = begin; at < end; at++) votes[answers[places[at] ?? NaN] ?? NaN] = 0;
  }
  return winners;
}

/** @param into overwritten: it has room for a value of each place */
export function valuesAt(
  places: Int32Array,
  values: Float64Array,
  into: Float64Array,
): Float64Array {
  for (let at = 0; at < places.length; at++) into[at] = values[places[at] ?? NaN] ?? NaN;
  return into;
}
