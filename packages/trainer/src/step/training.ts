/**
 * The parts of a training step, which a schedule puts in order: rollouts with their rewards on the
 * way, log-probabilities, updates, and at the end report, save and validate.
 */

import type { TakeRange } from "@rayling/reward-loop";
import type { PromptLoader } from "../data/prompt-loader.ts";
import type { GroupPool } from "../groups/group-pool.ts";
import { MiniBatches } from "../groups/mini-batches.ts";
import { StepGroups } from "../groups/step-groups.ts";
import type { CriticHandle, PolicyHandle, PolicyInfo } from "../policy/policy.ts";
import { CurrentStep } from "../record/current-step.ts";
import type { StepReports } from "../record/step-reports.ts";
import { PreparedRows } from "../rollouts/prepared-rows.ts";
import type { RewardRequests } from "../rollouts/reward-requests.ts";
import { Rollouts } from "../rollouts/rollouts.ts";
import type { TrainingStart } from "../rollouts/training-state.ts";
import { scoredSamplesOf } from "../samples/rollout-batch.ts";
import type { PreparedBatch, RolloutBatch, ScoredSample } from "../samples/rollout-batch.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";
import type { Validations } from "../validation/validations.ts";
import type { Learner } from "./learner.ts";
import type { TrainingCheckpoints } from "./training-checkpoints.ts";
import { Updates } from "./updates.ts";

/** Parts that a training is made of. */
export interface TrainingParts {
  /** The policy that is trained. */
  readonly policy: PolicyHandle;
  /** Description by the policy itself. */
  readonly policyInfo: PolicyInfo;
  /** The reference policy, if one is needed. */
  readonly referencePolicy: PolicyHandle | undefined;
  /** The critic, if there is one. */
  readonly critic: CriticHandle | undefined;
  /** Batches of prompts to train on. */
  readonly prompts: PromptLoader;
  /** Requests to the reward loop. */
  readonly rewards: RewardRequests;
  /** Computes advantages and gradients, and updates the policy and the critic. */
  readonly learner: Learner;
  /** Settings of the training. */
  readonly settings: TrainingSettings;
  /** Receives the reports of the training. */
  readonly tracker: StepTracker;
  /** Milliseconds, for waits and updates. */
  readonly now: () => number;
  /** Metrics of each step. */
  readonly reports: StepReports;
  /** Saves the training, and resumes it. */
  readonly checkpoints: TrainingCheckpoints;
  /** Validates the policy on the validation prompts. */
  readonly validations: Validations;
}

/** Parts of a training step, for a schedule to put in order. */
export class Training {
  /** Settings of the training. */
  readonly settings: TrainingSettings;
  readonly #parts: TrainingParts;
  readonly #step: CurrentStep;
  /** Steps that `rollout` has given a batch for. */
  #begunSteps: number;
  readonly #rollouts: Rollouts;
  readonly #prepared: PreparedRows;
  readonly #miniBatches: MiniBatches;
  readonly #groups: StepGroups;
  readonly #updates: Updates;

  constructor(parts: TrainingParts, start: TrainingStart) {
    const { settings, prompts, now } = parts;
    this.#parts = parts;
    this.settings = settings;
    this.#begunSteps = start.finishedSteps;
    const rollouts = new Rollouts(parts, start);
    const prepared = new PreparedRows(parts);
    const miniBatches = new MiniBatches(settings, start.miniBatchSize, now);
    this.#rollouts = rollouts;
    this.#prepared = prepared;
    this.#miniBatches = miniBatches;
    const own = { settings, prompts, rollouts, prepared, miniBatches };
    this.#groups = new StepGroups(own, start.finishedSteps);
    this.#updates = new Updates({ ...parts, prepared, miniBatches });
    this.#step = new CurrentStep(parts, start.finishedSteps);
  }

  /** Whether there is a step left to train. */
  get hasSteps(): boolean {
    return this.#step.finishedSteps < this.settings.run.totalSteps;
  }

  /** Number of steps that are trained. */
  get finishedSteps(): number {
    return this.#step.finishedSteps;
  }

  /** Batches with rows that are not trained yet, oldest first. */
  get outstanding(): readonly RolloutBatch[] {
    return this.#rollouts.outstanding;
  }

