/**
 * The parts of a training step, for schedules to put in order: rollouts with their rewards on the way, log-probabilities, updates, the end of a step.
 *
 * A schedule decides when each runs; what they do, how long they took and what is outstanding is kept here. Rollouts that were generated and are not trained yet stay outstanding, so
 * that a checkpoint has them.
 */

import type { TakeRange } from "@rayling/reward-loop";
import type { PromptLoader } from "../data/prompt-loader.ts";
import { TrainerStateError } from "../errors.ts";
import type { CriticHandle, PolicyHandle, PolicyInfo } from "../policy/policy.ts";
import { differs } from "./filter-groups.ts";
import { Generation } from "./generation.ts";
import { GroupPool } from "./group-pool.ts";
import type { GroupPoolSettings } from "./group-pool.ts";
import type { Learner } from "./learner.ts";
import { AdaptiveMiniBatchSize } from "./mini-batch-size.ts";
import type { GroupRange } from "./mini-batch-size.ts";
import type { StepTracker } from "./options.ts";
import { PreparedRows } from "./prepared-rows.ts";
import type { PreparedSamples } from "./prepared-rows.ts";
import type { RewardDesk } from "./reward-desk.ts";
import { scoredSamplesOf } from "./rollout-batch.ts";
import type { PreparedBatch, RolloutBatch, ScoredSample } from "./rollout-batch.ts";
import { scoreColumnsOf, tensorIn } from "./samples.ts";
import type { FilterSettings, TrainingSettings } from "./settings.ts";
import { StepRecord } from "./step-record.ts";

export interface TrainingParts {
  readonly policy: PolicyHandle;
  readonly policyInfo: PolicyInfo;
  readonly referencePolicy: PolicyHandle | undefined;
  readonly critic: CriticHandle | undefined;
  readonly prompts: PromptLoader;
  readonly rewards: RewardDesk;
  readonly learner: Learner;
  readonly settings: TrainingSettings;
  readonly tracker: StepTracker;
  /** Milliseconds, for waits and updates. */
  readonly now: () => number;
  /** What else belongs to the end of a step: validation, checkpoints, and telling of it. */
  readonly onStepEnd: (record: StepRecord) => Promise<void>;
}

/** Where a run begins, or goes on. */
export interface TrainingStart {
  readonly finishedSteps: number;
  readonly nextBatch: number;
  /** Generated before, and not trained. */
  readonly outstanding: readonly RolloutBatch[];
  /** Of one whose size adapts: what the next mini-batch begins with. Undefined: `ppoMiniBatchSize`. */
  readonly miniBatchSize?: number | undefined;
}

/** Without one group that differs, before a filter that may generate as often as it takes gives up. */
const leastBatchesInRow = 10;

type TakenGroups = Promise<ScoredSample[] | undefined>;

export class Training {
  readonly settings: TrainingSettings;
  readonly #parts: TrainingParts;
  #finishedSteps: number;
  /** Steps that `rollout` has given a batch for. */
  #begunSteps: number;
  readonly #generation: Generation;
  readonly #prepared: PreparedRows;
  #record: StepRecord;
  readonly #outstanding = new Set<RolloutBatch>();
  readonly #generating = new Set<Promise<RolloutBatch>>();
  /** From a checkpoint, oldest first; given by `rollout` before anything is generated. */
  readonly #restored: RolloutBatch[];
  /** Batches of the steps so far and of those that are generated ahead, without those in the place of filtered groups. */
  #planned: number;
  /** Of schedules that train batch by batch, where groups are filtered: what is left of the batches of this step. */
  #filtered: GroupPool | undefined;
  /** Undefined: always the same. */
  readonly #miniBatchSize: AdaptiveMiniBatchSize | undefined;

