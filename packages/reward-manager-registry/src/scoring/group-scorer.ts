/**
 * Scores all answers to one prompt at once, under managers of single samples: every sample of a
 * group goes through its manager and waits at the score function for the others, and the function
 * is called once, with all of them. A sample that does not get there (because it cannot be read) is
 * not awaited, and is left out.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { InvalidScoreError } from "../errors.ts";
import { describeValue } from "../value-description.ts";
import type { ComputeScore, ScoreInput, ScoreOutput } from "./compute-score.ts";
import type { RewardResult } from "./reward-result.ts";
import type { RewardSample } from "./sample.ts";
import type { ComputeScores } from "./scorer.ts";

interface RowInGroup {
  readonly call: GroupCall;
  readonly place: number;
}

/** Scores all answers to one prompt with one call of a function of groups. */
export class GroupScorer {
  readonly #computeScores: ComputeScores;
  readonly #rows = new AsyncLocalStorage<RowInGroup>();

  constructor(computeScores: ComputeScores) {
    this.#computeScores = computeScores;
  }

  /** The score function for the manager. A call outside of a group is a group of one. */
  readonly computeScore: ComputeScore = (input) => {
    const row = this.#rows.getStore();
    if (row !== undefined) return row.call.join(row.place, input);
    const call = new GroupCall(1, this.#computeScores);
    return call.join(0, input);
  };

  /**
   * Returns the outcomes by row. Rejects with the function's error, and with InvalidScoreError
   * unless it returns one score for each.
   *
   * @param runSingle that of the manager that was made with `computeScore`
   */
  async run(
    samples: readonly RewardSample[],
    runSingle: (sample: RewardSample) => Promise<RewardResult>,
  ): Promise<PromiseSettledResult<RewardResult>[]> {
    const call = new GroupCall(samples.length, this.#computeScores);
    const results = await Promise.allSettled(
      samples.map((sample, place) =>
        this.#rows.run({ call, place }, async () => {
          try {
            return await runSingle(sample);
          } finally {
            call.leave(place);
          }
        }),
      ),
    );
    // A manager may turn the failure into a result.
    if (results.every(({ status }) => status === "rejected")) call.throwIfFailed();
    return results;
  }
}

interface Waiting {
  readonly input: ScoreInput;
  readonly resolve: (output: ScoreOutput | PromiseLike<ScoreOutput>) => void;
  readonly reject: (error: unknown) => void;
}

/** One call of the function: it begins when every sample has come or left. */
class GroupCall {
  readonly #computeScores: ComputeScores;
  /** Samples that have neither come nor left. */
  readonly #expected: Set<number>;
  readonly #waiting = new Map<number, Waiting>();
  #failure: { readonly error: unknown } | undefined;

  constructor(size: number, computeScores: ComputeScores) {
    this.#expected = new Set(Array.from({ length: size }, (_, place) => place));
    this.#computeScores = computeScores;
  }

  join(place: number, input: ScoreInput): Promise<ScoreOutput> {
    if (!this.#expected.delete(place)) {
      return Promise.reject(
        new Error("a manager scored one sample twice with a function that scores groups"),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.set(place, { input, resolve, reject });
      this.#beginIfWhole();
    });
  }

  /** Records that a sample will not come. */
  leave(place: number): void {
    if (this.#expected.delete(place)) this.#beginIfWhole();
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #beginIfWhole(): void {
    if (this.#expected.size === 0 && this.#waiting.size > 0) void this.#begin();
  }

  async #begin(): Promise<void> {
    const waiting = [...this.#waiting].toSorted(([a], [b]) => a - b).map(([, one]) => one);
    const inputs = waiting.map(({ input }) => input);
    try {
      const outputs: unknown = await this.#computeScores(inputs);
      if (!Array.isArray(outputs) || outputs.length !== inputs.length) {
        const received = `${describeValue(outputs)} for a group of ${inputs.length}, which needs one score for each,`;
        throw new InvalidScoreError(inputs[0]?.dataSource ?? "", received);
      }
      for (const [at, { resolve }] of waiting.entries()) resolve(outputs[at] as ScoreOutput);
    } catch (error) {
      this.#failure = { error };
      for (const { reject } of waiting) reject(error);
    }
  }
}
