/**
 * The groups of a step: how many it takes, how many are generated ahead, and which are generated in
 * place of groups that the filter left out.
 */

import type { TakeRange } from "@rayling/reward-loop";
import type { PromptLoader } from "../data/prompt-loader.ts";
import { TrainerStateError } from "../errors.ts";
import type { StepRecord } from "../record/step-record.ts";
import type { PreparedRows } from "../rollouts/prepared-rows.ts";
import type { Rollouts } from "../rollouts/rollouts.ts";
import type { PreparedBatch, ScoredSample } from "../samples/rollout-batch.ts";
import type { FilterSettings, TrainingSettings } from "../settings/training-settings.ts";
import { differs } from "./filter-groups.ts";
import { GroupPool } from "./group-pool.ts";
import type { GroupPoolSettings } from "./group-pool.ts";
import type { MiniBatches } from "./mini-batches.ts";

export interface StepGroupsParts {
  readonly settings: TrainingSettings;
  readonly prompts: PromptLoader;
  readonly rollouts: Rollouts;
  readonly prepared: PreparedRows;
  readonly miniBatches: MiniBatches;
}

/** A filter without a bound of generations gives up after so many batches without a difference. */
const leastBatchesInRow = 10;

type TakenGroups = Promise<ScoredSample[] | undefined>;

export class StepGroups {
  readonly #settings: TrainingSettings;
  readonly #parts: StepGroupsParts;
  /** Steps whose own batch was generated; batches in place of filtered groups do not count. */
  #planned: number;
  /** The rest of this step's batches, for filtered groups under a schedule without a pool. */
  #filtered: GroupPool | undefined;

  constructor(parts: StepGroupsParts, finishedSteps: number) {
    this.#settings = parts.settings;
    this.#parts = parts;
    this.#planned = finishedSteps;
  }

  /** A pool with the configured staleness. */
  newPool(): GroupPool {
    return this.#poolWithin(this.#settings.staleness);
  }

  /**
   * Returns how many groups a step takes: a whole batch, which is smaller where an epoch ends.
   *
   * @param step from 0
   */
  countOf(step: number): number {
    const { algorithm, trainBatchSize } = this.#settings;
    // A filter fills each step up, from any batches.
    if (algorithm.filterGroups !== undefined) return trainBatchSize;
    return this.#parts.prompts.sizeOf(step);
  }

