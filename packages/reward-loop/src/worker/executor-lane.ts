/**
 * One executor, a thread or a process, as its worker sees it: its pending runs, its deadlines, its
 * end.
 *
 * A deadline counts from the moment the user's function starts on a sample. When one has passed,
 * the executor is asked for a sign of life. If it answers, the sample waits for something and is
 * reported, and the thread goes on. If it does not, its thread is blocked: the table names the run
 * that blocks it, that sample is reported once its own deadline has passed, and the thread is
 * ended. A thread that is blocked by code which a finished sample left behind is ended, too, if the
 * pending runs do not start for so long: they run again elsewhere.
 * A thread that is exiting is not blocked: its death will be reported. The first calls of an async
 * function in a new thread load their modules: the time that they keep the thread busy does not
 * count, and a first call that blocks the thread is tried once more. All of this holds for a
 * process as well. In addition, a process may be ended by a signal of its own code or of another
 * process, so the run on its stack is tried again alone and blamed only if its process ends again.
 * A run whose result is no longer needed (the other call of a hedge, the end of the total time) is
 * late at once, with a deadline or without one. A function that reacts to the abort signal has
 * ended when the thread gives its sign of life, one that does not is forgotten and takes no room,
 * and one that blocks its thread is ended with it.
 * A lane ends once, and then reports the jobs to run again, or suspects where no culprit is known.
 */

import * as ray from "@rayling/core";
import type { ActorHandle, DeathCause, ObjectRef } from "@rayling/core";
import { BriefRuns } from "../executor/brief-runs.ts";
import type { RunTable } from "../executor/run-table.ts";
import { newRunTable } from "../executor/run-tables.ts";
import { ScoreExecutorActor } from "../executor/score-executor.ts";
import type {
  ExecutorTraits,
  ScoreExecutor,
  ScoreReply,
  SignOfLife,
} from "../executor/score-executor.ts";
import type { ScoreWork } from "../executor/score-work.ts";
import { blockedFailure, deathFailure, givenUpFailure, timeoutFailure } from "../outcome.ts";
import type { ScoreFailure } from "../outcome.ts";
import { PATIENT } from "../time/stuck-warning.ts";
import type { ExecutorSettings } from "../settings/settings.ts";
import type { TokenUsage } from "../outcome.ts";
import { Exchange } from "../travel/exchange.ts";
import type { ExchangeOwner } from "../travel/exchange.ts";
import { fromTables, toTables } from "../travel/table.ts";
import { originOf } from "./death-origin.ts";
import { isReply, settleByReply, settleGivenUp, settleInvalid } from "./job.ts";
import type { Job } from "./job.ts";
import { readyOf } from "./slots.ts";

/**
 * The time for a thread's sign of life before it counts as blocked. Only after a deadline, so a
 * wrong guess costs reruns, never an outcome.
 */
const SIGN_OF_LIFE_MS = 50;

/**
 * How long a thread may be blocked by a run whose result is no longer needed. Most runs end by
 * then, and starting a thread takes a tenth of that; other runs of the thread are run again.
 */
const GIVEN_UP_MS = 1_000;

/**
 * How long the first calls of an async function may keep a new thread busy beyond their deadline
 * while they load modules (fetch takes a tenth of that in an idle thread).
 */
const LOADING_MS = 1_000;

/**
 * How long a thread may take to end by itself (its exit handlers, a busy machine) before it counts
 * as blocked.
 */
const EXIT_MS = 5_000;

/**
 * A synchronous function works on one sample at a time; the next one stands ready in its thread
 * (twice the throughput of none, measured). While its runs are brief more stand ready.
 */
const SYNC_IN_FLIGHT = 2;

/** The state that a lane leaves when it has ended. */
export interface LaneEnd {
  /** `start-failed` is for good: the module itself does not load. */
  readonly kind: "died" | "stopped" | "start-failed" | "start-timeout";
  readonly cause: DeathCause | undefined;
  readonly error: unknown;
  /** Whether a sample was found guilty of it. */
  readonly blamed: boolean;
  readonly again: readonly Job[];
  /** Jobs of which one ended or blocked the thread. */
  readonly suspects: readonly Job[];
}

