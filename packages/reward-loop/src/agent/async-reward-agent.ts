/**
 * The asynchronous reward agent (verl's recipe async_reward_agent): batches are scored in the
 * background and come back in chunks of whole groups, the finished ones first, so that an update
 * may begin while other rewards are still being computed.
 *
 * A sample of the next batch begins when there is a slot, not when the batch before it is done.
 * Chunks never mix batches. There is no polling; an error rejects the pending `get`.
 */

import type { DataProto } from "@rayling/data-proto";
import { present } from "@rayling/reward-manager-registry/values";
import { responseShape, samplesOf, shapeOfRows } from "../batch/batch-samples.ts";
import type { ResponseShape } from "../batch/batch-samples.ts";
import { InvalidBatchError, RewardChunkError } from "../errors.ts";
import { RewardLoopManager } from "../manager/reward-loop-manager.ts";
import type { RewardLoopOptions } from "../compose/plan/loop-options.ts";
import { rewardOptions } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { RewardRequest } from "./reward-request.ts";
import type { RewardRequestOptions } from "./reward-request.ts";

/** Rewards of some rows of the batch that was asked for. */
export interface RewardChunk {
  /** Rows of that batch, sorted. */
  readonly indices: readonly number[];
  /**
   * The columns of `RewardLoopManager.computeRmScore` for those rows. A manager class with
   * `assembleRmScores` gets them as one batch.
   */
  readonly rewards: DataProto;
}

/** A request with all of its rows on their way. */
interface BatchRequest {
  readonly request: RewardRequest;
  readonly shape: ResponseShape;
}

/**
 * Scores batches in the background, and returns them in chunks of whole groups (verl: recipe
 * async_reward_agent).
 */
export class AsyncRewardAgent implements AsyncDisposable {
  readonly #loop: RewardLoopManager;
  /** Batches with rows that `get` has not been asked for. */
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
   * Opens a batch whose rows come one by one, as their rollouts finish: `submit` each, `take` whole
   * groups. `get` does not return its rows. Throws RewardLoopOptionError, InvalidBatchError.
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
   * Resolves to the next `chunkSize` rows of the oldest batch, in whole groups, when they are done.
   *
   * Rejects with RewardChunkError at once if that batch has fewer rows left, or the rows are no
   * whole groups; later with RewardFailuresError (onFailure.failAbove), RewardAssemblyError, or the
   * failure of the loop.
   *
   * @param hook turns the rows into another result
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
   * Scores a whole batch for validation, in a lane of its own, as
   * `RewardLoopManager.computeRmScore` does, with the user's postProcessScores by group. A batch
   * that has `rmScores` keeps them.
   *
   * @param options.groupSize rows that share a `uid`. Rejects with RewardLoopOptionError,
   * InvalidBatchError, and as `get`.
   */
  async computeReward(
    data: DataProto,
    options: { readonly groupSize?: number; readonly lane?: string } = {},
  ): Promise<DataProto> {
    checkOptions(rewardOptions, options);
    const { groupSize = 1, lane = "validation" } = options;
    if (data.batch?.["rmScores"] !== undefined) {
      return data.select({ batchKeys: ["rmScores"], nonTensorBatchKeys: [], metaInfoKeys: [] });
    }
    const asked = this.#ask(data, groupSize, lane);
    const rows = data.length === 0 ? [] : await asked.request.take(data.length);
    return this.#rewardsOf(asked, rows);
  }

  /**
   * Drops all rows that were not taken and rejects pending calls with RewardLoopClosedError.
   * Idempotent.
   */
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
    const outcomes = rows.map((row) =>
      present(request.outcomeOf(row), `the outcome of row ${row}`),
    );
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
