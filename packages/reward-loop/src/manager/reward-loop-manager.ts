/**
 * verl's RewardLoopManager: rollouts in, rewards out. Lives in the caller's thread and owns the workers.
 * Knows how batches are cut and put together again; how one sample is scored is the workers' business.
 */

import * as ray from "@rayling/core";
import { padDataProtoToDivisor } from "@rayling/data-proto";
import type { DataProto } from "@rayling/data-proto";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { assembleRewards } from "../batch/rewards.ts";
import { responseShape, samplesOf } from "../batch/rows.ts";
import { RewardLoopClosedError } from "../errors.ts";
import type { SampleOutcome, ScoredSample } from "../outcome.ts";
import { readSettings } from "../settings.ts";
import type { RewardLoopOptions, RewardLoopSettings } from "../settings.ts";
import { Dispatcher } from "./dispatcher.ts";
import { scoreStream } from "./score-stream.ts";
import type { ScoreStreamOptions } from "./score-stream.ts";
import { WorkerSeat } from "./worker-seat.ts";

export class RewardLoopManager implements AsyncDisposable {
  readonly #seats: readonly WorkerSeat[];
  readonly #dispatcher: Dispatcher;
  #closing: Promise<void> | undefined;

  private constructor(seats: readonly WorkerSeat[], settings: RewardLoopSettings) {
    this.#seats = seats;
    this.#dispatcher = new Dispatcher(seats, settings);
  }

  /**
   * Resolves when every worker has loaded the user's modules. Rejects with RewardLoopOptionError, ExecutorStartError, or why a module
   * cannot be loaded (errors of reward-manager-registry); no actor is left then.
   */
  static async create(options: RewardLoopOptions = {}): Promise<RewardLoopManager> {
    const settings = readSettings(options);
    const opening = Array.from({ length: settings.workers }, (_, index) =>
      openSeat(settings, index),
    );
    const opened = await Promise.allSettled(opening);
    const seats = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const failed = opened.find((one) => one.status === "rejected");
    if (failed === undefined) return new RewardLoopManager(seats, settings);
    await Promise.all(seats.map((seat) => seat.close()));
    throw failed.reason;
  }

  /** Names for `ray.getActor`, in order. */
  get workerNames(): string[] {
    return this.#seats.map(({ name }) => name);
  }

  /**
   * Scores a batch (verl `compute_rm_score`) and returns new columns for it: batch.rmScores (float32 [rows, response length], the score
   * at the last valid token) and batch.rewardValid (bool [rows]); nonTensorBatch.rewardError (null or why there is no score) and one
   * column per key of extra info, named in metaInfo.rewardExtraKeys.
   * Rejects with InvalidBatchError, ExecutorStartError, RewardLoopWorkerLostError, RewardLoopClosedError.
   */
  async computeRmScore(data: DataProto): Promise<DataProto> {
    if (this.#closing !== undefined) throw new RewardLoopClosedError();
    const shape = responseShape(data);
    // What a worker would refuse is refused here, before anything is sent.
    samplesOf(data.slice(0, 1));
    const outcomes = shape.rows === 0 ? [] : await this.#scoreChunks(data);
    return assembleRewards(shape, outcomes);
  }

  /** One sample, by the worker with the least to do. */
  computeScore(sample: RewardSample): Promise<SampleOutcome> {
    return this.#dispatcher.submit(sample);
  }

  /**
   * Yields `{ index, sample, outcome }` as samples finish; at most workers x concurrency are in flight, and the input is read no faster.
   * Each sample has exactly one outcome, also when workers or executors die meanwhile.
   */
  scoreStream<Sample extends RewardSample>(
    samples: Iterable<Sample> | AsyncIterable<Sample>,
    options: ScoreStreamOptions = {},
  ): AsyncGenerator<ScoredSample<Sample>, void, undefined> {
    return scoreStream(samples, this.#dispatcher, options);
  }

  /** Ends all workers and executors; what is pending rejects with RewardLoopClosedError. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#dispatcher.close();
      await Promise.all(this.#seats.map((seat) => seat.close()));
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Pads to a multiple of the workers, one chunk each, gathers in order, drops the padding. */
  async #scoreChunks(data: DataProto): Promise<SampleOutcome[]> {
    const needed = data.select({
      batchKeys: Object.keys(data.batch ?? {}).filter((key) => scoringTensors.has(key)),
      metaInfoKeys: [],
    });
    const { padded } = padDataProtoToDivisor(needed, this.#seats.length);
    const chunks = padded.chunk(this.#seats.length);
    const outcomes = await Promise.all(
      chunks.map(async (chunk, index) => {
        const seat = this.#seats[index] as WorkerSeat;
        seat.take(chunk.length);
        try {
          const sent = chunk.toData();
          return await seat.callUntilDone((worker) => worker.computeScoreBatch.remote(sent));
        } finally {
          seat.release(chunk.length);
        }
      }),
    );
    return outcomes.flat().slice(0, data.length);
  }
}

/** The tensors that workers read; log-probs and their like stay here. */
const scoringTensors: ReadonlySet<string> = new Set(["prompts", "responses", "attention_mask"]);

/** verl's names; where another manager of the session has one already, with a number behind it. */
async function openSeat(settings: RewardLoopSettings, index: number): Promise<WorkerSeat> {
  const { name = "reward_loop_worker" } = settings;
  for (let copy = 1; ; copy++) {
    const seatName = copy === 1 ? `${name}_${index}` : `${name}_${index}_${copy}`;
    try {
      return await WorkerSeat.open(seatName, settings);
    } catch (error) {
      const isTaken = error instanceof ray.ActorAlreadyExistsError && settings.name === undefined;
      if (!isTaken) throw error;
    }
  }
}
