/**
 * Groups of several batches whose rewards are on the way, for schedules that train on the groups
 * that are scored first, or that leave some out. No group is older than the limit when it is taken:
 * it is waited for, or dropped, as the strategy says.
 *
 * The rewards of a dropped group are given up: what was not begun never is, and calls under way are
 * aborted.
 */

import { RewardFailuresError } from "@rayling/reward-loop";
import type { GroupRange } from "./mini-batch-size.ts";
import type { RolloutBatch, ScoredSample } from "../samples/rollout-batch.ts";
import { isGivenUp, scoredSamplesOf } from "../samples/rollout-batch.ts";
import { LeftOutTally } from "./left-out-groups.ts";
import type { LeftOutGroups } from "./left-out-groups.ts";

interface PooledBatch {
  readonly batch: RolloutBatch;
  /** Groups that are neither taken nor dropped nor filtered out. */
  left: number;
  /** Whether one of its samples has a valid score. */
  hasScore: boolean;
  /** Why the first that has none has none. */
  failure?: string;
  isDropped: boolean;
}

interface DoneGroup {
  readonly from: PooledBatch;
  readonly samples: readonly ScoredSample[];
}

/** Returns the groups that this step still takes plus those of so many steps after it. */
export type StepRoom = (after: number) => number;

/** How old groups may be, and which are left out. */
export interface GroupPoolSettings {
  /** The most steps that may end between a group's generation and its training. */
  readonly limit: number;
  /** Whether a group is waited for before it is too old, or dropped when it is. */
  readonly strategy: "wait" | "drop";
  /** Whether a group that is done is worth training on. */
  readonly keeps: (samples: readonly ScoredSample[]) => boolean;
  /**
   * Number of consecutive rows without any valid score, of one batch or of several, after which
   * `take` rejects: the filter would have groups generated for ever. Undefined: no limit.
   */
  readonly failsUnscored?: number | undefined;
}

/** Groups whose rewards are on the way, to be taken as soon as they are scored. */
export class GroupPool {
  readonly #settings: GroupPoolSettings;
  /** Oldest first. */
  #batches: PooledBatch[] = [];
  /** Scored groups, the oldest batch first, and within a batch the first scored first. */
  #done: DoneGroup[] = [];
  #failure: { readonly error: unknown } | undefined;
  #news = Promise.withResolvers<void>();
  #isWaking = false;
  readonly #leftOut = new LeftOutTally();

  constructor(settings: GroupPoolSettings) {
    this.#settings = settings;
  }

  /** Groups that may still be taken. */
  get groups(): number {
    return this.#batches.reduce((sum, { left }) => sum + left, 0);
  }

  /** Batches that have so many of the groups that may still be taken: the oldest ones. */
  oldest(groups: number): RolloutBatch[] {
    const batches: RolloutBatch[] = [];
    let found = 0;
    for (const { batch, left } of this.#batches) {
      if (found >= groups) break;
      found += left;
      batches.push(batch);
    }
    return batches;
  }

  /** Whether groups were filtered out since others were generated in the place of such. */
  get lacksFiltered(): boolean {
    return this.#leftOut.lacksFiltered;
  }

  /** Groups with a score that the filter took out, since it kept one. */
  get filteredInRow(): number {
    return this.#leftOut.filteredInRow;
  }

  /** Others are generated now. */
  replaced(): void {
    this.#leftOut.replaced();
  }

  /** Throws the error of a reward request that failed, if one did. */
  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Returns the groups that were left out since the last call. */
  leftOut(): LeftOutGroups {
    return this.#leftOut.take();
  }

  /** Adds all groups of a batch. */
  add(batch: RolloutBatch): void {
    const left = batch.samples.length / batch.n;
    const pooled = { batch, left, hasScore: false, isDropped: false };
    this.#batches.push(pooled);
    void this.#gather(pooled);
  }

  /**
   * Returns groups as soon as they are scored; undefined if the pool has too few left.
   *
   * @param step number of finished steps, which gives groups their age
   * @param room with the strategy "wait": places that are kept for groups that would be too old
   *   after this step
   */
  async take(range: GroupRange, step: number, room: StepRoom): Promise<ScoredSample[] | undefined> {
    const { least } = range;
    for (;;) {
      this.throwIfFailed();
      if (this.groups < least) return undefined;
      const taken = this.#choose(range, step, room);
      if (taken !== undefined) return this.#taken(taken);
      await this.#news.promise;
    }
  }

  /**
   * Returns the groups of the prompts that came first, as soon as all groups are scored, so that
   * the choice does not depend on their times; undefined if the pool has too few left.
   */
  async takeFirst(count: number): Promise<ScoredSample[] | undefined> {
    for (;;) {
      this.throwIfFailed();
      if (this.groups < count) return undefined;
      if (this.#done.length === this.groups) {
        return this.#taken(this.#done.toSorted(inOrder).slice(0, count));
      }
      await this.#news.promise;
    }
  }

  /** All that is left is dropped. */
  dropAll(): void {
    this.#drop(() => true);
  }

  /**
   * Drops groups that are too old for the next step. With the strategy "wait" these are only the
   * rest of batches that replaced filtered groups.
   */
  dropStale(step: number): void {
    this.#drop(({ batch }) => step - batch.generatedAt > this.#settings.limit);
  }

