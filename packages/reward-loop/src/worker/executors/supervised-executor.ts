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
 * A run whose result is no longer needed (the other call of a hedge, the end of the total time) has
 * a moment to end, with a deadline or without one: a function that reacts to the abort signal has
 * ended by then, one that does not is forgotten and takes no room, and one that blocks its thread
 * is ended with it.
 * An executor ends once, and then reports the jobs to run again, or suspects where no culprit is
 * known.
 */

import { GetTimeoutError } from "@rayling/core";
import type { DeathCause } from "@rayling/core";
import { BriefRuns } from "../../executor/brief-run-batching.ts";
import type { ExecutorTraits, SignOfLife } from "../../executor/score-executor.ts";
import type { ScoreFailure } from "../../outcome.ts";
import type { ExecutorSettings } from "../../settings/settings.ts";
import { blameForDeath, blamesNobody } from "./blame.ts";
import type { Blame } from "./blame.ts";
import { deathCauseOf, ExecutorCalls } from "./executor-calls.ts";
import { isReply, settleByReply, settleGivenUp, settleInvalid } from "./job.ts";
import type { Job } from "./job.ts";
import { ExecutorWatch } from "./executor-watch.ts";
import { leave, SentRuns } from "./sent-runs.ts";
import type { SentRun } from "./sent-runs.ts";

/**
 * A synchronous function works on one sample at a time; the next one stands ready in its thread
 * (twice the throughput of none, measured). While its runs are brief more stand ready.
 */
const SYNC_IN_FLIGHT = 2;

/** The state that an executor leaves when it has ended. */
export interface ExecutorEnd {
  /** `start-failed` is for good: the module itself does not load. */
  readonly kind: "died" | "stopped" | "start-failed" | "start-timeout";
  /** How it died, with `died`. */
  readonly cause?: DeathCause;
  /** Why it could not start, with `start-failed`. */
  readonly error?: unknown;
  /** Whether a sample was found guilty of it. */
  readonly blamed: boolean;
  readonly again: readonly Job[];
  /** Jobs of which one ended or blocked the thread. */
  readonly suspects: readonly Job[];
}

export interface ExecutorOwner {
  /** Whether another executor may be started for samples that wait. */
  mayGetHelp(): boolean;
  /** Called when there may be room. */
  changed(): void;
  ended(executor: SupervisedExecutor, end: ExecutorEnd): void;
}

/** The way in which an executor ends. */
type End = Pick<ExecutorEnd, "kind" | "cause" | "error">;

export class SupervisedExecutor {
  readonly #settings: ExecutorSettings;
  readonly #owner: ExecutorOwner;
  readonly #runs: SentRuns;
  readonly #watch: ExecutorWatch;
  readonly #calls: ExecutorCalls;
  #overlaps = false;
  /** How long its runs took of late. */
  readonly #brief: BriefRuns;
  #traits: ExecutorTraits | undefined;
  /** The version of the loaded reward function, if it is not the loop's. */
  #otherVersion: string | undefined;
  #state: "starting" | "ready" | "ended" = "starting";