export interface LaneOwner {
  /** Called when there may be room. */
  changed(): void;
  ended(lane: ExecutorLane, end: LaneEnd): void;
}

interface Flight {
  readonly id: number;
  readonly slot: number;
  readonly job: Job;
  readonly sentAt: number;
  /** The listener on the job's signal, if it has one. */
  giveUp: (() => void) | undefined;
  /** The result is no longer needed. */
  isGivenUp: boolean;
  /** The run did not end at a sign of life after its deadline. */
  isEndless: boolean;
  /** The thread was new when it was sent: it may load modules. */
  readonly isFirst: boolean;
  /**
   * How long a first run's thread was busy with loading, which does not count. Undefined: not known
   * yet.
   */
  loadingMs: number | undefined;
  /** The usage of its answers, as far as it is known before the reply. */
  used: TokenUsage | undefined;
}

/** A flight of a sample, which is sent with others; other work is sent alone. */
type SampleFlight = Flight & {
  readonly job: { readonly work: Extract<ScoreWork, { kind: "sample" }> };
};

export class ExecutorLane {
  readonly #settings: ExecutorSettings;
  /** Samples that stand ready in there, behind those at work. */
  readonly #ready: number;
  readonly #owner: LaneOwner;
  readonly #actor: ActorHandle<ScoreExecutor>;
  readonly #exchange: Exchange<SampleFlight>;
  readonly #table: RunTable;
  readonly #freeSlots: number[];
  readonly #flights: Map<number, Flight> = new Map();
  /** Runs that were reported as timed out and still wait for something in there. */
  readonly #overdue: Map<number, Flight> = new Map();
  #overlaps = false;
  /** How long its runs took of late. */
  readonly #brief: BriefRuns = new BriefRuns();
  #traits: ExecutorTraits | undefined;
  /** The version of the loaded reward function, if it is not the loop's. */
  #otherVersion: string | undefined;
  #runs = 0;
  /** The thread is new: its first calls may load modules. */
  #isCold = true;
  #state: "starting" | "ready" | "ended" = "starting";
  #timer: NodeJS.Timeout | undefined;
  /** When a pending sign of life was requested. */
  #askedAt: number | undefined;
  /** When a pending run was last seen to block the thread. */
  #blockedAt = 0;
  /** How often it was looked at since then, while its thread was exiting. */
  #looks = 0;
  /** When the thread was last known to be alive, by a reply or by a sign of life. */
  #heardAt = 0;

