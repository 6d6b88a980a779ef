/**
 * One mini-batch: advantages of its groups, then the updates of the critic and of the policy, and
 * what the step records of them.
 */

import type { CriticHandle, PolicyInfo } from "../policy/policy.ts";
import type { MiniBatches } from "../groups/mini-batches.ts";
import type { StepRecord } from "../record/step-record.ts";
import type { PreparedRows, PreparedSamples } from "../rollouts/prepared-rows.ts";
import { scoreColumnsOf, tensorIn } from "../samples/columns.ts";
import { isGivenUp } from "../samples/rollout-batch.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";
import { needsBaselines } from "../settings/training-settings.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import type { Learnable, Learner } from "./learner.ts";

export interface UpdatesParts {
  readonly policyInfo: PolicyInfo;
  readonly critic: CriticHandle | undefined;
  readonly learner: Learner;
  readonly settings: TrainingSettings;
  readonly prepared: PreparedRows;
  readonly miniBatches: MiniBatches;
}

export class Updates {
  readonly #parts: UpdatesParts;

  constructor(parts: UpdatesParts) {
    this.#parts = parts;
  }

  /** @param isLast whether the step has no mini-batch after this one */
  async learn(rows: PreparedSamples, isLast: boolean, record: StepRecord): Promise<void> {
    await this.#parts.miniBatches.update(async () => {
      const { drawn } = await this.#advantages(rows, record);
      for (const { batch, row } of rows.samples) batch.isUsed[row] = 1;
      await this.#update(rows, drawn, { isLast, record });
    });
  }

  /** Counts the greedy answers of remax among the scores of the step, once for each prompt. */
  countBaselines(samples: readonly ScoredSample[], record: StepRecord): void {
    for (const { batch, row } of samples) {
      if (row % batch.n !== 0) continue;
      const request = batch.baselines?.request;
      const outcome = request?.outcomeOf(row / batch.n);
      if (outcome === undefined || isGivenUp(outcome)) continue;
      record.scored(outcome, request?.isKnown(row / batch.n) === true);
    }
  }

  async #advantages({ samples, data }: PreparedSamples, record: StepRecord): Promise<Learnable> {
    const { learner, policyInfo } = this.#parts;
    const baselines = await this.#baselinesOf(samples, record);
    return await record.clock.time("adv", () => {
      const own = samples.map(({ sample }) => sample);
      const outcomes = samples.map(({ outcome }) => outcome);
      const [, width = 1] = tensorIn(data, "responses").shape;
      const { scores, valid: isScored } = scoreColumnsOf(own, outcomes, width);
      const valid = isScored.map((one, row) => one && baselines?.[row] !== null);
      const rewardBaselines = baselines?.map((one) => one ?? 0);
      const rows = { data, scores, valid, samples, rewardBaselines };
      const learnable = learner.advantagesOf(rows, record.step, record.metrics);
      if (policyInfo.scoresTokens) learner.recordEntropy(data, record.metrics);
      record.learned(samples, { data: learnable.data, valid });
      return learnable;
    });
  }

  /** @param drawn rows that the updates learn from */
  async #update(
    { samples, data }: PreparedSamples,
    drawn: Learnable["drawn"],
    { isLast, record }: { readonly isLast: boolean; readonly record: StepRecord },
  ): Promise<void> {
    const { learner, policyInfo, critic, prepared, settings } = this.#parts;
    const trainsPolicy = policyInfo.trains && settings.run.criticWarmup <= record.step;
    if (critic !== undefined) {
      const account = record.account("update_critic");
      await record.clock.time("update_critic", () => {
        if (!trainsPolicy) record.used(samples);
        return learner.updateCritic(drawn, record.metrics, { isLast, account });
      });
    } else if (!trainsPolicy) record.used(samples);
    if (!trainsPolicy) return;
    const isFresh = prepared.isFresh(data);
    const { scoresTokens } = policyInfo;
    const partOfStep = record.parts.length;
    const account = record.account("update_actor");
    const context = { isLast, isFresh, scoresTokens, partOfStep, account };
    await record.clock.time("update_actor", () => {
      record.used(samples);
      return learner.updateActor(drawn, record.metrics, context);
    });
    prepared.updated();
  }

  /**
   * Returns the rewards of remax's greedy answers to the same prompts, undefined for other
   * estimators. Null stands for a greedy answer without a valid score: its prompt's samples have
   * nothing to be compared with.
   */
  async #baselinesOf(
    samples: readonly ScoredSample[],
    record: StepRecord,
  ): Promise<(number | null)[] | undefined> {
    const { settings, miniBatches } = this.#parts;
    if (!needsBaselines(settings)) return undefined;
    const outcomes = await miniBatches.waitFor(record, () =>
      Promise.all(
        samples.map(
          async ({ batch, row }) => await batch.baselines?.outcomeOf(Math.floor(row / batch.n)),
        ),
      ),
    );
    this.countBaselines(samples, record);
    return outcomes.map((outcome) => (outcome?.valid === true ? outcome.rewardScore : null));
  }
}