  constructor(parts: TrainingParts, start: TrainingStart) {
    this.#parts = parts;
    this.settings = parts.settings;
    this.#finishedSteps = start.finishedSteps;
    this.#planned = start.finishedSteps;
    this.#begunSteps = start.finishedSteps;
    this.#generation = new Generation(parts, start.nextBatch);
    this.#prepared = new PreparedRows(parts);
    this.#restored = [...start.outstanding];
    for (const batch of start.outstanding) this.#outstanding.add(batch);
    this.#record = this.#newRecord();
    const { adaptiveMiniBatch, actor } = parts.settings;
    this.#miniBatchSize = adaptiveMiniBatch
      ? new AdaptiveMiniBatchSize(actor.ppoMiniBatchSize, start.miniBatchSize)
      : undefined;
  }

  /** Whether there is a step left to train. */
  get hasSteps(): boolean {
    return this.#finishedSteps < this.settings.run.totalSteps;
  }

  get finishedSteps(): number {
    return this.#finishedSteps;
  }

  get nextBatch(): number {
    return this.#generation.nextBatch;
  }

  /** In groups, where it adapts. */
  get miniBatchSize(): number | undefined {
    return this.#miniBatchSize?.size;
  }

  /** Whether old log-probabilities are the policy's own. */
  get hasOwnLogProbs(): boolean {
    return this.#prepared.hasOwnLogProbs;
  }

