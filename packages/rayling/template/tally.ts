/** An actor: an object in a thread of its own, called by a handle. */

import * as ray from "rayling";

export const Tally = ray.remote(
  class Tally {
    readonly #scores = new Map<string, number[]>();

    /** Returns the number of scores of that source. */
    add(source: string, score: number): number {
      const scores = this.#scores.get(source) ?? [];
      this.#scores.set(source, [...scores, score]);
      return scores.length + 1;
    }

    /** Returns the mean score by source. */
    means(): Record<string, number> {
      const means = [...this.#scores].map(([source, scores]): [string, number] => [
        source,
        scores.reduce((sum, score) => sum + score, 0) / scores.length,
      ]);
      return Object.fromEntries(means);
    }
  },
);
