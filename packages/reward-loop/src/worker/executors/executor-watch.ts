/**
 * The watch over one executor's deadlines. When a pending run is late, the executor is asked for a
 * sign of life: if it comes, the late runs are reported and go on; if it does not, the thread is
 * blocked, and the run table tells by which run.
 *
 * Knows the runs and their table, and sends nothing itself: it is told when the executor was heard
 * of, and its owner carries out what it finds. Nothing is found after `stop`.
 */

import { blockedFailure, givenUpFailure, timeoutFailure } from "../../outcome.ts";
import type { ScoreFailure } from "../../outcome.ts";
import type { SignOfLife } from "../../executor/score-executor.ts";
import { blames, blamesEarlierRun, blamesEveryone, blamesNobody, onlyRunOf } from "./blame.ts";
import type { Blame } from "./blame.ts";
import type { SentRun, SentRuns } from "./sent-runs.ts";

/**
 * The time for a thread's sign of life before it counts as blocked. Only after a deadline, so a
 * wrong guess costs reruns, never an outcome.
 */
const SIGN_OF_LIFE_MS = 50;

/**
 * How long a run has to end after its signal was aborted before its thread is asked about it: most
 * end at once.
 */
const GRACE_MS = 50;

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

export interface WatchOwner {
  /** Asks for a sign of life. Rejects when the executor has died. */
  readonly breathe: () => Promise<SignOfLife>;
  /** Returns whether samples overlap in there, as far as is known. */
  readonly overlaps: () => boolean;
  /** The run is late, and goes on: it is to be reported and aborted. */
  readonly late: (run: SentRun, failure: ScoreFailure, ageMs: number) => void;
  /** The thread is blocked: it is to be ended. */
  readonly blocked: (blame: Blame) => void;
  /** Called after a sign of life: there may be room. */
  readonly changed: () => void;
}

export class ExecutorWatch {
  readonly #runs: SentRuns;
  readonly #timeoutMs: number;
  readonly #owner: WatchOwner;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer is due, as of performance.now(). */
  #dueAt = 0;
  #isStopped = false;
  /** When a pending sign of life was requested. */
  #askedAt: number | undefined;
  /** When a pending run was last seen to block the thread. */
  #blockedAt = 0;
  /** How often it was looked at since then, while its thread was exiting. */
  #looks = 0;
  /** When the thread was last known to be alive, by a reply or by a sign of life. */
  #heardAt = 0;

  /** @param timeoutMs undefined: only runs that were given up are ever late */
  constructor(runs: SentRuns, timeoutMs: number | undefined, owner: WatchOwner) {
    this.#runs = runs;
    this.#timeoutMs = timeoutMs ?? Infinity;
    this.#owner = owner;
  }

