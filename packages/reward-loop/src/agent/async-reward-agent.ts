/**
 * The asynchronous reward agent (verl's recipe async_reward_agent): a batch is asked for and scored in the background, and comes back in chunks of whole groups, whichever are
 * done first, so that an update may begin while other rewards are still on their way.
 *
 * A sample of the next batch begins when there is a slot, not when the batch before it is done; chunks never mix batches. There is no polling; an error reaches whoever waits.
 */

import type { DataProto } from "@rayling/data-proto";
import { responseShape, samplesOf, shapeOfRows } from "../batch/rows.ts";
import type { ResponseShape } from "../batch/rows.ts";
import { InvalidBatchError, RewardChunkError } from "../errors.ts";
import { RewardLoopManager } from "../manager/reward-loop-manager.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { RewardLoopOptions } from "../compose/loop-options.ts";
import { RewardRequest } from "./reward-request.ts";
import type { RewardRequestOptions } from "./reward-request.ts";

/** Rewards of some rows of the batch that was asked for. */
export interface RewardChunk {
  /** Rows of that batch, sorted. */
  readonly indices: readonly number[];
  /** As `RewardLoopManager.computeRmScore` of those rows; to a manager class with `assembleRmScores` they are a batch. */
  readonly rewards: DataProto;
}

/** A request with all of its rows on their way. */
interface BatchRequest {
  readonly request: RewardRequest;
  readonly shape: ResponseShape;
}

export class AsyncRewardAgent implements AsyncDisposable {
  readonly #loop: RewardLoopManager;
  /** With rows that nobody has asked for. */
  #requests: BatchRequest[] = [];

  private constructor(loop: RewardLoopManager) {
    this.#loop = loop;
  }

  /** Rejects as `RewardLoopManager.create`. */
  static async create(options: RewardLoopOptions = {}): Promise<AsyncRewardAgent> {
    return new AsyncRewardAgent(await RewardLoopManager.create(options));
  }

  /** The loop that scores for it. */
  get loop(): RewardLoopManager {
    return this.#loop;
  }

  /**
   * A batch whose rows come one by one, as their rollouts are finished: `submit` each, `take` whole groups. It is not one of those that `get` gives. Throws InvalidBatchError.
   */
  request(options: RewardRequestOptions): RewardRequest {
    return new RewardRequest(this.#loop, options);
  }

  /**
   * Begins to score the batch and returns how many samples that are.
   *
   * @param groupSize rows that share a `uid` and come back together. Throws InvalidBatchError.
   */
  computeRewardPipeline(data: DataProto, groupSize: number = 1): number {
    if (!Number.isSafeInteger(groupSize) || groupSize < 1) {
      throw new RewardChunkError(`a group has at least 1 row, not ${groupSize}`);
    }
    const asked = this.#ask(data, groupSize, "training");
    if (data.length > 0) this.#requests.push(asked);
    return data.length;
  }

  /**
   * The next so many rows of the oldest batch that was asked for, in whole groups, when they are done.
   *
   * Rejects with RewardChunkError at once if that batch has not as many left, or they are no whole groups; later with RewardFailuresError (onFailure.failAbove), RewardAssemblyError, or
   * why the loop has failed.
   *
   * @param hook what to make of them instead
   */
  get(chunkSize: number): Promise<RewardChunk>;
  get<Result>(
    chunkSize: number,
    hook: (chunk: RewardChunk) => Result | PromiseLike<Result>,
  ): Promise<Result>;
  async get<Result>(
    chunkSize: number,
    hook?: (chunk: RewardChunk) => Result | PromiseLike<Result>,
  ): Promise<RewardChunk | Result> {
    const asked = this.#takeFrom(chunkSize);
    const indices = await asked.rows;
    const chunk = { indices, rewards: await this.#rewardsOf(asked, indices) };
    return hook === undefined ? chunk : hook(chunk);
  }

  /**
   * Rewards of a whole batch, as `RewardLoopManager.computeRmScore`, with the user's postProcessScores by group: for validation, in a lane of its own. A batch that has
   * `rmScores` keeps them.
   *
   * @param options.groupSize rows that share a `uid`. Rejects with InvalidBatchError, and as `get`.
   */
  async computeReward(
    data: DataProto,
    { groupSize = 1, lane = "validation" }: { groupSize?: number; lane?: string } = {},
  ): Promise<DataProto> {
    if (data.batch?.["rmScores"] !== undefined) {
      return data.select({ batchKeys: ["rmScores"], nonTensorBatchKeys: [], metaInfoKeys: [] });
    }
    const asked = this.#ask(data, groupSize, lane);
    const rows = data.length === 0 ? [] : await asked.request.take(data.length);
    return this.#rewardsOf(asked, rows);
  }

  /** What nobody has taken is dropped; who waits is rejected with RewardLoopClosedError. Idempotent. */
  close(): Promise<void> {
    this.#requests = [];
    return this.#loop.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Throws InvalidBatchError. */
  #ask(data: DataProto, groupSize: number, lane: string): BatchRequest {
    const shape = responseShape(data);
    const samples = samplesOf(data);
    const request = this.request({ uids: uidsOf(data, groupSize), groupSize, lane });
    for (const [row, sample] of samples.entries()) request.submit(row, sample);
    return { request, shape };
  }

  #takeFrom(chunkSize: number): BatchRequest & { readonly rows: Promise<number[]> } {
    const [oldest] = this.#requests;
    if (oldest === undefined) throw new RewardChunkError("nothing was asked for");
    const rows = oldest.request.take(chunkSize);
    if (oldest.request.unasked === 0) this.#requests.shift();
    return { ...oldest, rows };
  }

  #rewardsOf({ request, shape }: BatchRequest, rows: readonly number[]): Promise<DataProto> {
    const outcomes = rows.map((row) => request.outcomeOf(row) as SampleOutcome);
    return this.#loop.assembleRewards(shapeOfRows(shape, rows), outcomes);
  }
}

/** Groups of one need no names. */
function uidsOf(data: DataProto, groupSize: number): string[] {
  const uids = data.nonTensorBatch["uid"];
  if (uids !== undefined) return uids.map(String);
  if (groupSize !== 1) throw new InvalidBatchError("uid", "is missing");
  return Array.from({ length: data.length }, (_, row) => String(row));
}
