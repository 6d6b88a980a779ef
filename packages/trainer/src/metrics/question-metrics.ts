/**
 * Metrics of the answers to one question: mean@n, std@n, and best, worst and majority of k of n.
 * Draws are the same for each question of as many answers, and so are the best and the worst of
 * equal values: both are worked out once.
 */

import { wholeStdOf } from "../algorithms/statistics.ts";
import { meanOf } from "../values/sums.ts";
import type { Steps } from "../values/turns.ts";
import { drawPlaces, estimateOf, extremesOf, majoritiesOf, valuesAt } from "./bootstrap.ts";
import type { Draws, Estimate, Extremes } from "./bootstrap.ts";

/**
 * How many estimates are kept: all of eight answers that are right or wrong are 3 sizes x 256. A
 * validation whose values hardly repeat must not hold one for each of its questions.
 */
const maxKept = 4096;

/**
 * Answers to one question that vote. Who wins which draw does not depend on the variable, and
 * variables often have equal values, as "acc" and "score".
 */
export class Votes {
  readonly #answers: Int32Array;
  readonly #winners = new Map<Draws, Int32Array>();
  readonly #kept = new Map<string, Estimate>();

  /** @param answers equal numbers for equal answers, from 0 */
  constructor(answers: Int32Array) {
    this.#answers = answers;
  }

  /** @param key of the draws and the values. @param room for a value of each draw: overwritten */
  estimateOf(draws: Draws, values: Float64Array, key: string, room: Float64Array): Estimate {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const winners = this.#winners.get(draws) ?? majoritiesOf(draws, this.#answers);
    this.#winners.set(draws, winners);
    const estimate = estimateOf(valuesAt(winners, values, room));
    this.#kept.set(key, estimate);
    return estimate;
  }
}

export class QuestionMetrics {
  readonly #seed: number;
  readonly #draws = new Map<string, Draws>();
  readonly #kept = new Map<string, { readonly best: Estimate; readonly worst: Estimate }>();
  /** Room for a value of each draw, which is used again. */
  #room: Extremes = { best: new Float64Array(), worst: new Float64Array() };

  /** @param seed seed of the draws */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Returns the metrics by name. @param votes undefined: there is no majority */
  *of(values: Float64Array, votes: Votes | undefined): Steps<Record<string, number>> {
    const n = values.length;
    const metrics: Record<string, number> = { [`mean@${n}`]: meanOf(values) };
    if (n === 1) return metrics;
    metrics[`std@${n}`] = wholeStdOf(values);
    const add = (name: string, { mean, std }: Estimate): void => {
      metrics[`${name}/mean`] = mean;
      metrics[`${name}/std`] = std;
    };
    const text = values.join(" ");
    const [first] = values;
    const isOneValue = values.every((value) => value === first);
    for (const size of sizesOf(n)) {
      const draws = this.#drawsOf(n, size);
      const key = `${size} of ${text}`;
      const { best, worst } = this.#extremesOf(draws, values, key);
      add(`best@${size}`, best);
      add(`worst@${size}`, worst);
      // Who wins makes no difference where all have one value.
      if (votes !== undefined) {
        const { best: room } = this.#room;
        add(`maj@${size}`, isOneValue ? best : votes.estimateOf(draws, values, key, room));
      }
      yield;
    }
    return metrics;
  }

  #drawsOf(n: number, size: number): Draws {
    const key = `${size} of ${n}`;
    const draws = this.#draws.get(key) ?? drawPlaces(n, size, this.#seed);
    this.#draws.set(key, draws);
    if (this.#room.best.length !== draws.count) {
      this.#room = { best: new Float64Array(draws.count), worst: new Float64Array(draws.count) };
    }
    return draws;
  }

  #extremesOf(
    draws: Draws,
    values: Float64Array,
    key: string,
  ): { readonly best: Estimate; readonly worst: Estimate } {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const { best, worst } = extremesOf(draws, values, this.#room);
    const estimates = { best: estimateOf(best), worst: estimateOf(worst) };
    if (this.#kept.size === maxKept) this.#kept.clear();
    this.#kept.set(key, estimates);
    return estimates;
  }
}

/** 2, 4, 8 and so on, as far as they are below n, and n. */
function sizesOf(n: number): number[] {
  const sizes: number[] = [];
  for (let size = 2; size < n; size *= 2) sizes.push(size);
  return [...sizes, n];
}