  /**
   * Generates until the pool has groups for this step and for the steps ahead. Groups that the
   * filter left out by then are replaced, as long as the step may generate. Rejects with the error
   * of the pool's rewards.
   */
  async fill(pool: GroupPool, record: StepRecord): Promise<void> {
    const { staleness, run } = this.#settings;
    const { rollouts, prepared } = this.#parts;
    const finished = record.step - 1;
    this.#addRestored(pool, finished);
    const steps = Math.min(1 + staleness.numWarmupBatches, run.totalSteps - finished);
    const wanted = this.#roomOf(this.countOf(finished), steps - 1, finished);
    while (pool.groups < wanted) {
      pool.throwIfFailed();
      if (this.#planned < finished + steps) this.#planned += 1;
      else if (pool.lacksFiltered) {
        if (!this.#mayGenerate(pool, record)) break;
        replace(pool, record);
      }
      pool.add(await rollouts.generate(true, record));
    }
    for (const batch of pool.oldest(this.countOf(finished))) {
      await prepared.prepare(batch, record);
    }
  }

  /**
   * Returns the groups of the next mini-batch as soon as they are scored.
   *
   * @param left groups that the step still takes, including these
   */
  async takeFrom(pool: GroupPool, left: number, record: StepRecord): Promise<ScoredSample[]> {
    const part = this.#parts.miniBatches.next(left);
    const finished = record.step - 1;
    const room = (after: number): number => this.#roomOf(left, after, finished);
    const take = (): TakenGroups => pool.take(part, finished, room);
    const samples = await this.#take(pool, take, { streaming: true, record });
    // The step has its groups: calls for those that the next one cannot take need not be paid.
    if (samples.length === left * this.#settings.rollout.n) pool.dropStale(record.step);
    return samples;
  }

  /**
   * Returns groups of the batch that differ; groups that do not are replaced by newly generated
   * ones.
   *
   * @param rows a number takes the groups whose prompts came first, a range those scored first
   * @param left rows that the step still takes, including these
   */
  async takeFiltered(
    batch: PreparedBatch,
    rows: number | TakeRange,
    { left, record }: { readonly left: number; readonly record: StepRecord },
  ): Promise<ScoredSample[]> {
    const { n } = this.#settings.rollout;
    const pool = (this.#filtered ??= this.#poolWithin({ limit: Infinity, strategy: "drop" }));
    if (this.#parts.prepared.add(batch, record)) pool.add(batch);
    const take = (): TakenGroups => {
      if (typeof rows === "number") return pool.takeFirst(rows / n);
      const { least, most = least } = rows;
      const range = { least: least / n, most: most / n };
      return pool.take(range, record.step - 1, () => left / n);
    };
    const samples = await this.#take(pool, take, { streaming: false, record });
    // The rest of the batches that replaced filtered groups: the next step has other weights.
    if (samples.length === left) pool.dropAll();
    return samples;
  }

  /**
   * Ends the step for its groups: drops those that are too old for the next step, and records the
   * groups that were left out. Returns the scored samples among them.
   */
  leave(pool: GroupPool | undefined, record: StepRecord): readonly ScoredSample[] {
    const { algorithm, rollout } = this.#settings;
    pool?.dropStale(record.step);
    this.#filtered?.dropAll();
    const filters = algorithm.filterGroups !== undefined;
    const leftOut = (pool ?? this.#filtered)?.leftOut();
    if (leftOut !== undefined) {
      const { dropped, filtered, unscored } = leftOut;
      record.metrics.add("training/off_policy/evicted_samples", dropped * rollout.n);
      record.metrics.add("training/filtered_groups", filtered);
      if (filters) record.metrics.add("training/unscored_groups", unscored);
    }
    if (filters) record.metrics.add("train/num_gen_batches", record.generations);
    return leftOut?.samples ?? [];
  }

  /**
   * Adds batches of a checkpoint to the pool, as many as the steps that are left can use, and asks
   * for the missing rewards of those that are not too old.
   */
  #addRestored(pool: GroupPool, finished: number): void {
    const { rollouts } = this.#parts;
    const { algorithm, run } = this.#settings;
    // How many groups a filter leaves is not known before.
    const isBounded = algorithm.filterGroups === undefined;
    const most = isBounded
      ? this.#roomOf(this.countOf(finished), run.totalSteps, finished)
      : Infinity;
    while (pool.groups < most) {
      const restored = rollouts.takeRestored();
      if (restored === undefined) return;
      pool.add(restored);
      // The run that saved it may have had another staleness limit.
      pool.dropStale(finished);
      if (restored.isUsed.includes(0)) rollouts.ask(restored);
    }
  }

  /** Takes groups; while the pool has too few, generates others. */
  async #take(
    pool: GroupPool,
    take: () => TakenGroups,
    { streaming, record }: { readonly streaming: boolean; readonly record: StepRecord },
  ): Promise<ScoredSample[]> {
    const { miniBatches, rollouts, prepared } = this.#parts;
    for (;;) {
      const samples = await miniBatches.waitFor(record, take);
      if (samples !== undefined) return samples;
      this.#checkGenerations(pool, record);
      replace(pool, record);
      const batch = await rollouts.generate(streaming, record);
      pool.add(batch);
      await prepared.prepare(batch, record);
    }
  }

  #poolWithin({ limit, strategy }: Pick<GroupPoolSettings, "limit" | "strategy">): GroupPool {
    const { algorithm, trainBatchSize, rollout } = this.#settings;
    const { filterGroups } = algorithm;
    return new GroupPool({
      limit,
      strategy,
      keeps: (samples) => filterGroups === undefined || differs(samples, filterGroups.metric),
      failsUnscored: filterGroups && trainBatchSize * rollout.n,
    });
  }

  /**
   * Returns how many groups this step and the steps after it take.
   *
   * @param left groups that this step still takes
   * @param after steps after this one that count, as far as the run has them
   */
  #roomOf(left: number, after: number, finished: number): number {
    const last = Math.min(finished + after, this.#settings.run.totalSteps - 1);
    let room = left;
    for (let step = finished + 1; step <= last; step++) room += this.countOf(step);
    return room;
  }

  /** Throws TrainerStateError where a task is too easy or too hard: DAPO's bound. */
  #checkGenerations(pool: GroupPool, record: StepRecord): void {
    const filter = this.#settings.algorithm.filterGroups;
    if (this.#mayGenerate(pool, record) || filter === undefined) return;
    throw new TrainerStateError("FILTERED_OUT", filteredOut(filter, pool, record));
  }

  #mayGenerate(pool: GroupPool, { generations }: StepRecord): boolean {
    const { algorithm, trainBatchSize } = this.#settings;
    const { filterGroups } = algorithm;
    if (filterGroups === undefined) return true;
    const { maxNumGenBatches: most } = filterGroups;
    if (most > 0) return generations < most;
    const batches = Math.max(2 * this.#parts.prompts.batchesPerEpoch, leastBatchesInRow);
    return pool.filteredInRow < batches * trainBatchSize;
  }
}

/** The next generation is for this step, in place of groups that were filtered out. */
function replace(pool: GroupPool, record: StepRecord): void {
  pool.replaced();
  record.generations += 1;
}

/** The option by its name in a program and in a configuration. */
const maxBatches =
  "algorithm.filterGroups.maxNumGenBatches (algorithm.filter_groups.max_num_gen_batches)";

function filteredOut(
  { metric, maxNumGenBatches: most }: FilterSettings,
  pool: GroupPool,
  { step, generations }: StepRecord,
): string {
  return most > 0
    ? `step ${step} cannot have as many groups that differ in their ${metric} as it needs: of ${generations} generations, which is ${maxBatches}, at most ${pool.groups} groups may, and the last ${pool.filteredInRow} that were scored do not`
    : `step ${step} cannot have as many groups that differ in their ${metric} as it needs: none of the last ${pool.filteredInRow} does, which is all prompts twice, and ${leastBatchesInRow} batches at least, and ${maxBatches} allows any number of generations`;
}
