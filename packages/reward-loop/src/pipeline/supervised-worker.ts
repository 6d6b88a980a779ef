/**
 * The place of one RewardLoopWorker in its pipeline: the present actor, and its replacement after a
 * death, until it is retired.
 *
 * A dead worker's executors are ended before its successor starts. Deaths without one result in
 * between are counted; after too many the worker is lost. The sender of a sample decides what
 * happens to it when its worker dies.
 */

import * as ray from "@rayling/core";
import type { ObjectRef } from "@rayling/core";
import { nanoid } from "nanoid";
import { RewardLoopClosedError, RewardLoopWorkerLostError } from "../errors.ts";
import { noTraits } from "../executor/score-executor.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import { sendModules } from "../settings/sent-modules.ts";
import type { RewardLoopSettings, RewardVersion } from "../settings/settings.ts";
import { PATIENT } from "../time/stuck-warning.ts";
import { DeathCount } from "../worker/death-count.ts";
import { RewardLoopWorkerActor } from "../worker/reward-loop-worker.ts";
import type { SharedLimiter } from "./shared-limiter.ts";
import type { SubmittedSample } from "./submitted-sample.ts";
import { WorkerLife } from "./worker-life.ts";
import type { WorkerHandle } from "./worker-life.ts";
import { WorkerLoad } from "./worker-load.ts";
import { endActor } from "../worker/end-actor.ts";

/** Options that all workers of a pipeline share. */
export interface WorkerOptions {
  readonly settings: RewardLoopSettings;
  /** The version of the reward function that the worker is to load. */
  readonly version: RewardVersion;
  readonly limiter: SharedLimiter | undefined;
  /** Spending has a cap: the worker asks before each call. */
  readonly asksToSpend: boolean;
  /** The thread in which it runs, with others of its pipeline. */
  readonly threadName: string;
}