  constructor(settings: ExecutorSettings, name: string, owner: LaneOwner) {
    this.#settings = settings;
    this.#ready = readyOf(settings);
    this.#owner = owner;
    // Twice the concurrency: a run that is overdue keeps its slot until it ends.
    const { isolation, resourceLimits, concurrency } = settings;
    this.#table = newRunTable(isolation, 2 * concurrency + this.#ready);
    this.#freeSlots = Array.from({ length: this.#table.slots }, (_, slot) => slot);
    this.#actor = ScoreExecutorActor.options({
      name,
      isolation,
      // The worker reads the executor's table: both must be on this machine.
      schedulingStrategy: {
        kind: "NODE_AFFINITY",
        nodeId: ray.getRuntimeContext().getNodeId(),
      },
      maxConcurrency: this.#table.slots + 8,
      ...(resourceLimits === undefined ? {} : { runtimeEnv: { resourceLimits } }),
    }).remote(settings.pipeline, this.#table.place, concurrency);
    this.#exchange = new Exchange(this.#exchanged());
    void this.#start();
  }

  get load(): number {
    return this.#flights.size;
  }

  get isReady(): boolean {
    return this.#state === "ready";
  }

  /** Whether samples overlap in there, as far as is known. */
  get overlaps(): boolean {
    return this.#overlaps;
  }

  /** The traits, known when it is ready. */
  get traits(): ExecutorTraits | undefined {
    return this.#traits;
  }

  /** Whether this thread has never run a job. */
  get isFresh(): boolean {
    return this.#runs === 0;
  }

  /** Whether no run that was given up is still going on. */
  get isClean(): boolean {
    return this.#overdue.size === 0;
  }

  /** Whether the lane is worn out and empty. */
  get isSpent(): boolean {
    return this.#isWornOut && this.#flights.size === 0;
  }

  get hasRoom(): boolean {
    const { concurrency } = this.#settings;
    const sync = Math.min(concurrency, this.#brief.inFlight(SYNC_IN_FLIGHT));
    const most = this.#overlaps ? concurrency + this.#ready : sync;
    const hasSlot = this.#freeSlots.length > 0;
    return this.isReady && hasSlot && !this.#isWornOut && this.#flights.size < most;
  }

  run(job: Job): void {
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new Error("an executor was given more samples than it has slots");
    this.#table.clear(slot);
    job.lane = this;
    job.version = this.#otherVersion;
    this.#runs += 1;
    const id = this.#runs;
    const flight: Flight = {
      id,
      slot,
      job,
      sentAt: performance.now(),
      giveUp: undefined,
      isGivenUp: false,
      isEndless: false,
      isFirst: this.#isCold,
      loadingMs: undefined,
      used: undefined,
    };
    this.#flights.set(id, flight);
    job.ageMs = () => (this.#flights.has(id) ? this.#table.ageMs(slot) : undefined);
    if (job.signal !== undefined) {
      flight.giveUp = () => this.#giveUp(flight);
      job.signal.addEventListener("abort", flight.giveUp, { once: true });
    }
    this.#watch();
    if (isSample(flight)) this.#exchange.push(flight);
    else this.#alone(flight);
  }

  /** Ends the thread; what is in flight is left for others. */
  stop(): Promise<void> {
    return this.#end("stopped", undefined, false);
  }

  /** Whether endless runs hold so many slots and so much memory that a new thread is better. */
  get #isWornOut(): boolean {
    const endless = [...this.#overdue.values()].filter(({ isEndless }) => isEndless);
    const isFull = this.#flights.size === 0 && this.#freeSlots.length === 0;
    return isFull || endless.length >= this.#settings.concurrency;
  }

  async #start(): Promise<void> {
    try {
      const { startTimeoutMs: timeoutMs } = this.#settings;
      const { version, ...traits } = await ray.get(this.#actor.ready.remote(), { timeoutMs });
      if (this.#state !== "starting") return;
      this.#traits = traits;
      if (version !== this.#settings.version) this.#otherVersion = version;
      this.#overlaps = traits.overlaps;
      this.#state = "ready";
      this.#owner.changed();
    } catch (error) {
      const cause = deathCauseOf(error);
      if (cause !== undefined) return this.#died(cause);
      const kind = error instanceof ray.GetTimeoutError ? "start-timeout" : "start-failed";
      await this.#end(kind, error, false);
    }
  }

  #exchanged(): ExchangeOwner<SampleFlight> {
    return {
      call: (flights) =>
        this.#actor.take.remote({
          ids: flights.map(({ id }) => id),
          slots: flights.map(({ slot }) => slot),
          first: flights.filter(({ job }) => job.isSecond).map(({ id }) => id),
          samples: toTables(flights.map(({ job }) => job.work.sample)),
        }),
      alone: (flight) => this.#alone(flight),
      arrived: ({ ids, rows }) => {
        const replies = fromTables(rows) as ScoreReply[];
        for (const [at, reply] of replies.entries()) this.#arrived(ids[at] as number, reply);
      },
      lost: (error) => {
        const cause = deathCauseOf(error);
        if (cause !== undefined) return this.#died(cause);
        // No death, and nothing is heard of it any more.
        const flights = [...this.#flights.values()];
        this.#flights.clear();
        void this.stop();
        for (const flight of flights) {
          const { job } = flight;
          unheard(flight);
          settleByReply(job, error, flight.used);
          job.over();
        }
      },
    };
  }

  #arrived(id: number, reply: ScoreReply): void {
    const flight = this.#flights.get(id) ?? this.#overdue.get(id);
    if (flight === undefined) return;
    flight.used = reply.used;
    if (reply.ok === undefined) void this.#fly(flight, () => this.#actor.reply.remote(id));
    else this.#landed(flight, reply);
  }

  #alone(flight: Flight): void {
    const { id, slot, job } = flight;
    void this.#fly(flight, () => this.#actor.run.remote(id, slot, job.work));
  }

  /** Makes a call for a single flight. */
  async #fly(flight: Flight, call: () => ObjectRef<ScoreReply | undefined>): Promise<void> {
    try {
      this.#landed(flight, await ray.get(call(), PATIENT));
    } catch (error) {
      const cause = deathCauseOf(error);
      if (cause !== undefined) this.#died(cause);
      else this.#landed(flight, error);
    }
  }

  #landed(flight: Flight, reply: unknown): void {
    if (this.#state === "ended") return;
    const { id, slot, job } = flight;
    this.#heardAt = performance.now();
    this.#freeSlots.push(slot);
    job.lane = undefined;
    unheard(flight);
    this.#isCold = false;
    if (this.#flights.delete(id)) {
      this.#stoodReady(flight, isReply(reply) ? reply.latencyMs : 0);
      settleByReply(job, reply, flight.used);
    } else this.#overdue.delete(id);
    job.over();
    if (isReply(reply)) {
      this.#overlaps ||= reply.overlaps;
      this.#brief.ended(reply.latencyMs);
    }
    this.#owner.changed();
  }

  /** Records how long the job was in the executor before it ran. */
  #stoodReady({ job, sentAt }: Flight, workedMs: number): void {
    const isInLine = this.#ready > 0 && job.work.kind === "sample";
    if (isInLine) job.readyMs = Math.max(0, performance.now() - sentAt - workedMs);
  }

  /** Aborts the run's signal. */
  #abort({ id }: Flight): void {
    void this.#actor.abort.remote(id);
  }

  #giveUp(flight: Flight): void {
    flight.isGivenUp = true;
    this.#abort(flight);
    if (this.#state === "ended") return;
    if (isSample(flight) && !this.#table.hasStarted(flight.slot)) return this.#dropUnbegun(flight);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#check();
  }

  /** Drops a run that has not begun; if it has begun meanwhile, its result is ignored. */
  #dropUnbegun(flight: SampleFlight): void {
    this.#flights.delete(flight.id);
    this.#overdue.set(flight.id, flight);
    this.#stoodReady(flight, 0);
    settleGivenUp(flight.job);
    this.#owner.changed();
  }

  #watch(inMs: number | undefined = this.#settings.timeoutMs): void {
    if (inMs === undefined || this.#state === "ended") return;
    // A function that has not started yet has at least a whole timeout from now on.
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#check();
    }, inMs);
  }

  #check(): void {
    const { timeoutMs = Infinity } = this.#settings;
    const lateInMs = Math.min(
      ...[...this.#flights.values()].map((flight) => this.#lateInMs(flight, timeoutMs)),
    );
    if (lateInMs === Infinity) return;
    if (lateInMs > 0) return this.#watch(lateInMs);
    if (this.#askedAt === undefined) void this.#askForLife(timeoutMs);
    else if (performance.now() - this.#askedAt >= SIGN_OF_LIFE_MS) this.#whileBlocked(timeoutMs);
    this.#watch(SIGN_OF_LIFE_MS);
  }

  #lateInMs(flight: Flight, timeoutMs: number): number {
    if (flight.isGivenUp) return 0;
    // A run that has not started waits for nothing but its thread.
    const waitedMs = performance.now() - Math.max(flight.sentAt, this.#heardAt);
    return timeoutMs - (this.#ageOf(flight) ?? waitedMs);
  }

  /** Returns the time since its function started, without the thread's loading time. */
  #ageOf({ slot, loadingMs }: Flight): number | undefined {
    const ageMs = this.#table.ageMs(slot);
    return ageMs === undefined ? undefined : ageMs - (loadingMs ?? 0);
  }

  async #askForLife(timeoutMs: number): Promise<void> {
    this.#askedAt = performance.now();
    this.#looks = 0;
    const givenUp = [...this.#flights.values()].filter((flight) => flight.isGivenUp);
    let sign: SignOfLife;
    try {
      sign = await ray.get(this.#actor.breathe.remote());
    } catch {
      // The pending runs get the actor's death.
      return;
    }
    this.#askedAt = undefined;
    this.#heardAt = performance.now();
    if (this.#state === "ended") return;
    const { done } = sign;
    for (const [id, used] of sign.used) {
      const flight = this.#flights.get(id);
      if (flight !== undefined) flight.used = used;
    }
    if (this.#overlaps) this.#loaded(sign.busyMs);
    for (const flight of this.#overdue.values()) {
      // The run began although it had been given up.
      flight.isEndless ||= this.#table.hasStarted(flight.slot) && !done.includes(flight.id);
    }
    // The thread is alive and has processed every received message: a run that is late now waits
    // for something, or shared the thread with others that kept it busy.
    for (const flight of this.#flights.values()) {
      // Its result waits there for a call that is on its way: it is this side that is late.
      if (done.includes(flight.id)) continue;
      const ageMs = this.#ageOf(flight) ?? 0;
      if (ageMs >= timeoutMs) this.#forget(flight, timeoutFailure(timeoutMs), ageMs);
      // A run that was given up since then may not have received its abort.
      else if (givenUp.includes(flight)) this.#forget(flight, givenUpFailure, ageMs);
    }
    this.#owner.changed();
    // Runs that were given up meanwhile keep their room only until the next sign of life.
    if ([...this.#flights.values()].some((flight) => flight.isGivenUp)) this.#check();
  }

  /** Loading time of the thread does not count for its first samples. */
  #loaded(busyMs: number): void {
    for (const flight of this.#flights.values()) {
      if (!flight.isFirst) continue;
      flight.loadingMs ??= Math.min(busyMs, this.#table.ageMs(flight.slot) ?? 0);
    }
  }

  #forget(flight: Flight, failure: ScoreFailure, ageMs: number): void {
    flight.isEndless = true;
    this.#flights.delete(flight.id);
    this.#overdue.set(flight.id, flight);
    this.#stoodReady(flight, ageMs);
    settleInvalid(flight.job, failure, ageMs, flight);
    this.#abort(flight);
  }

  #whileBlocked(timeoutMs: number): void {
    const { runningId, isExiting } = this.#table;
    // The death report names the culprit. The number of looks is limited, not the time: after a
    // pause of the whole machine the report arrives before the next look.
    if (isExiting && ++this.#looks * SIGN_OF_LIFE_MS < EXIT_MS) return;
    const running = this.#flights.get(runningId);
    const ageMs = running && this.#ageOf(running);
    if (running !== undefined && ageMs !== undefined) {
      this.#blockedAt = performance.now();
      const blockedMs = performance.now() - (this.#askedAt ?? 0);
      const mayLoad = running.isFirst && this.#overlaps && !running.isGivenUp;
      if (mayLoad && blockedMs < LOADING_MS) return;
      // Blocked by one whose own deadline has not come yet: it will.
      if (ageMs >= timeoutMs && mayLoad && !running.job.isSecondStart) {
        // The machine may have been suspended before the run did anything. Other runs of the thread
        // run again, too.
        running.job.isSecondStart = true;
        void this.#end("stopped", undefined, false);
      } else if (ageMs >= timeoutMs) this.#endBy(running, blockedFailure(timeoutMs), ageMs);
      else if (running.isGivenUp && blockedMs >= GIVEN_UP_MS) {
        this.#endBy(running, { ...givenUpFailure, blocked: true }, ageMs);
      }
      return;
    }
    if (this.#overdue.has(runningId)) {
      // A run that was already reported blocks it: the others are innocent.
      return void this.#end("stopped", undefined, true);
    }
    // The thread is blocked by unknown code. A whole timeout of that is too much. A run that has
    // blocked it and has ended since then is none of that: its sign of life is on its way.
    const knownAt = Math.max(this.#askedAt ?? 0, this.#heardAt, this.#blockedAt);
    if (performance.now() - knownAt < timeoutMs) return;
    // A finished run left blocking code behind: the others are innocent.
    if (runningId !== 0) return void this.#end("stopped", undefined, true);
    const [only] = this.#flights.values();
    if (only !== undefined && this.#runs === 1) {
      return this.#endBy(only, blockedFailure(timeoutMs), this.#table.ageMs(only.slot) ?? 0);
    }
    void this.#end("stopped", undefined, false, everyone);
  }

  #endBy(culprit: Flight, failure: ScoreFailure, ageMs: number): void {
    this.#settleCulprit(culprit, failure, ageMs);
    void this.#end("stopped", undefined, true);
  }

  /** Settles the run that ended its thread. */
  #settleCulprit(culprit: Flight, failure: ScoreFailure, ageMs: number): void {
    this.#flights.delete(culprit.id);
    this.#overdue.set(culprit.id, culprit);
    this.#stoodReady(culprit, ageMs);
    settleInvalid(culprit.job, failure, ageMs, culprit);
  }

  #died(cause: DeathCause): void {
    if (this.#state === "ended") return;
    const origin = originOf(cause);
    if (origin === "outside") return void this.#end("died", cause, false);
    const { runningId } = this.#table;
    if (this.#overdue.has(runningId)) return void this.#end("died", cause, true);
    const [only] = this.#flights.values();
    const running = this.#flights.get(runningId) ?? (this.#runs === 1 ? only : undefined);
    if (running === undefined) return void this.#end("died", cause, false, everyone);
    if (origin === "unclear" && running.job.place !== "fresh") {
      return void this.#end("died", cause, false, ({ id }) => id === running.id);
    }
    const ageMs = this.#table.ageMs(running.slot) ?? 0;
    this.#settleCulprit(running, deathFailure(cause), ageMs);
    void this.#end("died", cause, true);
  }

  /**
   * Ends the lane; its remaining jobs run elsewhere once the thread is gone, never at the same
   * time.
   *
   * @param isSuspect selects started runs that are to be tried one by one
   */
  async #end(
    kind: LaneEnd["kind"],
    reason: unknown,
    blamed: boolean,
    isSuspect: (flight: Flight) => boolean = nobody,
  ): Promise<void> {
    if (this.#state === "ended") return;
    this.#state = "ended";
    clearTimeout(this.#timer);
    const again: Job[] = [];
    const suspects: Job[] = [];
    const flights = [...this.#flights.values()];
    const overdue = [...this.#overdue.values()];
    for (const flight of [...flights, ...overdue]) {
      flight.job.lane = undefined;
      unheard(flight);
    }
    for (const flight of flights) {
      const { job } = flight;
      const hadStarted = this.#table.hasStarted(flight.slot);
      if (hadStarted) {
        job.attempts += 1;
        job.isToAsk = true;
      }
      (hadStarted && isSuspect(flight) ? suspects : again).push(job);
    }
    this.#table.close();
    this.#flights.clear();
    this.#overdue.clear();
    const cause = kind === "died" ? (reason as DeathCause) : undefined;
    const error = kind === "died" ? undefined : reason;
    if (kind !== "died") await this.#kill();
    for (const { job } of overdue) job.over();
    this.#owner.ended(this, { kind, cause, error, blamed, again, suspects });
  }

  async #kill(): Promise<void> {
    try {
      await ray.kill(this.#actor);
    } catch {
      // Gone already, or its session is.
    }
  }
}

/** Its signal says nothing to it any more. */
function unheard({ job, giveUp }: Flight): void {
  if (giveUp !== undefined) job.signal?.removeEventListener("abort", giveUp);
}

function isSample(flight: Flight): flight is SampleFlight {
  return flight.job.work.kind === "sample";
}

const everyone = (): boolean => true;
const nobody = (): boolean => false;

function deathCauseOf(error: unknown): DeathCause | undefined {
  return error instanceof ray.ActorDiedError ? error.deathCause : undefined;
}