  /** Resolves when nothing is being generated: then each batch before `nextBatch` is trained or outstanding. Rejects with what a generation does. */
  async whenGenerated(): Promise<void> {
    while (this.#generating.size > 0) await Promise.all(this.#generating);
  }

  /** Generated, and with rows that are not trained yet. Oldest first. */
  get outstanding(): readonly RolloutBatch[] {
    return [...this.#outstanding];
  }

  /**
   * Rollouts of the next prompts with their rewards on the way; undefined where all steps that are left have theirs.
   *
   * @param streaming whether a sample's reward begins when it is finished, not when all are. Default false.
   */
  async rollout({ streaming = false }: { streaming?: boolean } = {}): Promise<
    RolloutBatch | undefined
  > {
    // Of another schedule, a checkpoint may have more batches than there are steps left.
    if (this.#begunSteps >= this.settings.run.totalSteps) return undefined;
    this.#begunSteps += 1;
    return this.#restored.shift() ?? (await this.#generateNext(streaming));
  }

  /** Log-probabilities of the policy, of its reference, and values: what advantages and losses need of all rows. */
  async prepare(batch: RolloutBatch): Promise<PreparedBatch> {
    return { ...batch, data: await this.#prepared.of(batch.samples, this.#record) };
  }

  /** Rows that the step still takes: of this batch, and, with a filter of groups, of those that are generated in the place of what it leaves out. */
  left({ rewards }: RolloutBatch): number {
    const { algorithm, trainBatchSize, rollout } = this.settings;
    if (algorithm.filterGroups === undefined) return rewards.unasked;
    return trainBatchSize * rollout.n - this.#record.samples.length;
  }

  /**
   * Trains on rows of whole groups of the batch, as soon as so many are scored. Where some are filtered out, others are generated in their place.
   *
   * @param rows of a number with a filter those whose prompts came first, whichever are done first of a range
   */
  async learn(batch: PreparedBatch, rows: number | TakeRange): Promise<void> {
    if (this.settings.algorithm.filterGroups !== undefined) {
      return await this.#learnFiltered(batch, rows);
    }
    const { rewards } = batch;
    const taken = await this.#waitFor(() => rewards.take(rows));
    const samples = scoredSamplesOf(batch, taken);
    const data = batch.data.selectIdxs(taken);
    await this.#learn({ samples, data }, rewards.unasked === 0);
  }

  /** How many rows the next mini-batch has, where so many are left. */
  nextPart(left: number): TakeRange {
    const { n } = this.settings.rollout;
    const { least, most } = this.#nextGroups(left / n);
    return { least: least * n, most: most * n };
  }

  /** Groups of the step that is trained next, for schedules that take them of a pool: as many as a batch has, which is fewer where an epoch ends. */
  get stepGroups(): number {
    return this.#groupsOf(this.#finishedSteps);
  }

  newPool(): GroupPool {
    return this.#poolWithin(this.settings.staleness);
  }

  #poolWithin({ limit, strategy }: Pick<GroupPoolSettings, "limit" | "strategy">): GroupPool {
    const { algorithm, trainBatchSize, rollout } = this.settings;
    const { filterGroups } = algorithm;
    return new GroupPool({
      limit,
      strategy,
      keeps: (samples) => filterGroups === undefined || differs(samples, filterGroups.metric),
      failsUnscored: filterGroups && trainBatchSize * rollout.n,
    });
  }

  /**
   * Generates until the pool has groups for this step and for those that are generated ahead; where groups are filtered out before that, others in their place, as long as the step may. Rejects
   * with what the rewards of the pool have failed with.
   */
  async fill(pool: GroupPool): Promise<void> {
    const { staleness, run } = this.settings;
    const restored = this.#restored.splice(0);
    for (const batch of restored) pool.add(batch);
    // Where the limit is another one than that of the run before.
    if (restored.length > 0) pool.dropStale(this.#finishedSteps);
    const stepsLeft = run.totalSteps - this.#finishedSteps;
    const steps = Math.min(1 + staleness.numWarmupBatches, stepsLeft);
    const wanted = this.#roomOf(this.stepGroups, steps - 1);
    while (pool.groups < wanted) {
      pool.throwIfFailed();
      if (this.#planned < this.#finishedSteps + steps) this.#planned += 1;
      else if (pool.lacksFiltered) {
        if (!this.#mayGenerate(pool)) break;
        this.#replace(pool);
      }
      pool.add(await this.#generateNext(true));
    }
    for (const batch of pool.oldest(this.stepGroups)) {
      await this.#prepared.prepare(batch, this.#record);
    }
  }

  /**
   * Groups of the next mini-batch, as soon as they are done. Where too many were filtered out or dropped, others are generated in their place.
   *
   * @param left groups that this step still takes, with these
   */
  async takeFrom(pool: GroupPool, left: number): Promise<ScoredSample[]> {
    const part = this.#nextGroups(left);
    const room = (after: number): number => this.#roomOf(left, after);
    const take = (): TakenGroups => pool.take(part, this.#finishedSteps, room);
    return await this.#takeFrom(pool, take, { streaming: true });
  }

  /** Trains on samples of any batches of the pool. @param isLast whether the step has no others after these */
  async learnFrom(samples: readonly ScoredSample[], isLast: boolean): Promise<void> {
    const prepared = await this.#prepared.gather(samples, this.#record);
    await this.#learn(prepared, isLast);
  }

  /** Validates and keeps a checkpoint if it is time, and tells what the step came to. @param pool where the schedule has one: what would be too old for the next step leaves it */
  async endStep(pool?: GroupPool): Promise<void> {
    const record = this.#record;
    this.#finishedSteps += 1;
    pool?.dropStale(this.#finishedSteps);
    // Generated in the place of others, and more than were needed: the next step has other weights.
    this.#filtered?.dropAll();
    const used = pool ?? this.#filtered;
    if (used !== undefined) {
      const { dropped, filtered, unscored, samples } = used.leftOut();
      record.untrained(samples);
      this.#countBaselines(samples);
      const { n } = this.settings.rollout;
      record.metrics.add("training/off_policy/evicted_samples", dropped * n);
      record.metrics.add("training/filtered_groups", filtered);
      if (this.settings.algorithm.filterGroups !== undefined) {
        record.metrics.add("training/unscored_groups", unscored);
      }
    }
    if (this.settings.algorithm.filterGroups !== undefined) {
      record.metrics.add("train/num_gen_batches", record.generations);
    }
    for (const batch of this.#outstanding) {
      if (isOver(batch)) this.#outstanding.delete(batch);
    }
    await this.#parts.onStepEnd(record);
    this.#record = this.#newRecord();
  }

  async #learnFiltered(batch: PreparedBatch, rows: number | TakeRange): Promise<void> {
    const { n } = this.settings.rollout;
    const left = this.left(batch);
    const pool = (this.#filtered ??= this.#poolWithin({ limit: Infinity, strategy: "drop" }));
    if (this.#prepared.add(batch, this.#record)) pool.add(batch);
    const take = (): TakenGroups => {
      if (typeof rows === "number") return pool.takeFirst(rows / n);
      const { least, most = least } = rows;
      const range = { least: least / n, most: most / n };
      return pool.take(range, this.#finishedSteps, () => left / n);
    };
    const samples = await this.#takeFrom(pool, take, { streaming: false });
    await this.learnFrom(samples, samples.length === left);
  }

  /** Generates others where the pool has not as many. */
  async #takeFrom(
    pool: GroupPool,
    take: () => TakenGroups,
    { streaming }: { readonly streaming: boolean },
  ): Promise<ScoredSample[]> {
    for (;;) {
      const samples = await this.#waitFor(take);
      if (samples !== undefined) return samples;
      this.#checkGenerations(pool);
      this.#replace(pool);
      const batch = await this.#generateNext(streaming);
      pool.add(batch);
      await this.#prepared.prepare(batch, this.#record);
    }
  }

  async #waitFor<Result>(run: () => Promise<Result>): Promise<Result> {
    const record = this.#record;
    const before = record.exposedWaitMs;
    const result = await record.clock.time("adv", () => record.waitFor(run));
    this.#miniBatchSize?.waited(record.exposedWaitMs - before);
    return result;
  }

  /** @param step from 0 */
  #groupsOf(step: number): number {
    const { algorithm, trainBatchSize } = this.settings;
    // A filter fills each step up, of whichever batches.
    if (algorithm.filterGroups !== undefined) return trainBatchSize;
    return this.#parts.prompts.sizeOf(step);
  }

  /** Groups of this step, which still takes so many, and of so many after it, as far as there are steps. */
  #roomOf(left: number, after: number): number {
    const last = Math.min(this.#finishedSteps + after, this.settings.run.totalSteps - 1);
    let room = left;
    for (let step = this.#finishedSteps + 1; step <= last; step++) room += this.#groupsOf(step);
    return room;
  }

  #nextGroups(left: number): GroupRange {
    const size = Math.min(this.settings.actor.ppoMiniBatchSize, left);
    return this.#miniBatchSize?.next(left) ?? { least: size, most: size };
  }

  /** What is generated next is for this step, in the place of groups that were filtered out. */
  #replace(pool: GroupPool): void {
    pool.replaced();
    this.#record.generations += 1;
  }

  /** DAPO's bound: a task that is too easy or too hard would be generated for ever. */
  #checkGenerations(pool: GroupPool): void {
    if (this.#mayGenerate(pool)) return;
    const { generations, step } = this.#record;
    const { metric, maxNumGenBatches: most } = this.settings.algorithm
      .filterGroups as FilterSettings;
    throw new TrainerStateError(
      "FILTERED_OUT",
      most > 0
        ? `step ${step} has ${pool.groups} groups left that differ in their ${metric} after ${generations} generations, which is algorithm.filterGroups.maxNumGenBatches`
        : `step ${step} has ${pool.groups} groups left, and none of the last ${pool.filteredInRow} differs in its ${metric}, which is all prompts twice, and ${leastBatchesInRow} batches at least: algorithm.filterGroups would have others generated for ever`,
    );
  }

  #mayGenerate(pool: GroupPool): boolean {
    const { maxNumGenBatches: most } = this.settings.algorithm.filterGroups as FilterSettings;
    if (most > 0) return this.#record.generations < most;
    const batches = Math.max(2 * this.#parts.prompts.batchesPerEpoch, leastBatchesInRow);
    return pool.filteredInRow < batches * this.settings.trainBatchSize;
  }

  async #generateNext(streaming: boolean): Promise<RolloutBatch> {
    const generated = this.#generation.next(streaming, this.#record);
    this.#generating.add(generated);
    try {
      const batch = await generated;
      this.#outstanding.add(batch);
      return batch;
    } finally {
      this.#generating.delete(generated);
    }
  }

  async #learn(prepared: PreparedSamples, isLast: boolean): Promise<void> {
    const { now } = this.#parts;
    const startMs = now();
    await this.#learnParts(prepared, isLast);
    this.#miniBatchSize?.worked(now() - startMs);
  }

  async #learnParts({ samples, data }: PreparedSamples, isLast: boolean): Promise<void> {
    const { learner, policyInfo, critic } = this.#parts;
    const { criticWarmup } = this.settings.run;
    const record = this.#record;
    const baselines = await this.#baselinesOf(samples);
    const { drawn } = await record.clock.time("adv", () => {
      const own = samples.map(({ sample }) => sample);
      const outcomes = samples.map(({ outcome }) => outcome);
      const [, width = 1] = tensorIn(data, "responses").shape;
      const { scores, valid: isScored } = scoreColumnsOf(own, outcomes, width);
      const valid = isScored.map((one, row) => one && baselines?.[row] !== null);
      const rewardBaselines = baselines?.map((one) => one ?? 0);
      const rows = { data, scores, valid, samples, rewardBaselines };
      const learnable = learner.advantagesOf(rows, record.step, record.metrics);
      if (policyInfo.scoresTokens) learner.tellEntropy(data, record.metrics);
      record.learned(samples, { data: learnable.data, valid });
      return learnable;
    });
    for (const { batch, row } of samples) batch.isUsed[row] = 1;
    const trainsPolicy = policyInfo.trains && criticWarmup <= record.step;
    if (critic !== undefined) {
      const account = record.account("update_critic");
      await record.clock.time("update_critic", () => {
        if (!trainsPolicy) record.used(samples);
        return learner.updateCritic(drawn, record.metrics, { isLast, account });
      });
    } else if (!trainsPolicy) record.used(samples);
    if (!trainsPolicy) return;
    const isFresh = this.#prepared.isFresh(data);
    const { scoresTokens } = policyInfo;
    const partOfStep = record.parts.length;
    const account = record.account("update_actor");
    const context = { isLast, isFresh, scoresTokens, partOfStep, account };
    await record.clock.time("update_actor", () => {
      record.used(samples);
      return learner.updateActor(drawn, record.metrics, context);
    });
    this.#prepared.updated();
  }

  /** What the greedy answers to the same prompts were rewarded with; null for one that has no valid score: nothing can be said about the answers to its prompt. */
  async #baselinesOf(samples: readonly ScoredSample[]): Promise<(number | null)[] | undefined> {
    if (this.settings.algorithm.advEstimator !== "remax") return undefined;
    const outcomes = await this.#waitFor(() =>
      Promise.all(
        samples.map(
          async ({ batch, row }) => await batch.baselines?.outcomeOf(Math.floor(row / batch.n)),
        ),
      ),
    );
    this.#countBaselines(samples);
    return outcomes.map((outcome) => (outcome?.valid === true ? outcome.rewardScore : null));
  }

  /** Each is one prompt's, and was paid for once. */
  #countBaselines(samples: readonly ScoredSample[]): void {
    for (const { batch, row } of samples) {
      if (row % batch.n !== 0) continue;
      const request = batch.baselines?.request;
      const outcome = request?.outcomeOf(row / batch.n);
      if (outcome === undefined) continue;
      this.#record.scored(outcome, request?.isKnown(row / batch.n) === true);
    }
  }

  #newRecord(): StepRecord {
    const { tracker, rewards, now } = this.#parts;
    return new StepRecord(this.#finishedSteps + 1, tracker, () => rewards.inFlight, now);
  }
}

/** All of it is trained, or never will be. */
function isOver({ isUsed }: RolloutBatch): boolean {
  return isUsed.every((used) => used === 1);
}