  #drop(isStale: (pooled: PooledBatch) => boolean): void {
    for (const stale of this.#batches.filter(isStale)) {
      this.#leftOut.dropped(stale.left);
      stale.left = 0;
      stale.batch.isUsed.fill(1);
      stale.isDropped = true;
      stale.batch.rewards.giveUp();
      stale.batch.baselines?.request.giveUp();
    }
    const { stale = [], fresh = [] } = Object.groupBy(this.#done, ({ from }) =>
      isStale(from) ? "stale" : "fresh",
    );
    this.#leftOut.untrained(stale.flatMap(({ samples }) => samples));
    this.#done = fresh;
    this.#batches = this.#batches.filter(({ left }) => left > 0);
  }

  /** The oldest first. Undefined as long as not enough are done. */
  #choose({ least, most }: GroupRange, step: number, room: StepRoom): DoneGroup[] | undefined {
    const deadlines = this.#settings.strategy === "wait" ? this.#deadlines(step, room) : [];
    const chosen: DoneGroup[] = [];
    for (const group of this.#done) {
      if (chosen.length === most) break;
      const before = deadlines.filter(({ after }) => after < this.#stepsLeft(group.from, step));
      if (before.some(({ spare }) => spare <= 0)) continue;
      for (const deadline of before) deadline.spare -= 1;
      chosen.push(group);
    }
    return chosen.length < least ? undefined : chosen;
  }

  /**
   * For each age in the pool: places that are left for younger ones, where all that would be too
   * old by then have theirs, done or not.
   */
  #deadlines(step: number, room: StepRoom): { readonly after: number; spare: number }[] {
    const ages = new Set(this.#batches.map((one) => this.#stepsLeft(one, step)));
    return Array.from(ages, (after) => {
      const due = this.#batches.filter((one) => this.#stepsLeft(one, step) <= after);
      return { after, spare: room(after) - due.reduce((sum, { left }) => sum + left, 0) };
    });
  }

  /** Steps after this one in which it may still be taken. */
  #stepsLeft({ batch }: PooledBatch, step: number): number {
    return this.#settings.limit - (step - batch.generatedAt);
  }

  #taken(groups: readonly DoneGroup[]): ScoredSample[] {
    const gone = new Set(groups);
    this.#done = this.#done.filter((group) => !gone.has(group));
    for (const { from } of groups) from.left -= 1;
    this.#batches = this.#batches.filter(({ left }) => left > 0);
    return groups.flatMap(({ samples }) => samples);
  }

  async #gather(pooled: PooledBatch): Promise<void> {
    const { rewards, n } = pooled.batch;
    try {
      while (rewards.unasked > 0) {
        const rows = await rewards.take({ least: n, most: rewards.unasked });
        for (let start = 0; start < rows.length; start += n) {
          this.#arrived(pooled, rows.slice(start, start + n));
        }
        this.#wake();
      }
      const { batch, hasScore, failure, isDropped } = pooled;
      // Without those that were given up it says nothing.
      if (isDropped && !hasScore) return;
      const rows = batch.samples.length;
      const { failsUnscored = Infinity } = this.#settings;
      this.#leftOut.batch({ rows, hasScore, failure }, failsUnscored);
    } catch (error) {
      // Its rewards are of no step any more: none fails by them.
      if (pooled.left === 0 && error instanceof RewardFailuresError) return;
      this.#failure = { error };
      this.#wake();
    }
  }

  /** @param rows of one group: groups are neighbours, and rows come sorted */
  #arrived(from: PooledBatch, rows: readonly number[]): void {
    const samples = scoredSamplesOf(from.batch, rows);
    const isScored = samples.some(({ outcome }) => outcome.valid);
    from.hasScore ||= isScored;
    for (const { sample, outcome } of samples) {
      if (outcome.valid) continue;
      const { name, message } = outcome.error;
      from.failure ??= `${sample.id}: ${name}: ${message}`;
    }
    if (from.left === 0) {
      // Dropped meanwhile: what was scored before that is paid for.
      this.#leftOut.untrained(samples.filter(({ outcome }) => !isGivenUp(outcome)));
      return;
    }
    if (this.#settings.keeps(samples)) {
      this.#leftOut.kept();
      this.#done.push({ from, samples });
      this.#done.sort((a, b) => a.from.batch.generatedAt - b.from.batch.generatedAt);
      return;
    }
    this.#leftOut.filtered(samples, isScored);
    from.left -= 1;
    for (const row of rows) from.batch.isUsed[row] = 1;
    this.#batches = this.#batches.filter(({ left }) => left > 0);
  }

  /** At the end of the turn: of groups that arrive together the oldest are to be taken. */
  #wake(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    setImmediate(() => {
      this.#isWaking = false;
      this.#news.resolve();
      this.#news = Promise.withResolvers();
    });
  }
}

/** Compares two groups by the order of their prompts. */
function inOrder(a: DoneGroup, b: DoneGroup): number {
  const rowOf = ({ samples }: DoneGroup): number => samples[0]?.row ?? 0;
  return a.from.batch.number - b.from.batch.number || rowOf(a) - rowOf(b);
}
