/**
 * The place of one RewardLoopWorker in its manager: the actor that sits there now, and its replacement when that dies.
 *
 * A dead worker's executors are ended before its successor starts. Deaths without one result in between are counted; after too many the
 * seat is lost. What was in flight when a worker died is the business of whoever sent it.
 */

import * as ray from "@rayling/core";
import type { ActorHandle, ObjectRef } from "@rayling/core";
import { RewardLoopClosedError, RewardLoopWorkerLostError } from "../errors.ts";
import type { RewardLoopSettings } from "../settings.ts";
import { RewardLoopWorkerActor } from "../worker/reward-loop-worker.ts";
import type { RewardLoopWorker } from "../worker/reward-loop-worker.ts";

export type WorkerHandle = ActorHandle<RewardLoopWorker>;

/** Deaths in a row without one result. As for executors (executor-pool.ts). */
const MOST_DEATHS_IN_A_ROW = 5;

export class WorkerSeat {
  readonly name: string;
  readonly #settings: RewardLoopSettings;
  #worker: Promise<WorkerHandle>;
  #incarnation = 0;
  #deathsInARow = 0;
  #closed = false;
  #overlaps = false;
  #hasAnswered = false;
  #load = 0;
  #state: "alive" | "replacing" | "lost" = "alive";
  #onChange: () => void = () => undefined;

  private constructor(name: string, settings: RewardLoopSettings, first: WorkerHandle) {
    this.name = name;
    this.#settings = settings;
    this.#worker = Promise.resolve(first);
  }

  /** Resolves when its executors have loaded the user's modules. Rejects with why they cannot, or ActorAlreadyExistsError. */
  static async open(name: string, settings: RewardLoopSettings): Promise<WorkerSeat> {
    const worker = startWorker(name, settings, 0);
    const seat = new WorkerSeat(name, settings, worker);
    try {
      await ray.get(worker.ready.remote());
      seat.#overlaps = await ray.get(worker.overlaps.remote());
    } catch (error) {
      if (!(error instanceof ray.ActorAlreadyExistsError)) await seat.close();
      throw error;
    }
    return seat;
  }

  /** Whether samples overlap there: what was known at its start and after its first answer. */
  get overlaps(): boolean {
    return this.#overlaps;
  }

  /** Samples that were sent there and not answered. */
  get load(): number {
    return this.#load;
  }

  take(samples: number): void {
    this.#load += samples;
  }

  /** Whoever waits for room hears of it, whoever took it. */
  release(samples: number): void {
    this.#load -= samples;
    this.#onChange();
  }

  get state(): "alive" | "replacing" | "lost" {
    return this.#state;
  }

  /** Why the seat is lost; rejects nowhere else than in calls. */
  get failure(): Promise<unknown> {
    return this.#worker.then(
      () => undefined,
      (error: unknown) => error,
    );
  }

  /** Told whenever the state has changed. One listener. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Calls the worker once, or its successor if there is none at the moment. Undefined if it died over it. */
  async call<Value>(
    use: (worker: WorkerHandle) => ObjectRef<Value>,
  ): Promise<{ value: Value } | undefined> {
    const current = this.#worker;
    const worker = await current;
    if (this.#closed) throw new RewardLoopClosedError();
    try {
      const value = await ray.get(use(worker));
      this.#deathsInARow = 0;
      if (!this.#hasAnswered) this.#learn(worker);
      return { value };
    } catch (error) {
      if (this.#closed) throw new RewardLoopClosedError();
      if (!isDeathOfWorker(error)) throw error;
      if (current === this.#worker) this.#replace(error.deathCause.message);
      return undefined;
    }
  }

  /** Calls until a worker lives to answer. */
  async callUntilDone<Value>(use: (worker: WorkerHandle) => ObjectRef<Value>): Promise<Value> {
    for (;;) {
      const answer = await this.call(use);
      if (answer !== undefined) return answer.value;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = await this.#worker.catch(() => undefined);
    if (!ray.isInitialized()) return;
    if (worker !== undefined) await kill(worker);
    await this.#endExecutors();
  }

  #replace(reason: string): void {
    this.#incarnation += 1;
    this.#deathsInARow += 1;
    this.#become("replacing");
    this.#worker = this.#successor(reason);
    this.#worker.then(
      () => this.#become("alive"),
      // Whoever calls hears why.
      () => this.#become("lost"),
    );
  }

  /** A function that returns promises without being declared async is known by its first one. */
  #learn(worker: WorkerHandle): void {
    this.#hasAnswered = true;
    ray.get(worker.overlaps.remote()).then(
      (overlaps) => {
        this.#overlaps = overlaps;
        this.#onChange();
      },
      // Its death is told to whoever has samples there.
      () => undefined,
    );
  }

  #become(state: "alive" | "replacing" | "lost"): void {
    this.#state = state;
    this.#onChange();
  }

  async #successor(reason: string): Promise<WorkerHandle> {
    if (this.#deathsInARow > MOST_DEATHS_IN_A_ROW) {
      throw new RewardLoopWorkerLostError(this.name, this.#deathsInARow, reason);
    }
    await this.#endExecutors();
    if (this.#closed) throw new RewardLoopClosedError();
    return startWorker(this.name, this.#settings, this.#incarnation);
  }

  /** Nobody else knows them: a worker creates its executors itself, and takes their handles with it. */
  async #endExecutors(): Promise<void> {
    const prefix = executorPrefix(this.name);
    const named = await ray.listNamedActors();
    await Promise.all(
      named.filter(({ name }) => name.startsWith(prefix)).map(({ name }) => killNamed(name)),
    );
  }
}

function startWorker(
  name: string,
  settings: RewardLoopSettings,
  incarnation: number,
): WorkerHandle {
  return RewardLoopWorkerActor.options({ name, maxConcurrency: 100_000 }).remote(
    settings,
    `${executorPrefix(name)}${incarnation}_`,
  );
}

function executorPrefix(workerName: string): string {
  return `${workerName}_executor_`;
}

async function killNamed(name: string): Promise<void> {
  try {
    await ray.kill(await ray.getActor(name));
  } catch {
    // It ended by itself meanwhile.
  }
}

async function kill(worker: WorkerHandle): Promise<void> {
  try {
    await ray.kill(worker);
  } catch {
    // Its session has ended, and the worker with it.
  }
}

function isDeathOfWorker(error: unknown): error is ray.ActorDiedError {
  return error instanceof ray.ActorDiedError && error.className === "RewardLoopWorker";
}
