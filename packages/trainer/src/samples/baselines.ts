/**
 * Rewards of remax's greedy answers to the prompts of a batch. The weights that generated the batch
 * generated them, and a mini-batch waits for those of its own prompts alone.
 */

import type { RewardRequest, SampleOutcome } from "@rayling/reward-loop";
import { present } from "@rayling/reward-manager-registry/values";
import { trainedOutcome } from "./trained-outcome.ts";
import type { TrainingSample } from "./training-sample.ts";

export class Baselines {
  /** Greedy answers, one for each group of the batch, in order. */
  readonly samples: readonly TrainingSample[];
  /** Request for the rewards of `samples`, row by row. */
  readonly request: RewardRequest;
  readonly #outcomes: readonly PromiseWithResolvers<SampleOutcome>[];

  constructor(samples: readonly TrainingSample[], request: RewardRequest) {
    this.samples = samples;
    this.request = request;
    this.#outcomes = samples.map(() => Promise.withResolvers<SampleOutcome>());
    // `outcomeOf` rejects for each caller; without a caller the rejection is handled here.
    for (const { promise } of this.#outcomes) promise.catch(() => undefined);
    void this.#gather();
  }

  /** Rejects with what the reward loop failed with. */
  outcomeOf(group: number): Promise<SampleOutcome> {
    return present(this.#outcomes[group], `group ${group}`).promise;
  }

  async #gather(): Promise<void> {
    const { request } = this;
    try {
      while (request.unasked > 0) {
        const rows = await request.take({ least: 1, most: request.unasked });
        for (const row of rows) {
          const scored = present(request.outcomeOf(row), `the outcome of row ${row}`);
          const sample = present(this.samples[row], `row ${row}`);
          this.#outcomes[row]?.resolve(trainedOutcome(sample, scored));
        }
      }
    } catch (error) {
      for (const { reject } of this.#outcomes) reject(error);
    }
  }
}
