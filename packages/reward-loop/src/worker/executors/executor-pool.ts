/**
 * The executors of one worker: gives each waiting sample to the one with the least load, replaces
 * those that end, and tries suspects alone.
 *
 * Invariants: every job settles exactly once; a job that was pending in an executor that ended goes
 * first when it runs again; an executor that ends without a culprit counts, and after too many in a
 * row without one outcome all waiting jobs are rejected. An executor that cannot load modules which
 * others have loaded (they are being written, the machine is busy) is started again after a pause.
 */

import { ExecutorStartError, RewardLoopClosedError } from "../../errors.ts";
import type { AnnouncedLimits } from "../../faults/rate-limit-headers.ts";
import type { AttemptOutcome } from "../../outcome.ts";
import { noTraits } from "../../executor/score-executor.ts";
import type { ExecutorTraits } from "../../executor/score-executor.ts";
import type { ScoreWork } from "../../executor/score-work.ts";
import type { ExecutorSettings } from "../../settings/settings.ts";
import { ExecutorLane } from "./executor-lane.ts";
import type { LaneEnd } from "./executor-lane.ts";
import { giveUp, isBeside } from "./job.ts";
import type { Job } from "./job.ts";

/**
 * Ends in a row without one outcome. Five, as Erlang's supervisors allow a handful: the next start
 * would very likely end alike.
 */
const MOST_ENDS_IN_A_ROW = 5;

/** Failed starts after a first success: three quarters of a minute in all, to mend a module in. */
const MOST_FAILED_STARTS = 8;
const restartMs = { first: 500, longest: 16_000 };

export interface SubmitOptions {
  /** Aborted when the result is no longer needed. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called when it has its outcome and its endpoint has announced its limits, before the promise
   * resolves.
   */
  readonly settled?: (outcome: AttemptOutcome, announced?: AnnouncedLimits) => void;
  /**
   * Called when it was begun and lost its executor; it begins anew when this resolves. If it
   * rejects, so does the sample, or it is given up where the signal is aborted. Default: at once.
   */
  readonly beforeAgain?: () => Promise<void>;
  /**
   * All concurrent calls of a sample, one shared list: they go to different executors, if there are
   * several.
   */
  readonly pair?: Job[] | undefined;
  /**
   * Called when no code of it runs any more: a function that was given up may go on after its
   * outcome.
   */
  readonly over?: () => void;
}

export class ExecutorPool {
  readonly #settings: ExecutorSettings;
  readonly #nameOf: (count: number) => string;
  readonly #lanes: Set<ExecutorLane> = new Set();
  /** Runs suspects, one at a time. There only while there are some. */
  #quarantine: ExecutorLane | undefined;
  #traits: ExecutorTraits = noTraits;
  #waiting: Job[] = [];
  #suspects: Job[] = [];
  /** Jobs that wait for `beforeAgain`. */
  readonly #asking: Set<Job> = new Set();
  #laneCount = 0;
  /** Loading. */
  readonly #starting: Set<ExecutorLane> = new Set();
  #hasLoaded = false;
  #failedStarts = 0;
  /** Set until executors are started again. */
  #pause: NodeJS.Timeout | undefined;
  #endsInARow = 0;
  #failure: { readonly error: unknown } | undefined;
  readonly #ready = Promise.withResolvers<void>();

  /** @param nameOf the name of the n-th executor, from 0 */
  constructor(settings: ExecutorSettings, nameOf: (count: number) => string) {
    this.#settings = settings;
    this.#nameOf = nameOf;
    // Callers of ready() get the rejection.
    this.#ready.promise.catch(() => undefined);
    for (let index = 0; index < settings.executors; index++) this.#lanes.add(this.#newLane());
  }

