/**
 * The asynchronous reward agent (verl's recipe async_reward_agent): a batch is asked for and scored in the background, and comes back in chunks of whole groups, whichever are
 * done first, so that an update may begin while other rewards are still on their way.
 *
 * A sample of the next batch begins when there is a slot, not when the batch before it is done; chunks never mix batches. There is no polling; an error reaches whoever waits.
 */

import type { DataProto } from "@rayling/data-proto";
import { assembleRewards } from "../batch/rewards.ts";
import { RewardChunkError } from "../errors.ts";
import { RewardLoopManager } from "../manager/reward-loop-manager.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { RewardLoopOptions } from "../settings.ts";
import { RewardRequest } from "./reward-request.ts";

/** Rewards of some rows of the batch that was asked for. */
export interface RewardChunk {
  /** Rows of that batch, sorted. */
  readonly indices: readonly number[];
  /** As `RewardLoopManager.computeRmScore` of those rows. */
  readonly rewards: DataProto;
}

export class AsyncRewardAgent implements AsyncDisposable {
  readonly #loop: RewardLoopManager;
  /** With rows that nobody has asked for. */
  #requests: { readonly request: RewardRequest; readonly groupSize: number }[] = [];

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
   * Begins to score the batch and returns how many samples that are.
   *
   * @param groupSize rows that share a `uid` and come back together. Throws InvalidBatchError.
   */
  computeRewardPipeline(data: DataProto, groupSize: number = 1): number {
    if (!Number.isSafeInteger(groupSize) || groupSize < 1) {
      throw new RewardChunkError(`a group has at least 1 row, not ${groupSize}`);
    }
    const request = new RewardRequest(this.#loop, data, groupSize, "training");
    if (data.length > 0) this.#requests.push({ request, groupSize });
    return data.length;
  }

  /**
   * The next so many rows of the oldest batch that was asked for, in whole groups, when they are done.
   *
   * Rejects with RewardChunkError at once if that batch has not as many left, or they are no whole groups; later with why the loop has failed.
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
    const request = this.#requestFor(chunkSize);
    const indices = await request.take(chunkSize);
    const { width, lengths } = request.shape;
    const shape = {
      rows: indices.length,
      width,
      lengths: Int32Array.from(indices, (row) => lengths[row] ?? 0),
    };
    const outcomes = indices.map((row) => request.outcomes[row] as SampleOutcome);
    const chunk = { indices, rewards: assembleRewards(shape, outcomes) };
    return hook === undefined ? chunk : hook(chunk);
  }

  /**
   * Rewards of a whole batch, as `RewardLoopManager.computeRmScore`, with the user's postProcessScores by group: for validation, in a lane of its own. A batch that has
   * `rmScores` keeps them.
   *
   * @param options.groupSize rows that share a `uid`. Rejects with InvalidBatchError.
   */
  async computeReward(
    data: DataProto,
    { groupSize = 1, lane = "validation" }: { groupSize?: number; lane?: string } = {},
  ): Promise<DataProto> {
    if (data.batch?.["rmScores"] !== undefined) {
      return data.select({ batchKeys: ["rmScores"], nonTensorBatchKeys: [], metaInfoKeys: [] });
    }
    const request = new RewardRequest(this.#loop, data, groupSize, lane);
    if (data.length > 0) await request.take(data.length);
    return assembleRewards(request.shape, request.outcomes);
  }

  /** What nobody has taken is dropped; who waits is rejected with RewardLoopClosedError. Idempotent. */
  close(): Promise<void> {
    this.#requests = [];
    return this.#loop.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Takes that many rows from it: it is asked for nothing else before. */
  #requestFor(chunkSize: number): RewardRequest {
    const [oldest] = this.#requests;
    if (oldest === undefined) throw new RewardChunkError("nothing was asked for");
    const { request, groupSize } = oldest;
    if (!Number.isSafeInteger(chunkSize) || chunkSize < 1 || chunkSize % groupSize !== 0) {
      throw new RewardChunkError(`${chunkSize} rows are no whole groups of ${groupSize}`);
    }
    if (chunkSize > request.unasked) {
      throw new RewardChunkError(`the batch has ${request.unasked} rows left, not ${chunkSize}`);
    }
    if (chunkSize === request.unasked) this.#requests.shift();
    return request;
  }
}