  /** A run was sent. */
  sent(): void {
    // A function that has not started yet has at least a whole timeout from now on.
    if (this.#timeoutMs !== Infinity && this.#timer === undefined) this.#checkIn(this.#timeoutMs);
  }

  /** The executor has answered. */
  heard(): void {
    this.#heardAt = performance.now();
  }

  /** A run was given up: it is late if it does not end soon. */
  givenUp(): void {
    this.#checkIn(GRACE_MS);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Checks then, or earlier. */
  #checkIn(inMs: number): void {
    if (this.#isStopped) return;
    const dueAt = performance.now() + inMs;
    if (this.#timer !== undefined) {
      if (this.#dueAt <= dueAt) return;
      clearTimeout(this.#timer);
    }
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#check();
    }, inMs);
  }

  #check(): void {
    let lateInMs = Infinity;
    for (const run of this.#runs.pending.values()) {
      lateInMs = Math.min(lateInMs, this.#lateInMs(run));
    }
    if (lateInMs === Infinity) return;
    if (lateInMs > 0) return this.#checkIn(lateInMs);
    if (this.#askedAt === undefined) void this.#askForLife();
    else if (performance.now() - this.#askedAt >= SIGN_OF_LIFE_MS) {
      const blame = this.#blameForBlock();
      if (blame !== undefined) this.#owner.blocked(blame);
    }
    this.#checkIn(SIGN_OF_LIFE_MS);
  }

  #lateInMs(run: SentRun): number {
    if (run.givenUpAt !== undefined) return run.givenUpAt + GRACE_MS - performance.now();
    // A run that has not started waits for nothing but its thread.
    const waitedMs = performance.now() - Math.max(this.#runs.slots.sentAt(run.slot), this.#heardAt);
    return this.#timeoutMs - (this.#runs.ageMs(run) ?? waitedMs);
  }

  async #askForLife(): Promise<void> {
    this.#askedAt = performance.now();
    this.#looks = 0;
    const givenUp = [...this.#runs.pending.values()].filter(
      (run) => run.givenUpAt !== undefined && this.#lateInMs(run) <= 0,
    );
    let sign: SignOfLife;
    try {
      sign = await this.#owner.breathe();
    } catch {
      // The pending runs get the actor's death.
      return;
    }
    this.#askedAt = undefined;
    this.heard();
    if (this.#isStopped) return;
    this.#read(sign);
    this.#reportLate(sign, givenUp);
    this.#owner.changed();
    // Runs that were given up meanwhile keep their room only until their own moment is over.
    if ([...this.#runs.pending.values()].some((run) => run.givenUpAt !== undefined)) this.#check();
  }

  #read({ used, failed, done, busyMs }: SignOfLife): void {
    for (const [id, usage] of used) {
      this.#runs.pending.get(id)?.note({ used: usage });
    }
    for (const [id, failure] of failed) this.#runs.pending.get(id)?.note({ failed: failure });
    if (this.#owner.overlaps()) this.#runs.loaded(busyMs);
    for (const run of this.#runs.overdue.values()) {
      // The run began although it had been given up.
      if (this.#runs.hasStarted(run) && !done.includes(run.id)) run.note({ isEndless: true });
    }
  }

  /**
   * The thread is alive and has processed every received message: a run that is late now waits for
   * something, or shared the thread with others that kept it busy.
   *
   * @param givenUp before the thread was asked
   */
  #reportLate({ done }: SignOfLife, givenUp: readonly SentRun[]): void {
    for (const run of this.#runs.pending.values()) {
      // Its result waits there for a call that is on its way: it is this side that is late.
      if (done.includes(run.id)) continue;
      const ageMs = this.#runs.ageMs(run) ?? 0;
      if (ageMs >= this.#timeoutMs) {
        this.#owner.late(run, timeoutFailure(this.#timeoutMs, run.failed), ageMs);
      }
      // A run that was given up since then may not have received its abort.
      else if (givenUp.includes(run)) this.#owner.late(run, givenUpFailure, ageMs);
    }
  }

  /** Returns who blocks the thread; undefined while it need not be ended. */
  #blameForBlock(): Blame | undefined {
    const { runningId, isExiting } = this.#runs;
    // The death report names the culprit. The number of looks is limited, not the time: after a
    // pause of the whole machine the report arrives before the next look.
    if (isExiting && ++this.#looks * SIGN_OF_LIFE_MS < EXIT_MS) return undefined;
    const running = this.#runs.pending.get(runningId);
    const ageMs = running && this.#runs.ageMs(running);
    if (running !== undefined && ageMs !== undefined) return this.#blameForRun(running, ageMs);
    // A run that was already reported blocks it, or its last code happens to be on the stack of a
    // thread that gets no CPU.
    if (this.#runs.overdue.has(runningId)) {
      return this.#blockedForMs < GIVEN_UP_MS ? undefined : blamesEarlierRun;
    }
    // The thread is blocked by unknown code. A whole timeout of that is too much. A run that has
    // blocked it and has ended since then is none of that: its sign of life is on its way.
    const knownAt = Math.max(this.#askedAt ?? 0, this.#heardAt, this.#blockedAt);
    if (performance.now() - knownAt < this.#timeoutMs) return undefined;
    // A finished run left blocking code behind.
    if (runningId !== 0) return blamesEarlierRun;
    const only = onlyRunOf(this.#runs);
    if (only === undefined) return blamesEveryone;
    if (this.#startsAgain(only)) return blamesNobody;
    return blames(only, blockedFailure(this.#timeoutMs), this.#runs.startedAgoMs(only) ?? 0);
  }

  /** How long its sign of life has been awaited. */
  get #blockedForMs(): number {
    return performance.now() - (this.#askedAt ?? 0);
  }

  /** Blocked by a run whose own deadline has not come yet, nobody is blamed: it will come. */
  #blameForRun(running: SentRun, ageMs: number): Blame | undefined {
    this.#blockedAt = performance.now();
    const blockedMs = this.#blockedForMs;
    if (this.#mayLoad(running) && blockedMs < LOADING_MS) return undefined;
    const isLate = ageMs >= this.#timeoutMs;
    if (isLate && this.#startsAgain(running)) return blamesNobody;
    if (isLate) return blames(running, blockedFailure(this.#timeoutMs), ageMs);
    if (running.givenUpAt === undefined || blockedMs < GIVEN_UP_MS) return undefined;
    return blames(running, { ...givenUpFailure, blocked: true }, ageMs);
  }

  #mayLoad(run: SentRun): boolean {
    return this.#runs.isFirst(run) && this.#owner.overlaps() && run.givenUpAt === undefined;
  }

  /**
   * Returns whether the run is tried once more, as are the others of its thread: the machine may
   * have been suspended before the run did anything.
   */
  #startsAgain(run: SentRun): boolean {
    if (!this.#mayLoad(run) || run.job.past.isSecondStart) return false;
    run.job.note({ isSecondStart: true });
    return true;
  }
}
