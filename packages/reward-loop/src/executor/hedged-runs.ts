/**
 * The calls of a hedge that are in one executor, both of them: the one that lost gives up its place
 * as soon as the other has ended well. Its worker would say so, too, some milliseconds later.
 */

import { itemAt } from "@rayling/reward-manager-registry/values";
import type { Run } from "./run.ts";

export class HedgedRuns {
  /** For the id of each call the other one. */
  readonly #others: Map<number, Run> = new Map();

  /**
   * Whether the run is the second call of a hedge. Links it with the first one, if that is in here.
   *
   * @param seconds for each second call its id, and the id and the slot of the first one
   *
   * @param runs those at work, by their slots
   */
  isSecond(run: Run, seconds: readonly number[], runs: readonly (Run | undefined)[]): boolean {
    for (let at = 0; at < seconds.length; at += 3) {
      if (seconds[at] !== run.id) continue;
      const first = runs[itemAt(seconds, at + 2)];
      if (first !== undefined && first.id === seconds[at + 1]) {
        this.#others.set(first.id, run).set(run.id, first);
      }
      return true;
    }
    return false;
  }

  /** A run has ended. Returns the other call of its hedge, if that has not. */
  ended({ id }: Run): Run | undefined {
    const other = this.#others.get(id);
    if (other === undefined) return undefined;
    this.#others.delete(id);
    this.#others.delete(other.id);
    return other;
  }
}
