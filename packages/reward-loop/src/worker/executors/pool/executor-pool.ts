/**
 * The executors of one worker: gives each waiting sample to the one with the least load, replaces
 * those that end, and tries suspects alone.
 *
 * Invariants: every job settles exactly once; a job that was pending in an executor that ended goes
 * first when it runs again; an executor that ends without a culprit counts, and after too many in a
 * row without one outcome all waiting jobs are rejected. An executor that cannot be created, or
 * cannot load modules which others have loaded (they are being written, the machine is busy), is
 * started again after a pause: for three quarters of a minute, and as long as another one works.
 */

import { warn } from "@rayling/core/terminal";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { ExecutorStartError, RewardLoopClosedError } from "../../../errors.ts";
import type { SampleOutcome } from "../../../outcome.ts";
import { noTraits } from "../../../executor/score-executor.ts";
import type { ExecutorTraits } from "../../../executor/score-executor.ts";
import type { ScoreWork } from "../../../executor/score-work.ts";
import type { ExecutorSettings } from "../../../settings/settings.ts";
import { DeathCount } from "../../death-count.ts";
import { Demand } from "./demand.ts";
import { SupervisedExecutor } from "../supervised-executor.ts";
import type { ExecutorEnd } from "../supervised-executor.ts";
import { giveUp, isBeside, Job, settleUntried } from "../job.ts";
import type { JobEnds, JobOwner, SubmitOptions } from "../job.ts";
import { Permissions } from "./permissions.ts";
import { Quarantine } from "./quarantine.ts";
import { StartRetries } from "./start-retries.ts";

