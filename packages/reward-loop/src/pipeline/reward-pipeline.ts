/**
 * One reward function with workers of its own and its known scores: the source that all others are
 * built on.
 *
 * A reload replaces its workers as a whole: the new ones are ready before the old ones get no more
 * samples, and these end when all their samples are done.
 */

import * as ray from "@rayling/core";
import type { RewardSample, ScoredBatch, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { isList, itemAt } from "@rayling/reward-manager-registry/values";
import { nanoid } from "nanoid";
import { RewardLoopClosedError } from "../errors.ts";
import { groupSampleOf, outcomesOf } from "../sample/group-sample.ts";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { SampleOutcome } from "../outcome.ts";
import { rewardVersion } from "../settings/reward-version.ts";
import type { RewardLoopSettings } from "../settings/settings.ts";
import type { Budget } from "../spend/cost-budget.ts";
import { ScoreCache } from "../spend/score-cache.ts";
import { Dispatcher } from "./dispatcher.ts";
import { KnownScores } from "./known-scores.ts";
import { forPart } from "./reward-source.ts";
import type {
  AskedFor,
  GroupScores,
  PreparedReload,
  RewardSource,
  ScoreEnds,
} from "./reward-source.ts";
import { rejection } from "./submitted-sample.ts";
import type { SharedLimiter } from "./shared-limiter.ts";
import { SupervisedWorker } from "./supervised-worker.ts";
import type { WorkerOptions } from "./supervised-worker.ts";

interface PipelineParts {
  readonly settings: RewardLoopSettings;
  readonly limiter: SharedLimiter | undefined;
  readonly budget: Budget | undefined;
  readonly known: KnownScores | undefined;
}

export class RewardPipeline implements RewardSource {
  readonly #settings: RewardLoopSettings;
  readonly #limiter: SharedLimiter | undefined;
  readonly #budget: Budget | undefined;
  /** Known and pending scores. */
  readonly #known: KnownScores | undefined;
  readonly #dispatcher: Dispatcher;
  #workers: readonly SupervisedWorker[];
  /** Closing of workers that have been replaced and are finishing. */
  readonly #leaving: Set<Promise<void>> = new Set();
  #version: string;
  #generation = 0;
  #closing: Promise<void> | undefined;

  private constructor(
    { settings, limiter, budget, known }: PipelineParts,
    workers: readonly SupervisedWorker[],
    version: string,
  ) {
    this.#settings = settings;
    this.#limiter = limiter;
    this.#budget = budget;
    this.#known = known;
    this.#workers = workers;
    this.#version = version;
    this.#dispatcher = new Dispatcher(workers, settings, budget);
  }

  /**
   * Resolves when every worker has loaded the user's modules. Rejects with ExecutorStartError,
   * RewardLimiterConflictError, RewardCacheError, or the reason why a module cannot be loaded; no
   * actor is left then.
   *
   * @param budget that pays for its scores
   * @param limiter of the endpoint that its function calls
   */
  static async open(
    settings: RewardLoopSettings,
    budget: Budget | undefined,
    limiter: SharedLimiter | undefined,
  ): Promise<RewardPipeline> {
    const { cache, joinSame } = settings.policy;
    const version = rewardVersion(settings.pipeline);
    const known =
      cache === undefined && !joinSame
        ? undefined
        : new KnownScores(cache === undefined ? undefined : await ScoreCache.open(cache));
    try {
      const asksToSpend = budget?.isLimited === true;
      const workers = await openWorkers({ settings, version, limiter, asksToSpend }, 0);
      return new RewardPipeline({ settings, limiter, budget, known }, workers, version.version);
    } catch (error) {
      await known?.close();
      throw error;
    }
  }

  get version(): string {
    return this.#version;
  }

  get workerNames(): string[] {
    return this.#workers.map(({ name }) => name);
  }

  get traits(): ExecutorTraits {
    return itemAt(this.#workers, 0).traits;
  }

  get slots(): number {
    return this.#settings.workers * this.#settings.concurrency;
  }

  hasRoomFor(lane: string): boolean {
    return this.#dispatcher.hasRoomFor(lane);
  }

  isCongestedFor(lane: string): boolean {
    return this.#dispatcher.isCongestedFor(lane);
  }

  onRoom(listener: () => void): () => void {
    return this.#dispatcher.onRoom(listener);
  }

  score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome> {
    if (this.#known === undefined) return this.#dispatcher.submit(sample, lane, asked, undefined);
    return this.#known.of(sample, this.#version, {
      signal: asked?.signal,
      ask: () => this.#dispatcher.submit(sample, lane, asked, undefined),
    });
  }

  scoreFor(
    ends: ScoreEnds,
    sample: RewardSample,
    lane: string,
    asked?: AskedFor,
  ): Promise<SampleOutcome> {
    if (this.#known === undefined) return this.#dispatcher.submit(sample, lane, asked, ends);
    return this.score(sample, lane, asked).then(ends.settled, (error: unknown) =>
      rejection(error, ends),
    );
  }

  async scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    if (!this.traits.scoresGroups) {
      const each = forPart(asked);
      return Promise.all(samples.map((sample) => this.score(sample, lane, each)));
    }
    const group = groupSampleOf(samples);
    return outcomesOf(group, await this.score(group, lane, asked));
  }

  giveUp(signal: AbortSignal): void {
    this.#dispatcher.giveUp(signal);
  }

  async postProcessScores(scores: GroupScoreList): Promise<GroupScores> {
    const after = await this.#untilDone((worker) => worker.postProcessScores.remote(scores));
    if (!after.valid) return after;
    const { scores: given } = after.rewardExtraInfo;
    if (!isScoreList(given)) throw new TypeError("a group was post-processed without scores");
    return { valid: true, scores: given };
  }

  async assembleRmScores(batch: ScoredBatch): Promise<SampleOutcome | undefined> {
    if (!this.traits.assembles) return undefined;
    return this.#untilDone((worker) => worker.assembleRmScores.remote(batch));
  }

  log(entry: ScoreLogEntry): Promise<SampleOutcome> {
    return this.#untilDone((worker) => worker.log.remote(entry));
  }

  async prepareReload(): Promise<PreparedReload> {
    if (this.#closing !== undefined) throw new RewardLoopClosedError();
    const version = rewardVersion(this.#settings.pipeline);
    const options = {
      settings: this.#settings,
      version,
      limiter: this.#limiter,
      asksToSpend: this.#budget?.isLimited === true,
    };
    const workers = await openWorkers(options, ++this.#generation);
    const discard = async (): Promise<void> => {
      await Promise.all(workers.map((worker) => worker.close()));
    };
    return { commit: () => this.#replace(workers, version.version, discard), discard };
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#dispatcher.close();
      await Promise.all(this.#workers.map((worker) => worker.close()));
      await Promise.all(this.#leaving);
      await this.#known?.close();
    })();
    return this.#closing;
  }

  #replace(
    workers: readonly SupervisedWorker[],
    version: string,
    discard: () => Promise<void>,
  ): void {
    if (this.#closing !== undefined) {
      holdUntilSettled(this.#leaving, discard());
      return;
    }
    const before = this.#workers;
    this.#workers = workers;
    this.#version = version;
    this.#dispatcher.replaceWorkers(workers);
    for (const worker of before) holdUntilSettled(this.#leaving, worker.retire());
  }

  /** Calls the worker with the least load, and another one if that dies or leaves meanwhile. */
  async #untilDone<Value>(
    use: Parameters<typeof SupervisedWorker.prototype.call<Value>>[0],
  ): Promise<Value> {
    for (;;) {
      const living = this.#workers.filter(({ state }) => state !== "lost");
      const workers = living.length === 0 ? this.#workers : living;
      const worker = workers.reduce((least, one) =>
        one.load.atWork < least.load.atWork ? one : least,
      );
      worker.load.take(1);
      try {
        const answer = await worker.call(use);
        if (answer !== undefined) return answer.value;
      } catch (error) {
        // The worker was lost before the call: another one may do it.
        if (worker.state !== "lost" || this.#workers.every(({ state }) => state === "lost"))
          throw error;
      } finally {
        worker.load.release(1);
      }
    }
  }
}

function holdUntilSettled(all: Set<Promise<void>>, one: Promise<void>): void {
  all.add(one);
  void one.then(() => all.delete(one));
}

function isScoreList(value: unknown): value is GroupScoreList {
  return isList(value) && value.every((one) => one === null || typeof one === "number");
}

/**
 * How many workers share a thread. They run no user code, which is in their executors: several need
 * no more than one. verl has eight workers by default.
 */
const workersPerThread = 8;

/** Opens all workers, or none. */
async function openWorkers(
  options: Omit<WorkerOptions, "threadName">,
  generation: number,
): Promise<SupervisedWorker[]> {
  const threads = `reward loop workers ${nanoid()}`;
  const opening = Array.from({ length: options.settings.workers }, (_, index) => {
    const threadName = `${threads} ${Math.floor(index / workersPerThread)}`;
    const place = generation === 0 ? `${index}` : `${index}_r${generation}`;
    return openWorker({ ...options, threadName }, place);
  });
  const opened = await Promise.allSettled(opening);
  const workers = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = opened.find((one) => one.status === "rejected");
  if (failed === undefined) return workers;
  await Promise.all(workers.map((worker) => worker.close()));
  throw failed.reason;
}

/** verl's names; where another loop of the session has one already, with a number behind it. */
async function openWorker(options: WorkerOptions, place: string): Promise<SupervisedWorker> {
  const { settings } = options;
  const base = settings.name ?? "reward_loop_worker";
  const name = settings.part === undefined ? base : `${base}_${settings.part}`;
  for (let copy = 1; ; copy++) {
    const workerName = copy === 1 ? `${name}_${place}` : `${name}_${place}_${copy}`;
    try {
      return await SupervisedWorker.open(workerName, options);
    } catch (error) {
      const isTaken = error instanceof ray.ActorAlreadyExistsError && settings.name === undefined;
      if (!isTaken) throw error;
    }
  }
}
