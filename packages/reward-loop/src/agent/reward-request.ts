/**
 * The rewards of one batch in progress: rows as they are submitted, groups as they become whole,
 * and the calls that wait for them.
 *
 * Groups come out in the order in which their slowest samples are done, each once and whole; calls
 * are served in the order in which they were made. If the loop fails, or too many rows have no
 * score, pending and later calls reject with the reason. Samples that are scored once more
 * (`onFailure.again`) are done after all other rows.
 *
 * A group that is given up is whole at once, as far as anybody waits for it: its rows without an
 * outcome get one that says so, and what its calls still answer changes nothing.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { itemAt, present } from "@rayling/reward-manager-registry/values";
import type { EarlierRows } from "../manager/failures.ts";
import type { RewardLoopManager } from "../manager/reward-loop-manager.ts";
import type { ScoreRound } from "../manager/score-round.ts";
import { requestOptions } from "../options/defaults/calls.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { givenUpRow, type SampleOutcome } from "../outcome.ts";
import type { AskedFor } from "../pipeline/reward-source.ts";
import { GroupTakes } from "./group-takes.ts";
import type { TakeRange } from "./group-takes.ts";
import { RequestLog } from "./request-log.ts";
import { RowGroups } from "./row-groups.ts";
import type { GatheredRow, RowGroup } from "./row-groups.ts";
import { RowOutcomes } from "./row-outcomes.ts";

/** Rows and groups of a batch that is scored row by row. */
export interface RewardRequestOptions {
  /** One uid for each row; rows with the same uid come back together. */
  readonly uids: readonly string[];
  /** How many rows each uid has. Default 1. */
  readonly groupSize?: number | undefined;
  /** The lane in which it shares workers and endpoint. Default "training". */
  readonly lane?: string | undefined;
  /**
   * Rows of the same batch that another request has scored, and how many of them are invalid:
   * `onFailure.failAbove` is a share of all rows. Default: none.
   */
  readonly earlier?: EarlierRows | undefined;
}

/** Rewards of one batch in progress: rows are submitted one by one, and taken in whole groups. */
export class RewardRequest {
  /** The number of rows of the batch. */
  readonly rows: number;
  /** The number of rows of each group. */
  readonly groupSize: number;
  readonly #loop: RewardLoopManager;
  readonly #round: ScoreRound;
  /** Whether the function scores whole groups: then one begins with the last of its rows. */
  readonly #isGrouped: boolean;
  /** Whether more is done to a group when it is whole. */
  readonly #isPutRight: boolean;
  readonly #groups: RowGroups;
  readonly #outcomes: RowOutcomes;
  readonly #allSettled = Promise.withResolvers<void>();
  readonly #takes: GroupTakes;
  readonly #log: RequestLog = new RequestLog();

  /** Throws RewardLoopOptionError, and InvalidBatchError where a group has not `groupSize` rows. */
  constructor(loop: RewardLoopManager, options: RewardRequestOptions) {
    checkOptions(requestOptions satisfies TableOf<RewardRequestOptions>, options);
    const { uids, groupSize = 1, lane = "training", earlier } = options;
    this.#loop = loop;
    this.rows = uids.length;
    this.groupSize = groupSize;
    this.#groups = new RowGroups(uids, groupSize);
    this.#isGrouped = loop.traits.scoresGroups;
    this.#isPutRight = loop.putsGroupsRight;
    this.#round = loop.round(uids.length, { lane, earlier });
    this.#outcomes = new RowOutcomes(uids.length);
    this.#takes = new GroupTakes(uids.length, groupSize);
    this.#allSettled.promise.catch(() => undefined);
    if (uids.length === 0) this.#allSettled.resolve();
  }

  /** Rows that `take` has not been asked for. */
  get unasked(): number {
    return this.#takes.unasked;
  }

  /** Rows without an outcome yet. */
  get left(): number {
    return this.#outcomes.left;
  }

  /**
   * Returns the outcome of a row, or undefined while there is none. After `take` gave the row it is
   * the result of the user's postProcessScores.
   */
  outcomeOf(row: number): SampleOutcome | undefined {
    return this.#outcomes.of(row);
  }

  /**
   * Returns the outcome without postProcessScores: the input of `know` when a request is made
   * again.
   */
  scoredOutcomeOf(row: number): SampleOutcome | undefined {
    return this.#outcomes.scoredOf(row);
  }

  /** Whether `know` set the outcome: its times are of another request. */
  isKnown(row: number): boolean {
    return this.#outcomes.isKnown(row);
  }

  /** Returns when the row's outcome was set, in ms since 1970; 0 before that. */
  settledMsOf(row: number): number {
    return this.#outcomes.settledMsOf(row);
  }

  /** Resolves when every row has an outcome, taken or not. Rejects as `take`. */
  whenSettled(): Promise<void> {
    return this.#allSettled.promise;
  }

  /**
   * Begins to score a row, once. A function that scores whole groups is called when the other rows
   * of the group are submitted or known. Throws RewardChunkError. With `onFailure.again` do not
   * wait for a row before all are submitted. Does nothing for a row that was given up.
   */
  submit(row: number, sample: RewardSample): void {
    const group = this.#groups.claim(row);
    if (group === undefined) return;
    const extraInfo = {
      group_uid: group.uid,
      group_size: this.groupSize,
      ...sample.extraInfo,
    };
    const context = { group: group.uid, ...sample.context };
    const isGroupAdded = !Object.hasOwn(sample.extraInfo ?? {}, "group_uid");
    group.gathered.push({ row, sample: { ...sample, extraInfo, isGroupAdded, context } });
    if (this.#isGrouped) return this.#beginIfWhole(group);
    void this.#score(group, group.gathered.splice(0));
  }

  #beginIfWhole(group: RowGroup): void {
    if (group.toCome === 0 && group.gathered.length > 0) {
      void this.#score(group, group.gathered.splice(0));
    }
  }