export class SupervisedWorker {
  readonly name: string;
  /** The version of the reward function that its executors have loaded. */
  readonly version: string;
  /** Its samples, and the room that calls take. */
  readonly load: WorkerLoad = new WorkerLoad(() => this.#onChange());
  readonly #options: WorkerOptions;
  #worker: Promise<WorkerHandle>;
  /** The life of the settled `#worker`, unless it is being replaced or lost. */
  #life: WorkerLife | undefined;
  readonly #deaths: DeathCount = new DeathCount();
  /** "retired": it finishes what it has, and is closed then. */
  #end: "retired" | "closed" | undefined;
  #traits: ExecutorTraits = noTraits;
  #hasAnswered = false;
  #state: "alive" | "replacing" | "lost" = "alive";
  #onChange: () => void = () => undefined;

  private constructor(name: string, options: WorkerOptions) {
    this.name = name;
    this.version = options.version.version;
    this.#options = options;
    this.#worker = Promise.resolve(this.#start());
  }

  /**
   * Resolves when its executors have loaded the user's modules. Rejects with the reason why they
   * cannot, or ActorAlreadyExistsError.
   */
  static async open(name: string, options: WorkerOptions): Promise<SupervisedWorker> {
    const supervised = new SupervisedWorker(name, options);
    const worker = await supervised.#worker;
    try {
      await ray.get(worker.ready.remote());
      supervised.#traits = await ray.get(worker.traits.remote());
    } catch (error) {
      if (!(error instanceof ray.ActorAlreadyExistsError)) await supervised.close();
      throw error;
    }
    return supervised;
  }

  /** The traits of the user's functions, as known at the start and after the first answer. */
  get traits(): ExecutorTraits {
    return this.#traits;
  }

  get state(): "alive" | "replacing" | "lost" {
    // Its end is known before its cause: until then it takes no samples.
    if (this.#state === "alive" && this.#life?.isOver === true) return "replacing";
    return this.#state;
  }

  /** Why the worker is lost; rejects nowhere else than in calls. */
  get failure(): Promise<unknown> {
    return this.#worker.then(
      () => undefined,
      (error: unknown) => error,
    );
  }

  /** Sets the one listener, which is called whenever the state has changed. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Scores a sample, which takes room until its end is reported. */
  score(submitted: SubmittedSample): void {
    this.load.take(1);
    if (this.#life !== undefined && !this.#life.isOver) return this.#life.score(submitted);
    submitted.lost();
    this.load.release(1);
  }

  /** Gives up the samples there that were asked for with this signal. */
  giveUp(signal: AbortSignal): void {
    this.#life?.giveUp(signal);
  }

  /**
   * Calls the worker once, or its successor if there is none at the moment. Undefined if it died
   * during the call, or can score nothing any more.
   */
  async call<Value>(
    use: (worker: WorkerHandle) => ObjectRef<Value>,
  ): Promise<{ value: Value } | undefined> {
    const worker = await this.#worker;
    if (this.#end === "closed") throw new RewardLoopClosedError();
    try {
      const value = await ray.get(use(worker), PATIENT);
      this.#heardOf(worker);
      return { value };
    } catch (error) {
      if (!(await this.#isLost(error, worker))) throw error;
      return undefined;
    }
  }

  /** Closes the worker when all its samples are done. It gets no further samples. */
  async retire(): Promise<void> {
    this.#end ??= "retired";
    await this.load.whenIdle();
    await this.close();
  }

  async close(): Promise<void> {
    this.#end = "closed";
    const worker = await this.#worker.catch(() => undefined);
    if (!ray.isInitialized()) return;
    if (worker !== undefined) await endActor(worker);
    await endExecutors(this.name);
    await this.#options.limiter?.forget(this.name);
  }

  /**
   * Whether the worker's samples will get no outcome, as it died or can score nothing any more.
   * Rejects where the loop is closed.
   */
  async #isLost(error: unknown, worker: WorkerHandle): Promise<boolean> {
    if (this.#end === "closed") throw new RewardLoopClosedError();
    if (error instanceof ray.NotEncodableError) return false;
    if (error instanceof ray.SessionEndedError) {
      if (worker === this.#life?.worker) this.#lose(error, undefined);
      return false;
    }
    if (!isDeathOfWorker(error)) {
      if (!(await hasFailed(worker))) return false;
      if (worker === this.#life?.worker) this.#lose(error, worker);
    } else if (this.#end === "retired") {
      // A retired worker gets no successor.
      this.#become("lost");
    } else if (worker === this.#life?.worker) this.#replace(error.deathCause.message);
    return true;
  }

  #heardOf(worker: WorkerHandle): void {
    this.#deaths.reset();
    if (this.#hasAnswered) return;
    this.#hasAnswered = true;
    // A function that returns promises without being declared async is known by its first one.
    ray.get(worker.traits.remote()).then(
      (traits) => {
        this.#traits = traits;
        this.#onChange();
      },
      // The exchange reports its death.
      () => undefined,
    );
  }

  #start(): WorkerHandle {
    const { settings, version, limiter, asksToSpend, threadName } = this.#options;
    const { total } = this.#deaths;
    sendModules(settings.pipeline);
    const worker = RewardLoopWorkerActor.options({
      name: this.name,
      isolation: "shared",
      // The cause of its predecessor's end may come again, and is not to end others.
      threadName: total === 0 ? threadName : nanoid(),
      maxConcurrency: 100_000,
    }).remote(
      { ...settings, version },
      {
        executorName: `${executorPrefix(this.name)}${total}_`,
        limiter: limiter?.placeOf(this.name, total),
        asksToSpend,
      },
    );
    const reports = { pauses: settings.policy.retry !== undefined, spending: asksToSpend };
    this.#life = new WorkerLife(worker, reports, {
      version: version.version,
      overlaps: () => this.#traits.overlaps,
      heardOf: (one) => this.#heardOf(one),
      release: (samples) => this.load.release(samples),
      isLost: (error, one) => this.#isLost(error, one),
      paused: (samples, life) => {
        if (life !== this.#life) return;
        this.load.pause(samples);
        this.#onChange();
      },
    });
    return worker;
  }

  #replace(reason: string): void {
    this.#deaths.add();
    this.load.pause(0);
    this.#life = undefined;
    this.#become("replacing");
    this.#worker = this.#successor(reason);
    this.#worker.then(
      () => this.#become("alive"),
      // Calls reject with the reason.
      () => this.#become("lost"),
    );
  }

  /**
   * Its executors cannot be kept alive, as those of a successor could not; other workers go on.
   *
   * @param worker undefined where it has ended with its session
   */
  #lose(reason: unknown, worker: WorkerHandle | undefined): void {
    this.#worker = Promise.reject(reason);
    // Calls reject with the reason.
    this.#worker.catch(() => undefined);
    this.#life = undefined;
    this.#become("lost");
    if (worker !== undefined) void endActor(worker).then(() => endExecutors(this.name));
  }

  #become(state: "alive" | "replacing" | "lost"): void {
    this.#state = state;
    this.#onChange();
  }

  async #successor(reason: string): Promise<WorkerHandle> {
    if (this.#deaths.areTooMany) {
      throw new RewardLoopWorkerLostError(this.name, this.#deaths.inARow, reason);
    }
    await endExecutors(this.name);
    // Their pending calls are cut off.
    await this.#options.limiter?.forget(this.name);
    if (this.#end === "closed") throw new RewardLoopClosedError();
    return this.#start();
  }
}

function executorPrefix(workerName: string): string {
  return `${workerName}_executor_`;
}

/** Ends a worker's executors: it creates them itself, so that their handles are lost with it. */
async function endExecutors(workerName: string): Promise<void> {
  const prefix = executorPrefix(workerName);
  const named = await ray.listNamedActors();
  await Promise.all(
    named.filter(({ name }) => name.startsWith(prefix)).map(({ name }) => killNamed(name)),
  );
}

async function killNamed(name: string): Promise<void> {
  try {
    await ray.kill(await ray.getActor(name));
  } catch {
    // The actor has ended by itself.
  }
}

async function hasFailed(worker: WorkerHandle): Promise<boolean> {
  try {
    return await ray.get(worker.hasFailed.remote(), PATIENT);
  } catch {
    // The exchange reports its death.
    return false;
  }
}

function isDeathOfWorker(error: unknown): error is ray.ActorDiedError {
  return error instanceof ray.ActorDiedError && error.className === "RewardLoopWorker";
}
