/**
 * The place of one RewardLoopWorker in its pipeline: the present actor, and its replacement after a
 * death, until it is retired.
 *
 * A dead worker's executors are ended before its successor starts. Deaths without one result in
 * between are counted; after too many the worker is lost. The sender of a sample decides what
 * happens to it when its worker dies.
 */

import * as ray from "@rayling/core";
import type { ActorHandle, ObjectRef } from "@rayling/core";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { RewardLoopClosedError, RewardLoopWorkerLostError } from "../errors.ts";
import { noTraits } from "../executor/score-executor.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import { PATIENT, WHENEVER } from "../time/stuck-warning.ts";
import type { RewardLoopSettings } from "../settings/settings.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { Use } from "../spend/budget.ts";
import { Exchange } from "../travel/exchange.ts";
import type { NumberedRows } from "../travel/outbox.ts";
import { fromTables, toTables } from "../travel/table.ts";
import { RewardLoopWorkerActor } from "../worker/reward-loop-worker.ts";
import type { RewardLoopWorker, TakenOutcome } from "../worker/reward-loop-worker.ts";
import type { SharedLimiter } from "./shared-limiter.ts";

export type WorkerHandle = ActorHandle<RewardLoopWorker>;

/** A sample that a worker scores, with the callbacks for its end. */
export interface Scored {
  readonly sample: RewardSample;
  readonly lane: string;
  /** Resolves when its outcome is stored: until then it takes room. Undefined: it is not stored. */
  readonly kept: Promise<void> | undefined;
  answered(worker: SupervisedWorker, outcome: SampleOutcome): void;
  /** Resolves to whether a call of it may begin. */
  maySpend(): Promise<boolean>;
  /** A call of it is over. */
  spent(use: Use): void;
  /** Its worker died, or can score nothing any more: it has no outcome. */
  lost(): void;
  /** Called with NotEncodableError where it cannot travel; else with the errors of `call`. */
  rejected(worker: SupervisedWorker, error: unknown): void;
}

/** Options that all workers of a pipeline share. */
export interface WorkerOptions {
  readonly settings: RewardLoopSettings;
  /** The version of the reward function that the worker is to load. */
  readonly version: string;
  readonly limiter: SharedLimiter | undefined;
  /** Spending has a cap: the worker asks before each call. */
  readonly asksToSpend: boolean;
}

/** The samples of one life of the worker. */
interface Life {
  readonly exchange: Exchange<number>;
  readonly underWay: Map<number, Scored>;
  /** Samples that are sent in calls of their own. */
  readonly alone: Map<number, Scored>;
}

/** Deaths in a row without one result. As for executors (executor-pool.ts). */
const MOST_DEATHS_IN_A_ROW = 5;

export class SupervisedWorker {
  readonly name: string;
  /** The version of the reward function that its executors have loaded. */
  readonly version: string;
  readonly #settings: RewardLoopSettings;
  readonly #limiter: SharedLimiter | undefined;
  readonly #asksToSpend: boolean;
  #worker: Promise<WorkerHandle>;
  /** The settled value of `#worker`, unless it is being replaced or lost. */
  #current: WorkerHandle | undefined;
  /** Undefined while there is no worker. */
  #life: Life | undefined;
  #count = 0;
  #incarnation = 0;
  #deathsInARow = 0;
  #closed = false;
  /** Set by `retire`: called when no sample is left. */
  #onIdle: (() => void) | undefined;
  #traits: ExecutorTraits = noTraits;
  #hasAnswered = false;
  #load = 0;
  /** Samples of the load that wait for their next try. */
  #paused = 0;
  #state: "alive" | "replacing" | "lost" = "alive";
  #onChange: () => void = () => undefined;

