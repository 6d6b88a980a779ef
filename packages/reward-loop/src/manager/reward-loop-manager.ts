/**
 * verl's RewardLoopManager: rollouts in, rewards out. Lives in the caller's thread and owns the workers.
 * Knows how batches are cut and put together again; how one sample is scored is the workers' business.
 */

import * as ray from "@rayling/core";
import type { DataProto } from "@rayling/data-proto";
import type { RewardSample, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { assembleRewards } from "../batch/rewards.ts";
import { responseShape, samplesOf } from "../batch/rows.ts";
import { RewardLoopClosedError } from "../errors.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { AttemptOutcome, SampleOutcome, ScoredSample, ScoreFailure } from "../outcome.ts";
import { rewardVersion } from "../record/reward-version.ts";
import { RewardModelManager } from "../reward-model/reward-model-manager.ts";
import { modelOptionsOf, readSettings, withRewardModel } from "../settings.ts";
import type { RewardLoopOptions, RewardLoopSettings } from "../settings.ts";
import type { OnFailure } from "../policy-settings.ts";
import { Dispatcher } from "./dispatcher.ts";
import { checkFailures, isWorthAgain, withFallback } from "./failures.ts";
import { KnownScores } from "./known-scores.ts";
import { Purse } from "../spend/purse.ts";
import { ScoreCache } from "../spend/score-cache.ts";
import { scoreStream } from "./score-stream.ts";
import type { ScoreStreamOptions } from "./score-stream.ts";
import { SharedLimiter } from "./shared-limiter.ts";
import { WorkerSeat } from "./worker-seat.ts";

/** A group's scores after the user's postProcessScores, or why there are none. */
export type GroupScores =
  | { readonly valid: true; readonly scores: readonly number[] }
  | { readonly valid: false; readonly error: ScoreFailure };

export interface ScoreOptions {
  /** Whose share of workers and endpoint it takes: "training" (default), "validation", or any other. */
  readonly lane?: string | undefined;
}

export class RewardLoopManager implements AsyncDisposable {
  readonly #seats: readonly WorkerSeat[];
  readonly #slots: number;
  readonly #dispatcher: Dispatcher;
  readonly #onFailure: OnFailure;
  /** Where scores may be known, or have a price. */
  readonly #known: KnownScores | undefined;
  /** Which reward function it is, by its module's text and settings: stands in every record of a reward log. */
  readonly version: string;
  /** Of the option `rewardModel`; closed with the loop. */
  readonly rewardModel: RewardModelManager | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    seats: readonly WorkerSeat[],
    settings: RewardLoopSettings,
    version: string,
    model: RewardModelManager | undefined,
    known: KnownScores | undefined,
  ) {
    this.rewardModel = model;
    this.#known = known;
    this.#onFailure = settings.policy.onFailure;
    this.#seats = seats;
    this.#slots = settings.workers * settings.concurrency;
    this.version = version;
    this.#dispatcher = new Dispatcher(seats, settings);
  }

  /**
   * Resolves when every worker has loaded the user's modules. Rejects with RewardLoopOptionError, ExecutorStartError, RewardLimiterConflictError, RewardCacheError, or why a module
   * cannot be loaded (errors of reward-manager-registry); no actor is left then.
   */
  static async create(options: RewardLoopOptions = {}): Promise<RewardLoopManager> {
    const { rewardModel } = options;
    const settings = readSettings(options);
    if (rewardModel === undefined) return RewardLoopManager.#open(settings, undefined);
    const model = await RewardModelManager.create(modelOptionsOf(rewardModel));
    try {
      const known = withRewardModel(settings, rewardModel, model.routerAddress);
      return await RewardLoopManager.#open(known, model);
    } catch (error) {
      await model.close();
      throw error;
    }
  }

  static async #open(
    settings: RewardLoopSettings,
    model: RewardModelManager | undefined,
  ): Promise<RewardLoopManager> {
    const version = await rewardVersion(settings.pipeline);
    const known = await knownScores(settings.policy, version);
    const limiter = SharedLimiter.of(settings.policy);
    const opening = Array.from({ length: settings.workers }, (_, index) =>
      openSeat(settings, index, limiter),
    );
    const opened = await Promise.allSettled(opening);
    const seats = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const failed = opened.find((one) => one.status === "rejected");
    if (failed === undefined) {
      return new RewardLoopManager(seats, settings, version, model, known);
    }
    known?.close();
    await Promise.all(seats.map((seat) => seat.close()));
    throw failed.reason;
  }

  /** Samples that may be scored at a time: workers x concurrency. */
  get slots(): number {
    return this.#slots;
  }

  /** Names for `ray.getActor`, in order. */
  get workerNames(): string[] {
    return this.#seats.map(({ name }) => name);
  }

  /**
   * Scores a batch (verl `compute_rm_score`) and returns new columns for it: batch.rmScores (float32 [rows, response length], the score
   * at the last valid token) and batch.rewardValid (bool [rows]); nonTensorBatch.rewardError (null or why there is no score) and one
   * column per key of extra info, named in metaInfo.rewardExtraKeys.
   * Rejects with InvalidBatchError, RewardFailuresError (onFailure.failAbove), ExecutorStartError, RewardLoopWorkerLostError, RewardLoopClosedError.
   */
  async computeRmScore(data: DataProto, options: ScoreOptions = {}): Promise<DataProto> {
    if (this.#closing !== undefined) throw new RewardLoopClosedError();
    const shape = responseShape(data);
    const samples = samplesOf(data);
    const score = (): Promise<SampleOutcome[]> => this.#scoreAll(samples, options);
    const outcomes = await (this.rewardModel === undefined
      ? score()
      : this.rewardModel.awake(score));
    const settled = outcomes.map((outcome) => withFallback(outcome, this.#onFailure));
    checkFailures(settled, this.#onFailure);
    return assembleRewards(shape, settled);
  }

  /** One sample, by the worker with the least to do. Rejects as computeRmScore does, but for the batch. */
  computeScore(
    sample: RewardSample,
    { lane = "training" }: ScoreOptions = {},
  ): Promise<SampleOutcome> {
    return this.#score(sample, lane);
  }

  /** What all scores cost so far, with the option `spend`. */
  get spent(): number {
    return this.#known?.spent ?? 0;
  }

  /** What the user's functions do besides: postProcessScores, log. */
  get traits(): ExecutorTraits {
    return (this.#seats[0] as WorkerSeat).traits;
  }

  /**
   * What the user's postProcessScores makes of a group's scores; they are as they were if there is none. Rejects as computeScore.
   *
   * @param scores of a group's valid samples, by their order in the batch
   */
  async postProcessScores(scores: readonly number[]): Promise<GroupScores> {
    const after = await this.#seat.callUntilDone((worker) =>
      worker.postProcessScores.remote(scores),
    );
    if (!after.valid) return after;
    return { valid: true, scores: after.rewardExtraInfo["scores"] as readonly number[] };
  }

  /** Tells the user's log, if there is one. Rejects as computeScore. */
  async log(entry: ScoreLogEntry): Promise<AttemptOutcome> {
    return this.#seat.callUntilDone((worker) => worker.log.remote(entry));
  }

  /**
   * Yields `{ index, sample, outcome }` as samples finish; at most workers x concurrency are in flight, and the input is read no faster.
   * Each sample has exactly one outcome, also when workers or executors die meanwhile.
   */
  scoreStream<Sample extends RewardSample>(
    samples: Iterable<Sample> | AsyncIterable<Sample>,
    options: ScoreStreamOptions = {},
  ): AsyncGenerator<ScoredSample<Sample>, void, undefined> {
    const score = (sample: Sample, lane: string): Promise<SampleOutcome> =>
      this.#score(sample, lane);
    return scoreStream(samples, this.#dispatcher, score, options);
  }

  /** Ends all workers and executors; what is pending rejects with RewardLoopClosedError. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#dispatcher.close();
      await Promise.all(this.#seats.map((seat) => seat.close()));
      await this.rewardModel?.close();
      this.#known?.close();
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #score(sample: RewardSample, lane: string): Promise<SampleOutcome> {
    return withFallback(await this.#submit(sample, lane), this.#onFailure);
  }

  #submit(sample: RewardSample, lane: string): Promise<SampleOutcome> {
    const ask = (): Promise<SampleOutcome> => this.#dispatcher.submit(sample, lane);
    return this.#known === undefined ? ask() : this.#known.of(sample, ask);
  }

  /** Without fallbacks; what is worth it is scored once more when all others are done. */
  async #scoreAll(
    samples: readonly RewardSample[],
    { lane = "training" }: ScoreOptions,
  ): Promise<SampleOutcome[]> {
    const outcomes = await Promise.all(samples.map((sample) => this.#submit(sample, lane)));
    if (this.#onFailure.again !== true) return outcomes;
    return Promise.all(
      outcomes.map(async (first, row) => {
        if (!isWorthAgain(first)) return first;
        const second = await this.#submit(samples[row] as RewardSample, "recovery");
        return { ...second, attempts: first.attempts + second.attempts };
      }),
    );
  }

  /** With the least to do. */
  get #seat(): WorkerSeat {
    return this.#seats.reduce((least, seat) => (seat.load < least.load ? seat : least));
  }
}

async function knownScores(
  { cache, joinSame, spend }: RewardLoopSettings["policy"],
  version: string,
): Promise<KnownScores | undefined> {
  if (cache === undefined && !joinSame && spend === undefined) return undefined;
  return new KnownScores({
    version,
    cache: cache === undefined ? undefined : await ScoreCache.open(cache),
    purse: spend && new Purse(spend),
    joins: joinSame,
  });
}

/** verl's names; where another manager of the session has one already, with a number behind it. */
async function openSeat(
  settings: RewardLoopSettings,
  index: number,
  limiter: SharedLimiter | undefined,
): Promise<WorkerSeat> {
  const { name = "reward_loop_worker" } = settings;
  for (let copy = 1; ; copy++) {
    const seatName = copy === 1 ? `${name}_${index}` : `${name}_${index}_${copy}`;
    try {
      return await WorkerSeat.open(seatName, settings, limiter);
    } catch (error) {
      const isTaken = error instanceof ray.ActorAlreadyExistsError && settings.name === undefined;
      if (!isTaken) throw error;
    }
  }
}
