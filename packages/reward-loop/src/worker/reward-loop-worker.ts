/**
 * verl's RewardLoopWorker: takes samples one by one or as a chunk of a batch, scores at most
 * `concurrency` of them at once within the limits of their endpoint, keeps a few more ready in its
 * executor, and returns outcomes in order. It coordinates and runs no user code, so it answers
 * while its executors are blocked or dead.
 */

import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import type { DataProtoData } from "@rayling/data-proto";
import type { RewardSample, ScoredBatch, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import { samplesOf } from "../batch/batch-samples.ts";
import { LimiterClient } from "../limits/limiter-client.ts";
import type { RewardLimiter } from "../limits/reward-limiter.ts";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { ExecutorSettings } from "../settings/settings.ts";
import { inLane } from "../sample/lane.ts";
import { scoredFields } from "../sample/scored-fields.ts";
import { Outbox } from "../exchange/result-outbox.ts";
import type { NumberedRows } from "../exchange/result-outbox.ts";
import { fromTables } from "../exchange/column-table.ts";
import type { Table } from "../exchange/column-table.ts";
import { ExecutorPool } from "./executors/pool/executor-pool.ts";
import type { JobEnds } from "./executors/job.ts";
import { PauseCount } from "./pause-count.ts";
import { ScoreAttempts } from "./score-attempts.ts";
import type { AttemptTerms } from "./score-attempts.ts";
import { readyOf, Slots } from "./slots.ts";
import { SpendRequests } from "./spend-requests.ts";
import type { SpendAnswer, SpendNote } from "./spend-requests.ts";

/** A worker's names and its relation to its loop. */
export interface WorkerPlace {
  /** Its executors are called this and a number. */
  readonly executorName: string;
  /** The endpoint's limiter, and the holder's name of this life of the worker. */
  readonly limiter:
    | { readonly handle: ActorHandle<RewardLimiter>; readonly holder: string }
    | undefined;
  /** Whether the loop is asked before each call: spending has a cap. */
  readonly asksToSpend: boolean;
}

/** Samples under their ids, each with its lane. */
export interface WorkChunk {
  readonly ids: readonly number[];
  /** One for each sample, or one for all. */
  readonly lanes: readonly string[] | string;
  readonly samples: readonly Table<RewardSample>[];
  /** Some of them may be given up before they have their outcome. */
  readonly mayBeGivenUp: boolean;
  /** Ids of samples, of this chunk or earlier ones, whose outcome nobody needs any more. */
  readonly givenUp: readonly number[];
}

/** How a sample travels in a call of its own. */
export interface SentAlone extends AttemptTerms {
  /** Under which it asks whether it may spend, and is given up. */
  readonly id: number;
}

/**
 * verl's `RewardLoopWorker`: an actor that scores samples in its executors, within the limits of
 * their endpoint.
 */
export class RewardLoopWorker {
  readonly #pool: ExecutorPool;
  readonly #attempts: ScoreAttempts;
  readonly #limiter: LimiterClient | undefined;
  readonly #pauses: PauseCount = new PauseCount();
  readonly #spending: SpendRequests = new SpendRequests();
  readonly #outbox: Outbox<SampleOutcome> = new Outbox();
  /** Why, of those that were rejected. */
  readonly #rejected: Map<number, unknown> = new Map();
  readonly #ends: JobEnds = {
    settled: (outcome, id) => this.#outbox.push(id, outcome),
    rejected: (error, id) => {
      this.#rejected.set(id, error);
      this.#outbox.withhold(id, undefined);
    },
  };

  constructor(settings: ExecutorSettings, { executorName, limiter, asksToSpend }: WorkerPlace) {
    const { policy, concurrency } = settings;
    // A call that costs something runs at once or not at all: it does not stand ready while others
    // spend the rest.
    const slots = new Slots(concurrency + (asksToSpend ? 0 : readyOf(settings)));
    this.#pool = new ExecutorPool(settings, (count) => `${executorName}${count}`);
    this.#limiter =
      limiter &&
      policy.limits &&
      new LimiterClient(limiter.handle, limiter.holder, policy.limits.settings);
    this.#attempts = new ScoreAttempts(policy, {
      run: (sample, id, ends, options) => this.#pool.score(sample, id, ends, options),
      giveUp: (ids) => this.#pool.giveUp(ids),
      slots,
      limiter: this.#limiter,
      spending: asksToSpend ? this.#spending : undefined,
      onPause: (change) => this.#pauses.add(change),
    });
    // Others may be in its thread, which goes on when this worker has ended.
    const { signal } = ray.getRuntimeContext();
    signal.addEventListener("abort", () => void this.#end(), { once: true });
  }

  /** Calls that its executors still make count until they have ended. */
  async #end(): Promise<void> {
    await this.#pool.close().catch(() => undefined);
    this.#limiter?.close();
  }

  /**
   * Resolves when all executors have loaded the user's modules; rejects with the reason why they
   * cannot, and with RewardLimiterConflictError.
   */
  async ready(): Promise<void> {
    await Promise.all([this.#pool.ready(), this.#limiter?.ready()]);
  }

  /** Whether nothing can be scored here any more: what it is asked from now on rejects. */
  async hasFailed(): Promise<boolean> {
    return this.#pool.hasFailed;
  }

  /** The traits of the user's functions, as far as they are known. */
  async traits(): Promise<ExecutorTraits> {
    return this.#pool.traits;
  }

  /**
   * Returns a group's scores after the user's postProcessScores, under the deadline of a sample;
   * without one they are unchanged.
   */
  async postProcessScores(scores: GroupScoreList): Promise<SampleOutcome> {
    return this.#pool.submit({ kind: "group", scores });
  }

  /**
   * Returns where the user's manager puts the scores of a batch, under the deadline of a sample.
   */
  async assembleRmScores(batch: ScoredBatch): Promise<SampleOutcome> {
    return this.#pool.submit({ kind: "batch", batch });
  }

  /** Tells the user's log, under the deadline of a sample. */
  async log(entry: ScoreLogEntry): Promise<SampleOutcome> {
    return this.#pool.submit({ kind: "log", entry });
  }

  /**
   * Yields the number of samples that wait for their next try and have no slot, whenever it has
   * changed. Never ends.
   */
  async *pauses(): AsyncGenerator<number> {
    yield* this.#pauses.changes();
  }

  /** Calls that want to begin, and what others used, as it comes. Never ends. */
  async *spending(): AsyncGenerator<readonly SpendNote[]> {
    yield* this.#spending.notes();
  }

  /** Whether calls that asked may begin. */
  async maySpend(answers: readonly SpendAnswer[]): Promise<void> {
    this.#spending.answer(answers);
  }

  /**
   * Begins the samples of the chunk, if any, and resolves to all outcomes that are ready by then.
   */
  async take({
    ids,
    lanes,
    samples,
    mayBeGivenUp,
    givenUp,
  }: WorkChunk): Promise<NumberedRows<SampleOutcome>> {
    const given = fromTables(samples);
    const ofAll = typeof lanes === "string" ? { lane: lanes, mayBeGivenUp } : undefined;
    for (let at = 0; at < given.length; at++) {
      const terms = ofAll ?? { lane: itemAt(lanes, at), mayBeGivenUp };
      this.#attempts.begin(itemAt(given, at), terms, itemAt(ids, at), this.#ends);
    }
    if (givenUp.length > 0) this.#attempts.giveUp(new Set(givenUp));
    return this.#outbox.exchange(ids.length);
  }

  /** Rejects with why there is no outcome of that one: once. */
  async outcome(id: number): Promise<never> {
    const error = this.#rejected.get(id);
    this.#rejected.delete(id);
    throw error;
  }

  /**
   * Rejects only if nothing can be scored any more: ExecutorStartError, the failure to load the
   * user's modules, or the loss of the limiter.
   *
   * @param lane in which it shares the endpoint
   */
  async computeScore(sample: RewardSample, lane: string = "training"): Promise<SampleOutcome> {
    return this.#attempts.score(scoredFields(sample), { lane });
  }

  /**
   * Scores a sample of the loop, or a group, that travels in a call of its own. Rejects as
   * computeScore.
   */
  async scoreAlone(sample: RewardSample, alone: SentAlone): Promise<SampleOutcome> {
    return this.#attempts.score(sample, alone, alone.id);
  }

  /**
   * One outcome per row, in order. Takes `DataProto.toData()`. Rejects also with InvalidBatchError.
   */
  async computeScoreBatch(data: DataProtoData, lane?: string): Promise<SampleOutcome[]> {
    // Loops send samples, never batches: their threads do not load it.
    const { DataProto } = await import("@rayling/data-proto");
    const samples = samplesOf(DataProto.fromData(data));
    return Promise.all(
      samples.map((sample) => this.computeScore(lane ? inLane(sample, lane) : sample, lane)),
    );
  }
}

/** A thread, whatever the session's default: workers and executors share the table of what runs. */
export const RewardLoopWorkerActor: ray.ActorClass<typeof RewardLoopWorker> = ray.remote(
  RewardLoopWorker,
  { isolation: "thread" },
);