  private constructor(name: string, { settings, version, limiter, asksToSpend }: WorkerOptions) {
    this.name = name;
    this.version = version;
    this.#settings = { ...settings, version };
    this.#limiter = limiter;
    this.#asksToSpend = asksToSpend;
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

  /**
   * The samples that were sent and not answered, except those that wait for their next try, which
   * take no slot.
   */
  get load(): number {
    return this.#load - this.#paused;
  }

  /** The load including samples that wait for their next try. */
  get held(): number {
    return this.#load;
  }

  take(samples: number): void {
    this.#load += samples;
  }

  /** Frees the room of samples, which `take` or `score` took, and tells the listener. */
  release(samples: number): void {
    this.#load -= samples;
    this.#onChange();
    if (this.#load === 0) this.#onIdle?.();
  }

  get state(): "alive" | "replacing" | "lost" {
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
  score(scored: Scored): void {
    this.take(1);
    if (this.#life === undefined) {
      scored.lost();
      return this.release(1);
    }
    this.#count += 1;
    this.#life.underWay.set(this.#count, scored);
    this.#life.exchange.push(this.#count);
  }

  /**
   * Calls the worker once, or its successor if there is none at the moment. Undefined if it died
   * during the call, or can score nothing any more.
   */
  async call<Value>(
    use: (worker: WorkerHandle) => ObjectRef<Value>,
  ): Promise<{ value: Value } | undefined> {
    const worker = await this.#worker;
    if (this.#closed) throw new RewardLoopClosedError();
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

  /**
   * Whether the worker's samples will get no outcome, as it died or can score nothing any more.
   * Rejects where the loop is closed.
   */
  async #isLost(error: unknown, worker: WorkerHandle): Promise<boolean> {
    if (this.#closed) throw new RewardLoopClosedError();
    if (error instanceof ray.NotEncodableError) return false;
    if (!isDeathOfWorker(error)) {
      if (!(await hasFailed(worker))) return false;
      if (worker === this.#current) this.#lose(worker, error);
    } else if (this.#onIdle !== undefined) {
      // A retired worker gets no successor.
      this.#become("lost");
    } else if (worker === this.#current) this.#replace(error.deathCause.message);
    return true;
  }

  #heardOf(worker: WorkerHandle): void {
    this.#deathsInARow = 0;
    if (!this.#hasAnswered) this.#learn(worker);
  }

  #lifeOf(worker: WorkerHandle): Life {
    const underWay = new Map<number, Scored>();
    const alone = new Map<number, Scored>();
    const exchange = new Exchange<number>({
      call: (ids) => {
        const given = ids.map((id) => underWay.get(id) as Scored);
        return worker.take.remote({
          ids,
          lanes: toTables(given.map(({ lane }) => ({ lane }))),
          samples: toTables(given.map(({ sample }) => sample)),
        });
      },
      alone: (id) => {
        const scored = underWay.get(id);
        if (scored === undefined || !underWay.delete(id)) return;
        alone.set(id, scored);
        void this.#scoreAlone(id, scored, worker).finally(() => alone.delete(id));
      },
      arrived: (outcomes) => this.#arrived(outcomes, worker, underWay),
      lost: (error) => {
        if (this.#life === life) this.#life = undefined;
        void this.#unanswered([...underWay.values()], error, worker);
        underWay.clear();
      },
    });
    const life = { exchange, underWay, alone };
    return life;
  }

  #arrived({ ids, rows }: NumberedRows, worker: WorkerHandle, underWay: Life["underWay"]): void {
    let answered = 0;
    for (const [at, outcome] of (fromTables(rows) as TakenOutcome[]).entries()) {
      const id = ids[at] as number;
      const scored = underWay.get(id);
      if (scored === undefined) continue;
      underWay.delete(id);
      if (outcome.valid === undefined) void this.#askWhy(id, scored, worker);
      else {
        scored.answered(this, outcome);
        const { kept } = scored;
        // A synchronous function makes no paid calls, and its thread must not wait.
        if (kept === undefined || !this.#traits.overlaps) answered += 1;
        else void kept.then(() => this.release(1));
      }
    }
    this.#heardOf(worker);
    this.release(answered);
  }

  async #askWhy(id: number, scored: Scored, worker: WorkerHandle): Promise<void> {
    try {
      await ray.get(worker.outcome.remote(id));
    } catch (error) {
      await this.#unanswered([scored], error, worker);
    }
  }

  /** Sends a sample in a call of its own, whose error names the place that cannot travel. */
  async #scoreAlone(id: number, scored: Scored, worker: WorkerHandle): Promise<void> {
    const { sample, lane } = scored;
    try {
      scored.answered(this, await ray.get(worker.computeScore.remote(sample, lane, id), PATIENT));
      this.#heardOf(worker);
      this.release(1);
    } catch (error) {
      await this.#unanswered([scored], error, worker);
    }
  }

  async #unanswered(all: readonly Scored[], error: unknown, worker: WorkerHandle): Promise<void> {
    let rejection: { readonly error: unknown } | undefined;
    try {
      if (!(await this.#isLost(error, worker))) rejection = { error };
    } catch (closed) {
      rejection = { error: closed };
    }
    for (const one of all) {
      if (rejection === undefined) one.lost();
      else one.rejected(this, rejection.error);
    }
    this.release(all.length);
  }

  #start(): WorkerHandle {
    const prefix = executorPrefix(this.name);
    const worker = RewardLoopWorkerActor.options({
      name: this.name,
      maxConcurrency: 100_000,
    }).remote(this.#settings, {
      executorName: `${prefix}${this.#incarnation}_`,
      limiter: this.#limiter?.placeOf(this.name, this.#incarnation),
      asksToSpend: this.#asksToSpend,
    });
    this.#current = worker;
    this.#life = this.#lifeOf(worker);
    if (this.#asksToSpend) void this.#followSpending(worker, this.#life);
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
      // The worker has died; its samples are told by their exchange.
    }
  }

  async #followSpending(worker: WorkerHandle, { underWay, alone }: Life): Promise<void> {
    try {
      const spending = worker.spending.remote();
      for (;;) {
        await ray.wait([spending], WHENEVER);
        const { done, value: notes } = await spending.next();
        if (done === true) return;
        for (const note of await ray.get(notes)) {
          const scored = underWay.get(note.sample) ?? alone.get(note.sample);
          if ("use" in note) scored?.spent(note.use);
          else void this.#answerSpending(worker, note.call, scored);
        }
      }
    } catch {
      // The worker has died; its samples are told by their exchange.
    }
  }

  async #answerSpending(
    worker: WorkerHandle,
    call: number,
    scored: Scored | undefined,
  ): Promise<void> {
    const isAllowed = (await scored?.maySpend()) ?? false;
    try {
      await ray.get(worker.maySpend.remote(call, isAllowed));
    } catch {
      // The worker has died, and its calls with it.
    }
  }

  #replace(reason: string): void {
    this.#incarnation += 1;
    this.#deathsInARow += 1;
    this.#paused = 0;
    this.#become("replacing");
    this.#current = undefined;
    this.#life = undefined;
    this.#worker = this.#successor(reason);
    this.#worker.then(
      () => this.#become("alive"),
      // Calls reject with the reason.
      () => this.#become("lost"),
    );
  }

  /** Its executors cannot be kept alive, as those of a successor could not; other workers go on. */
  #lose(worker: WorkerHandle, error: unknown): void {
    this.#worker = Promise.reject(error);
    // Calls reject with the reason.
    this.#worker.catch(() => undefined);
    this.#current = undefined;
    this.#life = undefined;
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
      // The exchange reports its death.
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
    // Their pending calls are cut off.
    await this.#limiter?.forget(this.name);
    if (this.#closed) throw new RewardLoopClosedError();
    return this.#start();
  }

  /**
   * Ends the worker's executors: it creates them itself, so that their handles are lost with it.
   */
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
    // The actor has ended by itself.
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
    // The exchange reports its death.
    return false;
  }
}

function isDeathOfWorker(error: unknown): error is ray.ActorDiedError {
  return error instanceof ray.ActorDiedError && error.className === "RewardLoopWorker";
}