  /** Throws why the executor cannot be created, and leaves nothing behind then. */
  constructor(settings: ExecutorSettings, name: string, owner: ExecutorOwner) {
    this.#settings = settings;
    this.#owner = owner;
    this.#brief = new BriefRuns(settings.policy.totalTimeoutMs !== undefined);
    const runs = new SentRuns(settings);
    this.#runs = runs;
    const place = { name, table: runs.place, slots: runs.slots.count };
    try {
      this.#calls = new ExecutorCalls(settings, place, {
        find: (id) => runs.find(id),
        answered: (run, reply) => this.#answered(run, reply),
        changed: () => owner.changed(),
        died: (cause) => this.#died(cause),
        silent: (error) => this.#silent(error),
      });
    } catch (error) {
      runs.close();
      throw error;
    }
    this.#watch = new ExecutorWatch(runs, settings.timeoutMs, {
      breathe: () => this.#calls.breathe(),
      overlaps: () => this.#overlaps,
      late: (run, failure, ageMs) => this.#late(run, failure, ageMs),
      blocked: (blame) => void this.#end({ kind: "stopped" }, blame),
      changed: () => owner.changed(),
    });
    void this.#start();
  }

  get load(): number {
    return this.#runs.pending.size;
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

  /**
   * Whether no run that was given up is still going on, and, for a suspect that was lost alone,
   * whether this thread has never run a job.
   */
  isFitFor({ past }: Job): boolean {
    const isFresh = this.#runs.count === 0;
    return this.#runs.overdue.size === 0 && (past.place !== "fresh" || isFresh);
  }

  /** Whether the executor is worn out and empty. */
  get isSpent(): boolean {
    return this.#runs.areWornOut && this.load === 0;
  }

  get hasRoom(): boolean {
    const { concurrency } = this.#settings;
    // Nobody takes back what stands ready behind a sample that takes long.
    const usual = this.#owner.mayGetHelp() ? 1 : SYNC_IN_FLIGHT;
    const sync = Math.min(concurrency, this.#brief.inFlight(usual));
    const most = this.#overlaps ? concurrency + this.#runs.ready : sync;
    return this.isReady && this.#runs.slots.hasFree && !this.#runs.areWornOut && this.load < most;
  }

  run(job: Job): void {
    const run = this.#runs.add(job, this.#giveUp);
    job.executor = this;
    const version = this.#otherVersion;
    if (job.past.version !== version) job.note({ version });
    this.#watch.sent();
    this.#calls.send(run);
  }

  /** Gives up the pending runs of the jobs that the test is true for. */
  giveUp(test: (job: Job) => boolean): void {
    for (const run of this.#runs.pending.values()) {
      if (!test(run.job) || run.givenUpAt !== undefined) continue;
      run.job.note({ isGivenUp: true });
      this.#giveUp(run);
    }
  }

  /** Rejects when the executor has died. */
  breathe(): Promise<SignOfLife> {
    return this.#calls.breathe();
  }

  /** Ends the thread; pending jobs are left for others. */
  stop(): Promise<void> {
    return this.#end({ kind: "stopped" }, blamesNobody);
  }

  async #start(): Promise<void> {
    try {
      const { version, ...traits } = await this.#calls.ready(this.#settings.startTimeoutMs);
      if (this.#state !== "starting") return;
      this.#traits = traits;
      if (version !== this.#settings.version?.version) this.#otherVersion = version;
      this.#overlaps = traits.overlaps;
      this.#state = "ready";
      this.#owner.changed();
    } catch (error) {
      const cause = deathCauseOf(error);
      if (cause !== undefined) return this.#died(cause);
      const kind = error instanceof GetTimeoutError ? "start-timeout" : "start-failed";
      await this.#end({ kind, error }, blamesNobody);
    }
  }

  #answered(run: SentRun, reply: unknown): void {
    if (this.#state === "ended") return;
    const { job } = run;
    this.#watch.heard();
    if (this.#runs.answered(run)) {
      stoodReady(this.#runs, run, isReply(reply) ? reply.latencyMs : 0);
      settleByReply(job, reply, run.used);
    }
    job.over();
    if (isReply(reply)) {
      this.#overlaps ||= reply.overlaps;
      if (reply.ok || reply.latencyMs > 0) this.#brief.ended(reply.latencyMs);
    }
  }

  /** One function for all runs: each that may be given up keeps it. */
  readonly #giveUp = (run: SentRun): void => {
    run.note({ givenUpAt: performance.now() });
    if (this.#state === "ended") return;
    this.#calls.abort(run);
    const isInLine = run.job.sample !== undefined && !this.#runs.hasStarted(run);
    if (!isInLine) return this.#watch.givenUp();
    // If it has begun meanwhile, its result is ignored.
    this.#runs.setAside(run);
    stoodReady(this.#runs, run, 0);
    settleGivenUp(run.job);
    this.#owner.changed();
  };

  #late(run: SentRun, failure: ScoreFailure, ageMs: number): void {
    run.note({ isEndless: true });
    this.#settleInvalid(run, failure, ageMs);
    this.#calls.abort(run);
  }

  /** Settles a run that goes on, or that ended its thread. */
  #settleInvalid(run: SentRun, failure: ScoreFailure, ageMs: number): void {
    this.#runs.setAside(run);
    stoodReady(this.#runs, run, ageMs);
    settleInvalid(run.job, failure, ageMs, run);
  }

  #silent(error: unknown): void {
    const runs = this.#runs.takePending();
    void this.stop();
    for (const { job, used } of runs) {
      settleByReply(job, error, used);
      job.over();
    }
  }

  #died(cause: DeathCause): void {
    if (this.#state === "ended") return;
    void this.#end({ kind: "died", cause }, blameForDeath(cause, this.#runs));
  }

  /**
   * Ends the executor; its remaining jobs run elsewhere once the thread is gone, never at the same
   * time.
   */
  async #end(end: End, { culprit, isKnown, isSuspect }: Blame): Promise<void> {
    if (this.#state === "ended") return;
    if (culprit !== undefined) {
      this.#settleInvalid(culprit.run, culprit.failure, culprit.ageMs);
    }
    this.#state = "ended";
    this.#watch.stop();
    const again: Job[] = [];
    const suspects: Job[] = [];
    const overdue = [...this.#runs.overdue.values()];
    for (const run of overdue) leave(run);
    for (const run of this.#runs.takePending()) {
      const { job } = run;
      const hadStarted = this.#runs.hasStarted(run);
      if (hadStarted) {
        job.note({ attempts: job.past.attempts + 1, isToAsk: true });
      }
      (hadStarted && isSuspect(run) ? suspects : again).push(job);
    }
    this.#runs.close();
    if (end.kind !== "died") await this.#calls.kill();
    for (const { job } of overdue) job.over();
    this.#owner.ended(this, { ...end, blamed: isKnown, again, suspects });
  }
}

/** Records how long the job was in the executor before it ran. */
function stoodReady({ ready, slots }: SentRuns, { job, slot }: SentRun, workedMs: number): void {
  const isInLine = ready > 0 && job.sample !== undefined;
  if (!isInLine) return;
  job.readyMs = Math.max(0, performance.now() - slots.sentAt(slot) - workedMs);
}