export class ExecutorPool {
  readonly #settings: ExecutorSettings;
  readonly #nextName: () => string;
  readonly #executors: Set<SupervisedExecutor> = new Set();
  readonly #quarantine: Quarantine;
  #traits: ExecutorTraits = noTraits;
  #waiting: Job[] = [];
  /** Jobs that wait for `beforeAgain`. */
  readonly #asking: Permissions;
  readonly #starts: StartRetries;
  readonly #demand: Demand<SupervisedExecutor>;
  /** Ends without a culprit, since the last outcome. */
  readonly #deaths: DeathCount = new DeathCount();
  readonly #owner: JobOwner = {
    place: (job) => this.#place(job),
    hasOutcome: () => this.#deaths.reset(),
  };
  #failure: { readonly error: unknown } | undefined;
  readonly #ready = Promise.withResolvers<void>();

  /**
   * @param nameOf the name of the n-th executor, from 0
   *
   * @param pauseMs between failed starts
   */
  constructor(
    settings: ExecutorSettings,
    nameOf: (count: number) => string,
    pauseMs?: (failures: number) => number,
  ) {
    this.#settings = settings;
    let count = 0;
    this.#nextName = () => nameOf(count++);
    this.#quarantine = new Quarantine(
      () => this.#newExecutor(),
      () => this.#starts.isPaused,
    );
    this.#asking = new Permissions((job) => {
      if (job.past.place === "shared") this.#waiting.unshift(job);
      else this.#quarantine.push(job);
      this.#pump();
      this.#quarantine.pump();
    });
    this.#starts = new StartRetries(() => this.#fill(), pauseMs);
    this.#demand = new Demand(settings.leastExecutors, settings.executors, {
      executors: () => (this.#starts.starting.size > 0 ? [] : [...this.#executors]),
      hasWaiting: () => this.#waiting.length > 0,
      // It comes after the pause.
      fill: () => this.#starts.isPaused || this.#fill(),
    });
    // Callers of ready() get the rejection.
    this.#ready.promise.catch(() => undefined);
    this.#fill();
  }

  /**
   * Resolves when the executors that are there from the start have loaded the user's modules;
   * rejects with why one cannot.
   */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /**
   * The traits of the user's functions, known when the pool is ready. Whether samples overlap is
   * known for async functions, and learned from the first promise of others.
   */
  get traits(): ExecutorTraits {
    const known = [...this.#executors].find((executor) => executor.traits !== undefined)?.traits;
    this.#traits = known ?? this.#traits;
    return { ...this.#traits, overlaps: [...this.#executors].some(({ overlaps }) => overlaps) };
  }

  /** Rejects only if no executor can be kept alive. */
  submit(work: ScoreWork): Promise<SampleOutcome> {
    return new Promise((settled, rejected) => {
      const job = new Job(0, { settled, rejected }, noOptions, this.#owner);
      job.work = work;
      job.begin();
    });
  }

  /**
   * Scores a sample. No promise is made for it: each sample of a run passes here.
   *
   * @param id the caller's number for it
   */
  score(sample: RewardSample, id: number, ends: JobEnds, options: SubmitOptions = noOptions): void {
    const job = new Job(id, ends, options, this.#owner);
    job.sample = sample;
    if (options.slots === undefined) job.begin();
    else options.slots.enter(job);
  }

  /** Gives up the samples of these ids. Those that have their outcome are passed over. */
  giveUp(ids: ReadonlySet<number>): void {
    const isOfThem = ({ id, sample }: Job): boolean => sample !== undefined && ids.has(id);
    const waiting = [...this.#waiting.filter(isOfThem), ...this.#quarantine.takeOut(isOfThem)];
    this.#waiting = this.#waiting.filter((job) => !isOfThem(job));
    for (const job of waiting) giveUp(job);
    for (const executor of [...this.#executors, ...this.#quarantine.executors]) {
      executor.giveUp(isOfThem);
    }
  }

  async close(): Promise<void> {
    this.#fail(new RewardLoopClosedError());
    await Promise.all([...this.#executors, this.#quarantine].map((one) => one.stop()));
  }

  /** Whether nothing can be scored any more. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  #place(job: Job): void {
    if (this.#failure !== undefined) {
      job.reject(this.#failure.error);
      return job.over();
    }
    // In a turn of its own: the next one may be given up as well, as soon as it begins.
    if (job.past.isGivenUp) return queueMicrotask(() => giveUp(job));
    this.#demand.came();
    const isPlain = job.pair === undefined && job.signal === undefined;
    const executor =
      isPlain && this.#waiting.length === 0 ? leastLoaded(this.#executors) : undefined;
    if (executor !== undefined) return executor.run(job);
    this.#waiting.push(job);
    this.#pump();
  }

  /** Starts executors until there are as many as there should be. */
  #fill(): void {
    let executor: SupervisedExecutor | undefined;
    while (this.#executors.size < this.#demand.wanted) {
      executor = this.#newExecutor();
      if (executor === undefined) break;
      this.#executors.add(executor);
    }
    this.#quarantine.pump();
  }

  /** Undefined: none can be created now. The pool starts executors after a pause, or has failed. */
  #newExecutor(): SupervisedExecutor | undefined {
    try {
      const executor = new SupervisedExecutor(this.#settings, this.#nextName(), {
        mayGetHelp: () => this.#demand.mayHelp,
        changed: () => this.#changed(),
        ended: (ended, end) => this.#ended(ended, end),
      });
      this.#starts.starting.add(executor);
      return executor;
    } catch (error) {
      this.#startFailed((attempts) => {
        const death = { kind: "not-created", message: messageOf(error) } as const;
        return new ExecutorStartError(attempts, death, { cause: error });
      });
      return undefined;
    }
  }

  /** @param errorOf the error of the pool, after so many attempts */
  #startFailed(errorOf: (attempts: number) => unknown): void {
    this.#demand.started();
    if (this.#starts.failed()) return this.#starts.later();
    const error = errorOf(this.#starts.failures);
    const works = this.#starts.haveAllLoaded && [...this.#executors].some(({ isReady }) => isReady);
    if (!works) return this.#fail(error);
    if (this.#starts.haveJustBecomeTooMany) {
      warn(
        `a reward loop worker goes on with fewer executors, and tries again: ${messageOf(error)}`,
      );
    }
    // The other ones go on, where a suspect must not be tried.
    for (const suspect of this.#quarantine.drain()) settleUntried(suspect, error);
    this.#starts.later();
  }

  #changed(): void {
    for (const executor of this.#starts.starting) {
      if (!executor.isReady) continue;
      this.#starts.starting.delete(executor);
      this.#starts.loaded();
    }
    let areReady = true;
    for (const executor of this.#executors) {
      areReady &&= executor.isReady;
      // One that is worn out is replaced when it has ended.
      if (executor.isSpent) void executor.stop();
    }
    if (areReady) {
      this.#demand.started();
      this.#starts.haveAllLoaded = true;
      this.#ready.resolve();
    }
    this.#pump();
    this.#quarantine.pump();
  }

  #pump(): void {
    while (this.#waiting.length > 0 && leastLoaded(this.#executors) !== undefined) {
      // The first, unless it waits for another executor than that of its other call.
      let at = 0;
      let job = this.#waiting[0];
      let executor: SupervisedExecutor | undefined;
      while (job !== undefined && !job.isNeedless) {
        executor = executorFor(job, this.#executors, this.#settings.executors);
        if (executor !== undefined) break;
        job = this.#waiting[++at];
      }
      if (job === undefined) return;
      this.#waiting.splice(at, 1);
      if (executor === undefined) giveUp(job);
      else executor.run(job);
    }
  }

  #ended(executor: SupervisedExecutor, end: ExecutorEnd): void {
    const wasPooled = this.#executors.delete(executor);
    this.#starts.starting.delete(executor);
    this.#quarantine.ended(executor);
    const { again: others, suspects } = stillNeeded(end);
    for (const job of suspects) {
      job.note({ place: job.past.place === "shared" ? "alone" : "fresh" });
    }
    const again = this.#asking.ask(others);
    this.#quarantine.push(...this.#asking.ask(suspects));
    this.#waiting.unshift(...again.filter((job) => job.past.place === "shared"));
    this.#quarantine.unshift(...again.filter((job) => job.past.place !== "shared"));
    if (this.#failure !== undefined) return this.#rejectAll();
    if (end.kind === "start-failed") return this.#startFailed(() => end.error);
    if (end.kind === "start-timeout") {
      const message = `it did not finish loading within ${this.#settings.startTimeoutMs} ms`;
      const death = { kind: end.kind, message };
      return this.#startFailed((attempts) => new ExecutorStartError(attempts, death));
    }
    if (end.kind === "died" && !end.blamed && end.suspects.length === 0) {
      this.#deaths.add();
      if (this.#deaths.areTooMany && end.cause !== undefined) {
        return this.#fail(new ExecutorStartError(this.#deaths.inARow, end.cause));
      }
    }
    const next = wasPooled ? this.#newExecutor() : undefined;
    if (next !== undefined) this.#executors.add(next);
    this.#pump();
    this.#quarantine.pump();
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#starts.cancel();
    this.#demand.stop();
    this.#ready.reject(error);
    this.#rejectAll();
  }

  #rejectAll(): void {
    const jobs = [...this.#waiting, ...this.#quarantine.drain(), ...this.#asking.drain()];
    this.#waiting = [];
    for (const job of jobs) {
      job.reject(this.#failure?.error);
      job.over();
    }
  }
}

const noOptions: SubmitOptions = {};

function leastLoaded(executors: Iterable<SupervisedExecutor>): SupervisedExecutor | undefined {
  let least: SupervisedExecutor | undefined;
  for (const executor of executors) {
    if (executor.hasRoom && (least === undefined || executor.load < least.load)) least = executor;
  }
  return least;
}

/** @param most with one executor both calls of a hedge are in it */
function executorFor(
  job: Job,
  executors: ReadonlySet<SupervisedExecutor>,
  most: number,
): SupervisedExecutor | undefined {
  if (job.pair === undefined || most === 1) return leastLoaded(executors);
  return leastLoaded([...executors].filter((executor) => !isBeside(job, executor)));
}

/** Settles the jobs that were given up: they do not run again. */
function stillNeeded({ again, suspects }: ExecutorEnd): Pick<ExecutorEnd, "again" | "suspects"> {
  for (const job of [...again, ...suspects]) if (job.past.isGivenUp) giveUp(job);
  const isNeeded = ({ past }: Job): boolean => !past.isGivenUp;
  return { again: again.filter(isNeeded), suspects: suspects.filter(isNeeded) };
}
