/**
 * The place of one RewardLoopWorker in its pipeline: the actor that sits there now, and its replacement when that dies, until it is retired.
 *
 * A dead worker's executors are ended before its successor starts. Deaths without one result in between are counted; after too many the
 * seat is lost. What was in flight when a worker died is the business of whoever sent it.
 */

import * as ray from "@rayling/core";
import type { ActorHandle, ObjectRef } from "@rayling/core";
import { RewardLoopClosedError, RewardLoopWorkerLostError } from "../errors.ts";
import { noTraits } from "../executor/score-executor.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import { PATIENT, WHENEVER } from "../patience.ts";
import type { RewardLoopSettings } from "../settings.ts";
import { RewardLoopWorkerActor } from "../worker/reward-loop-worker.ts";
import type { RewardLoopWorker } from "../worker/reward-loop-worker.ts";
import type { SharedLimiter } from "./shared-limiter.ts";

export type WorkerHandle = ActorHandle<RewardLoopWorker>;

/** Deaths in a row without one result. As for executors (executor-pool.ts). */
const MOST_DEATHS_IN_A_ROW = 5;

export class WorkerSeat {
  readonly name: string;
  /** Of the reward function that its executors have loaded. */
  readonly version: string;
  readonly #settings: RewardLoopSettings;
  readonly #limiter: SharedLimiter | undefined;
  #worker: Promise<WorkerHandle>;
  #incarnation = 0;
  #deathsInARow = 0;
  #closed = false;
  /** There once it is to leave: called when it has nothing to do any more. */
  #onIdle: (() => void) | undefined;
  #traits: ExecutorTraits = noTraits;
  #hasAnswered = false;
  #load = 0;
  /** Of those, who wait for their next try. */
  #paused = 0;
  #state: "alive" | "replacing" | "lost" = "alive";
  #onChange: () => void = () => undefined;

  private constructor(
    name: string,
    settings: RewardLoopSettings,
    limiter: SharedLimiter | undefined,
    version: string,
  ) {
    this.name = name;
    this.version = version;
    this.#settings = settings;
    this.#limiter = limiter;
    this.#worker = Promise.resolve(this.#start());
  }

  /** Resolves when its executors have loaded the user's modules. Rejects with why they cannot, or ActorAlreadyExistsError. */
  static async open(
    name: string,
    settings: RewardLoopSettings,
    limiter: SharedLimiter | undefined,
    version: string,
  ): Promise<WorkerSeat> {
    const seat = new WorkerSeat(name, settings, limiter, version);
    const worker = await seat.#worker;
    try {
      await ray.get(worker.ready.remote());
      seat.#traits = await ray.get(worker.traits.remote());
    } catch (error) {
      if (!(error instanceof ray.ActorAlreadyExistsError)) await seat.close();
      throw error;
    }
    return seat;
  }

  /** What the user's functions do: what was known at its start and after its first answer. */
  get traits(): ExecutorTraits {
    return this.#traits;
  }

  /** Samples that were sent there, not answered, and do not wait for their next try: those take no slot. */
  get load(): number {
    return this.#load - this.#paused;
  }

  /** With those. */
  get held(): number {
    return this.#load;
  }

  take(samples: number): void {
    this.#load += samples;
  }

  /** Whoever waits for room hears of it, whoever took it. */
  release(samples: number): void {
    this.#load -= samples;
    this.#onChange();
    if (this.#load === 0) this.#onIdle?.();
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

  /** Calls the worker once, or its successor if there is none at the moment. Undefined if it died over it, or can score nothing any more. */
  async call<Value>(
    use: (worker: WorkerHandle) => ObjectRef<Value>,
  ): Promise<{ value: Value } | undefined> {
    const current = this.#worker;
    const worker = await current;
    if (this.#closed) throw new RewardLoopClosedError();
    try {
      const value = await ray.get(use(worker), PATIENT);
      this.#deathsInARow = 0;
      if (!this.#hasAnswered) this.#learn(worker);
      return { value };
    } catch (error) {
      if (this.#closed) throw new RewardLoopClosedError();
      if (!isDeathOfWorker(error)) {
        if (!(await hasFailed(worker))) throw error;
        if (current === this.#worker) this.#lose(worker, error);
        return undefined;
      }
      // One that is to leave has no successor.
      if (this.#onIdle !== undefined) this.#become("lost");
      else if (current === this.#worker) this.#replace(error.deathCause.message);
      return undefined;
    }
  }

  /** Closes it when all that it was given is done. Nobody gives it anything more. */
  async retire(): Promise<void> {
    const idle = Promise.withResolvers<void>();
    this.#onIdle = idle.resolve;
    if (this.#load === 0) idle.resolve();
    await idle.promise;
    await this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = await this.#worker.catch(() => undefined);
    if (!ray.isInitialized()) return;
    if (worker !== undefined) await kill(worker);
    await this.#endExecutors();
    await this.#limiter?.forget(this.name);
  }

  #start(): WorkerHandle {
    const prefix = executorPrefix(this.name);
    const worker = RewardLoopWorkerActor.options({
      name: this.name,
      maxConcurrency: 100_000,
    }).remote(this.#settings, {
      executorName: `${prefix}${this.#incarnation}_`,
      limiter: this.#limiter?.placeOf(this.name, this.#incarnation),
    });
    if (this.#settings.policy.retry !== undefined) void this.#followPauses(worker);
    return worker;
  }

  async #followPauses(worker: WorkerHandle): Promise<void> {
    const life = this.#incarnation;
    try {
      const pauses = worker.pauses.remote();
      for (;;) {
        await ray.wait([pauses], WHENEVER);
        const { done, value: paused } = await pauses.next();
        if (done === true) return;
        const count = await ray.get(paused);
        if (life !== this.#incarnation) return;
        this.#paused = count;
        this.#onChange();
      }
    } catch {
      // It is gone; whoever has samples there hears of it.
    }
  }

  #replace(reason: string): void {
    this.#incarnation += 1;
    this.#deathsInARow += 1;
    this.#paused = 0;
    this.#become("replacing");
    this.#worker = this.#successor(reason);
    this.#worker.then(
      () => this.#become("alive"),
      // Whoever calls hears why.
      () => this.#become("lost"),
    );
  }

  /** Its executors cannot be kept alive, as those of a successor could not; other workers go on. */
  #lose(worker: WorkerHandle, error: unknown): void {
    this.#worker = Promise.reject(error);
    // Whoever calls hears why.
    this.#worker.catch(() => undefined);
    this.#become("lost");
    void kill(worker).then(() => this.#endExecutors());
  }

  /** A function that returns promises without being declared async is known by its first one. */
  #learn(worker: WorkerHandle): void {
    this.#hasAnswered = true;
    ray.get(worker.traits.remote()).then(
      (traits) => {
        this.#traits = traits;
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
    // What they had under way is cut off.
    await this.#limiter?.forget(this.name);
    if (this.#closed) throw new RewardLoopClosedError();
    return this.#start();
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

async function hasFailed(worker: WorkerHandle): Promise<boolean> {
  try {
    return await ray.get(worker.hasFailed.remote(), PATIENT);
  } catch {
    // Its death is told to whoever has samples there.
    return false;
  }
}

function isDeathOfWorker(error: unknown): error is ray.ActorDiedError {
  return error instanceof ray.ActorDiedError && error.className === "RewardLoopWorker";
}