  /** Resolves when every executor has loaded the user's modules; rejects with why one cannot. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /**
   * Whether the score function lets samples overlap: known for async functions, learned from the
   * first promise of others.
   */
  get overlaps(): boolean {
    return [...this.#lanes].some((lane) => lane.overlaps);
  }

  /** Other traits of the user's functions; known when the pool is ready. */
  get traits(): ExecutorTraits {
    const known = [...this.#lanes].find((lane) => lane.traits !== undefined)?.traits;
    this.#traits = known ?? this.#traits;
    return { ...this.#traits, overlaps: this.overlaps };
  }

  /** Rejects only if no executor can be kept alive. */
  submit(
    work: ScoreWork,
    { signal, settled = ignore, beforeAgain, pair, over = ignore }: SubmitOptions = {},
  ): Promise<AttemptOutcome> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure.error);
        return over();
      }
      const settle = (outcome: AttemptOutcome, announced?: AnnouncedLimits): void => {
        this.#endsInARow = 0;
        settled(outcome, announced);
        resolve(outcome);
      };
      const job: Job = {
        work,
        attempts: 0,
        ageMs: notAtWork,
        readyMs: 0,
        version: undefined,
        isToAsk: false,
        isSecondStart: false,
        beforeAgain,
        place: "shared",
        lane: undefined,
        pair,
        isSecond: pair !== undefined && pair.length > 0,
        settle,
        reject,
        over,
        signal,
      };
      pair?.push(job);
      this.#waiting.push(job);
      this.#pump();
    });
  }

  async close(): Promise<void> {
    this.#fail(new RewardLoopClosedError());
    const lanes = [...this.#lanes, ...(this.#quarantine === undefined ? [] : [this.#quarantine])];
    await Promise.all(lanes.map((lane) => lane.stop()));
  }

  /** Whether nothing can be scored any more. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  #newLane(): ExecutorLane {
    const lane = new ExecutorLane(this.#settings, this.#nameOf(this.#laneCount++), {
      changed: () => this.#changed(),
      ended: (ended, end) => this.#ended(ended, end),
    });
    this.#starting.add(lane);
    return lane;
  }

  #changed(): void {
    for (const lane of this.#starting) {
      if (!lane.isReady) continue;
      this.#starting.delete(lane);
      this.#hasLoaded = true;
      this.#failedStarts = 0;
    }
    if ([...this.#lanes].every((lane) => lane.isReady)) this.#ready.resolve();
    this.#replaceWornOut();
    this.#pump();
    this.#pumpSuspects();
  }

  #replaceWornOut(): void {
    for (const lane of this.#lanes) if (lane.isSpent) void lane.stop();
  }

  #pump(): void {
    while (this.#waiting.length > 0 && leastLoaded(this.#lanes) !== undefined) {
      // The first, unless it waits for another executor than that of its other call.
      const at = this.#waiting.findIndex((one) => this.#isFor(one));
      const [job] = at === -1 ? [] : this.#waiting.splice(at, 1);
      if (job === undefined) return;
      if (job.signal?.aborted === true) giveUp(job);
      else this.#laneFor(job)?.run(job);
    }
  }

  #isFor(job: Job): boolean {
    return job.signal?.aborted === true || this.#laneFor(job) !== undefined;
  }

  #laneFor(job: Job): ExecutorLane | undefined {
    // With one executor both calls are in it.
    if (job.pair === undefined || this.#settings.executors === 1) return leastLoaded(this.#lanes);
    return leastLoaded([...this.#lanes].filter((lane) => !isBeside(job, lane)));
  }

  #pumpSuspects(): void {
    if (this.#pause !== undefined) return;
    if (this.#quarantine !== undefined && this.#quarantine.load > 0) return;
    const [suspect] = this.#suspects;
    if (suspect === undefined) {
      void this.#dropQuarantine();
      return;
    }
    const { isFresh = true, isClean = true } = this.#quarantine ?? {};
    if (!isClean || (suspect.place === "fresh" && !isFresh)) void this.#dropQuarantine();
    this.#quarantine ??= this.#newLane();
    if (!this.#quarantine.hasRoom) return;
    this.#suspects.shift();
    this.#quarantine.run(suspect);
  }

  async #dropQuarantine(): Promise<void> {
    const lane = this.#quarantine;
    this.#quarantine = undefined;
    await lane?.stop();
  }

  #ended(lane: ExecutorLane, end: LaneEnd): void {
    const wasQuarantine = this.#quarantine === lane;
    const wasPooled = this.#lanes.delete(lane);
    this.#starting.delete(lane);
    if (wasQuarantine) this.#quarantine = undefined;
    for (const job of end.suspects) job.place = job.place === "shared" ? "alone" : "fresh";
    const again = this.#askFor(end.again);
    this.#suspects.push(...this.#askFor(end.suspects));
    this.#waiting.unshift(...again.filter((job) => job.place === "shared"));
    this.#suspects.unshift(...again.filter((job) => job.place !== "shared"));
    if (this.#failure !== undefined) return this.#rejectAll();
    if (end.kind === "start-failed" || end.kind === "start-timeout") return this.#notStarted(end);
    if (end.kind === "died" && !end.blamed && end.suspects.length === 0) {
      this.#endsInARow += 1;
      if (this.#endsInARow > MOST_ENDS_IN_A_ROW && end.cause !== undefined) {
        return this.#fail(new ExecutorStartError(this.#endsInARow, end.cause));
      }
    }
    if (wasPooled) this.#lanes.add(this.#newLane());
    this.#pump();
    this.#pumpSuspects();
  }

  #notStarted({ kind, error }: LaneEnd): void {
    this.#failedStarts += 1;
    if (!this.#hasLoaded || this.#failedStarts > MOST_FAILED_STARTS) {
      if (kind === "start-failed") return this.#fail(error);
      const message = `it did not finish loading within ${this.#settings.startTimeoutMs} ms`;
      return this.#fail(
        new ExecutorStartError(this.#failedStarts, { kind: "start-timeout", message }),
      );
    }
    if (this.#pause !== undefined) return;
    const pauseMs = Math.min(restartMs.first * 2 ** (this.#failedStarts - 1), restartMs.longest);
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      while (this.#lanes.size < this.#settings.executors) this.#lanes.add(this.#newLane());
      this.#pumpSuspects();
    }, pauseMs);
  }

  /** Returns the jobs that need not ask; the others follow when they are allowed. */
  #askFor(jobs: readonly Job[]): Job[] {
    return jobs.filter((job) => {
      if (!job.isToAsk || job.beforeAgain === undefined) return true;
      void this.#ask(job, job.beforeAgain);
      return false;
    });
  }

  async #ask(job: Job, beforeAgain: () => Promise<void>): Promise<void> {
    job.isToAsk = false;
    this.#asking.add(job);
    try {
      await beforeAgain();
      // All waiting jobs may have been rejected meanwhile.
      if (!this.#asking.delete(job)) return;
      if (job.place === "shared") this.#waiting.unshift(job);
      else this.#suspects.push(job);
      this.#pump();
      this.#pumpSuspects();
    } catch (error) {
      if (!this.#asking.delete(job)) return;
      if (job.signal?.aborted === true) return giveUp(job);
      job.reject(error);
      job.over();
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    clearTimeout(this.#pause);
    this.#ready.reject(error);
    this.#rejectAll();
  }

  #rejectAll(): void {
    const jobs = [...this.#waiting, ...this.#suspects, ...this.#asking];
    this.#waiting = [];
    this.#suspects = [];
    this.#asking.clear();
    for (const job of jobs) {
      job.reject(this.#failure?.error);
      job.over();
    }
  }
}

function ignore(): void {}

const notAtWork = (): undefined => undefined;

function leastLoaded(lanes: Iterable<ExecutorLane>): ExecutorLane | undefined {
  let least: ExecutorLane | undefined;
  for (const lane of lanes) {
    if (lane.hasRoom && (least === undefined || lane.load < least.load)) least = lane;
  }
  return least;
}