  /** Rows of a group, at once. */
  async #score(group: RowGroup, given: readonly GatheredRow[]): Promise<void> {
    const sentMs = performance.now();
    const asked = (group.asked ??= askedFor(new AbortController()));
    const inOrder = given.toSorted((a, b) => a.row - b.row);
    const samples = inOrder.map(({ sample }) => sample);
    try {
      const outcomes = this.#isGrouped
        ? await this.#round.scoreGroup(samples, asked)
        : await Promise.all(samples.map((sample) => this.#round.score(sample, asked)));
      if (group.isGivenUp) return;
      for (const [at, { row }] of inOrder.entries()) {
        const outcome = itemAt(outcomes, at);
        this.#log.add(outcome, group.uid, performance.now() - sentMs);
        this.#settle(row, outcome, false);
      }
    } catch (error) {
      if (!group.isGivenUp) this.fail(error);
    }
  }

  /**
   * Gives up groups of which nobody needs the scores any more, and which are not whole yet. Rows
   * that were not begun never are; calls under way are aborted by the `signal` that their function
   * has, and what they have used is paid. A row without an outcome has an invalid one at once
   * (`GIVEN_UP`), which is no failure of the batch, and `take` gives it with its group, without
   * postProcessScores. Throws RewardChunkError.
   *
   * @param rows of these groups, at least one of each. Default: all
   */
  giveUp(rows: Iterable<number> = this.#groups.all()): void {
    for (const row of rows) {
      const group = this.#groups.of(row);
      if (group.left === 0) continue;
      group.isGivenUp = true;
      this.#giveUp(group);
    }
  }

  #giveUp({ rows, asked, gathered }: RowGroup): void {
    if (asked !== undefined) {
      asked.end.abort(new DOMException(givenUpRow.error.message, "AbortError"));
      this.#round.giveUp(asked.end.signal);
    }
    const waiting = new Set(gathered.splice(0).map(({ row }) => row));
    for (const row of rows) {
      if (this.#outcomes.of(row) !== undefined) continue;
      if (!this.#groups.isSubmitted(row) || waiting.has(row)) this.#round.know();
      this.#settle(row, givenUpRow, false);
    }
  }

  /**
   * Sets the known outcome of a row without scoring it. Throws RewardChunkError. Does nothing for a
   * row that was given up.
   */
  know(row: number, outcome: SampleOutcome): void {
    const group = this.#groups.claim(row);
    if (group === undefined) return;
    this.#round.know();
    this.#settle(row, outcome, true);
    this.#beginIfWhole(group);
  }

  /**
   * Resolves to rows of whole groups, sorted, when they are done. Rejects with RewardFailuresError
   * (onFailure.failAbove), and with the failure of the loop; throws RewardChunkError for a size
   * that is no multiple of the group size, or is more than `unasked`.
   *
   * Calls are served in order.
   */
  take(size: number | TakeRange): Promise<number[]> {
    return this.#takes.take(size);
  }

  #settle(row: number, outcome: SampleOutcome, isKnown: boolean): void {
    this.#outcomes.set(row, outcome, isKnown);
    const isLast = this.left === 0;
    if (isLast && this.#loop.traits.logs) void this.#log.send((entry) => this.#loop.log(entry));
    const group = this.#groups.of(row);
    // The rows of such a group count after it has been post-processed.
    if (!group.isGivenUp && !this.#isPutRight && this.#isTooMany(outcome)) return;
    if (isLast) this.#allSettled.resolve();
    group.left -= 1;
    if (group.left > 0) return;
    const putRight = this.#putRight(group);
    // Waiting calls get the error, too; without any the request fails later.
    putRight.catch((error: unknown) => this.fail(error));
    this.#takes.add(putRight);
  }

  /** Whether the request fails with that one. */
  #isTooMany(outcome: SampleOutcome): boolean {
    try {
      this.#round.count(outcome);
      return false;
    } catch (error) {
      this.fail(error);
      return true;
    }
  }

  /** Applies the user's postProcessScores and the fallback to a whole group. */
  async #putRight({ rows, isGivenUp }: RowGroup): Promise<readonly number[]> {
    if (!this.#isPutRight || isGivenUp) return rows;
    const outcomes = rows.map((row) =>
      present(this.#outcomes.scoredOf(row), `the outcome of row ${row}`),
    );
    const after = await this.#loop.putRight(outcomes);
    for (const [at, row] of rows.entries()) {
      const outcome = itemAt(after, at);
      this.#outcomes.putRight(row, outcome);
      this.#round.count(outcome);
    }
    return rows;
  }

  /**
   * Rejects pending and later calls, and waits for no row any more: for a batch whose other rows
   * will never be submitted. Rows that are being scored are scored to their end, unless they are
   * given up.
   */
  fail(error: unknown): void {
    // The loop keeps a round until all of its rows are there, and these are not coming.
    this.#round.fail(error);
    this.#allSettled.reject(error);
    this.#takes.fail(error);
  }
}

function askedFor(end: AbortController): AskedFor & { readonly end: AbortController } {
  return { signal: end.signal, end };
}