  /**
   * Returns rollouts of the next prompts with their rewards on the way; undefined where all steps
   * that are left have theirs.
   *
   * @param streaming whether each reward begins with its own rollout, not with the whole batch.
   *   Default false.
   */
  async rollout({ streaming = false }: { streaming?: boolean } = {}): Promise<
    RolloutBatch | undefined
  > {
    // A checkpoint of another schedule may have more batches than there are steps left.
    if (this.#begunSteps >= this.settings.run.totalSteps) return undefined;
    this.#begunSteps += 1;
    return await this.#rollouts.next(streaming, this.#step.record);
  }

  /** Adds log-probabilities of the policy and of its reference, and values, for all rows. */
  async prepare(batch: RolloutBatch): Promise<PreparedBatch> {
    return { ...batch, data: await this.#prepared.of(batch.samples, this.#step.record) };
  }

  /**
   * Returns how many rows the step still takes of this batch; with a filter of groups, how many it
   * still takes of this batch and of those generated in place of filtered groups.
   */
  left({ rewards }: RolloutBatch): number {
    const { algorithm, trainBatchSize, rollout } = this.settings;
    if (algorithm.filterGroups === undefined) return rewards.unasked;
    return trainBatchSize * rollout.n - this.#step.record.samples.length;
  }

  /**
   * Trains on rows of whole groups of the batch, as soon as so many are scored. Groups that the
   * filter leaves out are replaced by newly generated ones.
   *
   * @param rows with a filter, a number takes the groups whose prompts came first, a range those
   *   scored first
   */
  async learn(batch: PreparedBatch, rows: number | TakeRange): Promise<void> {
    const { record } = this.#step;
    if (this.settings.algorithm.filterGroups !== undefined) {
      const left = this.left(batch);
      const samples = await this.#groups.takeFiltered(batch, rows, { left, record });
      return await this.learnFrom(samples, samples.length === left);
    }
    const { rewards } = batch;
    const taken = await this.#miniBatches.waitFor(record, () => rewards.take(rows));
    const samples = scoredSamplesOf(batch, taken);
    const data = batch.data.selectIdxs(taken);
    await this.#updates.learn({ samples, data }, rewards.unasked === 0, record);
  }

  /** Returns how many rows the next mini-batch has. @param left rows that the step still takes */
  nextPart(left: number): TakeRange {
    const { n } = this.settings.rollout;
    const { least, most } = this.#miniBatches.next(left / n);
    return { least: least * n, most: most * n };
  }

  /** Groups of this step, for schedules that take them from a pool. */
  get stepGroups(): number {
    return this.#groups.countOf(this.#step.finishedSteps);
  }

  /** Creates a pool for batches, which keeps to the staleness limit. */
  newPool(): GroupPool {
    return this.#groups.newPool();
  }

  /**
   * Generates until the pool has groups for this step and for the steps ahead. Rejects with the
   * error of the pool's rewards.
   */
  async fill(pool: GroupPool): Promise<void> {
    await this.#groups.fill(pool, this.#step.record);
  }

  /**
   * Returns the groups of the next mini-batch as soon as they are scored. Groups that were filtered
   * out or dropped are replaced by newly generated ones.
   *
   * @param left groups that the step still takes, including these
   */
  async takeFrom(pool: GroupPool, left: number): Promise<ScoredSample[]> {
    return await this.#groups.takeFrom(pool, left, this.#step.record);
  }

  /**
   * Trains on samples of any batches of the pool.
   *
   * @param isLast whether the step has no samples after these
   */
  async learnFrom(samples: readonly ScoredSample[], isLast: boolean): Promise<void> {
    const { record } = this.#step;
    const prepared = await this.#prepared.gather(samples, record);
    await this.#updates.learn(prepared, isLast, record);
  }

  /**
   * Ends the step and reports its metrics, samples and, if asked for, its rollouts.
   *
   * @param pool the pool of the schedule, if it has one: groups that are too old for the next step
   *   leave it
   */
  async report(pool?: GroupPool): Promise<void> {
    const { record } = this.#step;
    const { validations } = this.#parts;
    this.#step.finish();
    const leftOut = this.#groups.leave(pool, record);
    record.untrained(leftOut);
    this.#updates.countBaselines(leftOut, record);
    this.#rollouts.forgetUsed();
    // Before the checkpoint: a run that resumes from it reports neither this step again nor the
    // validation of the step before.
    await this.#step.report(this.#prepared.hasOwnLogProbs);
    if (validations.isPending) {
      await record.clock.time("testing", () => validations.reportPending());
    }
  }

  /** Saves a checkpoint if the reported step is one of `run.saveFreq`. */
  async save(): Promise<void> {
    const finished = this.#step.reported("save");
    const { reports, checkpoints } = this.#parts;
    const { record } = finished;
    if (!checkpoints.isDue(record.step)) return;
    await record.clock.time("save_checkpoint", async () => {
      // A schedule may have begun the next batch: the checkpoint would miss its prompts.
      await this.#rollouts.whenGenerated();
      await checkpoints.save(this.#place());
    });
    reports.keepTimes(finished);
  }

  /**
   * Begins a validation if the reported step is one of `run.testFreq`. Its scores are waited for in
   * a later step if `run.overlapValidation` says so.
   */
  async validate(): Promise<void> {
    const finished = this.#step.reported("validate");
    const { validations } = this.#parts;
    const { record } = finished;
    if (validations.isDue(record.step)) {
      await record.clock.time("testing", () => validations.begin(finished));
      if (!validations.mayOverlap(record.step)) {
        await record.clock.time("testing", () => validations.reportPending());
      }
    }
    this.#step.complete();
  }

  /** Calls `report`, `save` and `validate`. */
  async endStep(pool?: GroupPool): Promise<void> {
    await this.report(pool);
    await this.save();
    await this.validate();
  }

  /** The state that a checkpoint keeps. */
  #place(): TrainingStart {
    return {
      finishedSteps: this.#step.finishedSteps,
      nextBatch: this.#rollouts.nextBatch,
      outstanding: this.#rollouts.outstanding,
      miniBatchSize: this.#miniBatches.adaptiveSize,
      firstValidation: this.#parts.validations.first,
    };
  }
}
