/**
 * A worker that a caller has leased, with the tasks that it was sent and has not answered: the
 * first runs, and others stand behind it, so that it does not wait for the next one. Short ones
 * stand there in numbers. One that takes some milliseconds stands there alone, and goes to the
 * worker that is idle first.
 *
 * When a worker is lost, the claims of its tasks tell which had begun. Without claims only one is
 * sent at a time.
 */
import { sizeOf } from "../../../protocol/codec.ts";
import type { Session } from "../../../rpc/session/session.ts";
import { clockMs } from "../../../shared/clock.ts";
import type { MeanDuration } from "../../../shared/mean-duration.ts";
import type { Call } from "../call.ts";
import { timers } from "../../../shared/machine/timers.ts";

/** Expected time of all tasks that stand at a worker, in ms: nobody waits longer because of it. */
const standingMs = 1;

/** A task stands behind several others only if it takes at most this time, in ms. */
const shortMs = 0.5;

const mostStanding = 64;

/** So many times what may stand at a worker is a surplus. */
const leastSurplus = 2;

/** After this time a task is taken for a long one, in ms: nothing stands behind it. */
const longTaskMs = 5;

/** Arguments of all tasks that may stand at a worker, in bytes. */
const mostBytes = 256 * 1024;

/** How many tasks of that duration may be at a worker, the one that runs included. */
export function mostAtOnce({ ms }: MeanDuration): number {
  if (ms > longTaskMs) return 1;
  return ms > shortMs ? 2 : Math.min(mostStanding, 1 + Math.ceil(standingMs / ms));
}

export class LeasedWorker {
  readonly session: Session;
  readonly incarnation = 0;
  /** Until when it takes one task after the other, as of clockMs(). */
  readonly untilMs: number;
  /** In the order in which they were sent. */
  readonly #sent: Call[] = [];
  /** Sent with a claim, which tells whether they have begun. */
  readonly #claimed: WeakSet<Call> = new WeakSet();
  /** Since when the first of them may run, as of clockMs(). */
  #sinceMs = 0;
  /** Whether the first of them, and so what stands behind it, may take long. */
  #isHeld = false;
  /** Whether it has had as many as it may: it gets others, all at once, when half are answered. */
  #isFull = false;
  #hasAnswered = false;

  constructor(session: Session, untilMs: number) {
    this.session = session;
    this.untilMs = untilMs;
  }

  get isIdle(): boolean {
    return this.#sent.length === 0;
  }

  get hasStanding(): boolean {
    return this.#sent.length > 1;
  }

  /** The tasks that it was sent, in that order. */
  get all(): readonly Call[] {
    return [...this.#sent];
  }

  get first(): Call | undefined {
    return this.#sent[0];
  }

  /** Whether a task without an answer may have begun; one without a claim was sent alone. */
  mayHaveBegun(call: Call): boolean {
    return !this.#claimed.has(call) || this.session.requests.hasBegun(call.id);
  }

  send(call: Call): void {
    const { session } = this;
    // The host may look at the claim as soon as it has the call.
    if (session.requests.opensClaim()) this.#claimed.add(call);
    call.send(this, call.plan.route);
    if (call.isSettled) return;
    if (this.#sent.push(call) === 1) this.#begin(clockMs());
  }

  /** Whether a task may be sent before the one that runs is answered. */
  takes(call: Call, nowMs: number): boolean {
    const { plan, args } = call;
    if (this.#isHeld || nowMs >= this.untilMs || plan.route.shape !== undefined) return false;
    if (!this.session.requests.credit.allows(1)) return false;
    // The host may wait for the arguments of the first, and begin another before it.
    if ((this.first?.args.dependencies.length ?? 0) > 0) return false;
    if (args.dependencies.length > 0 || args.signals !== undefined) return false;
    // The other workers, which are leased one by one, get their first task before that.
    if (!this.#hasAnswered && !isShort(call)) return false;
    const most = Math.min(mostOf(call), mostOf(this.first));
    if (this.#sent.length >= most) this.#isFull = true;
    else if (this.#sent.length <= most >> 1) this.#isFull = false;
    if (this.#isFull || sizeOf(args.values) > mostBytes / (most - 1)) return false;
    return this.session.requests.opensClaim();
  }

  /** It has its answer. */
  answered(call: Call, nowMs: number): void {
    this.#hasAnswered = true;
    if (this.first !== call) return this.returned(call);
    this.#sent.shift();
    call.plan.duration?.note(nowMs - this.#sinceMs);
    this.#begin(nowMs);
  }

  /**
   * Takes back what stands at it although such tasks have turned out to take longer: others may be
   * idle. A little more than may be sent is left there.
   */
  takeBackSurplus(): readonly Call[] {
    const most = mostOf(this.first);
    if (this.#sent.length <= leastSurplus * most) return [];
    return this.#sent.slice(most).filter((call) => this.takesBack(call));
  }

  /** Takes back the last task that stands at it, for an idle worker, where that is worth it. */
  takeBackLast(): Call | undefined {
    const last = this.#sent.at(-1);
    return last !== undefined && !isShort(last) && this.takesBack(last) ? last : undefined;
  }

  /** It did not begin. */
  returned(call: Call): void {
    const index = this.#sent.indexOf(call);
    if (index >= 0) this.#sent.splice(index, 1);
    this.#isHeld = !this.isIdle;
  }

  /** Takes the tasks back that stand behind one that runs longer than so many ms. */
  takeBackAll(afterMs: number, nowMs: number): readonly Call[] {
    if (nowMs - this.#sinceMs < afterMs) return [];
    this.#isHeld = true;
    return this.#sent.slice(1).filter((call) => this.takesBack(call));
  }

  /** Takes a task back that stands behind others. Returns whether it has not begun. */
  takesBack(call: Call): boolean {
    const index = this.#sent.indexOf(call);
    if (index < 1 || !this.session.requests.takesBack(call.id)) return false;
    this.#sent.splice(index, 1);
    call.leavePlace();
    return true;
  }

  #begin(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#isHeld = false;
  }
}

/** Short ones are through sooner than they could be anywhere else. */
function isShort({ plan: { duration } }: Call): boolean {
  return duration !== undefined && duration.ms <= shortMs;
}

function mostOf(call: Call | undefined): number {
  const duration = call?.plan.duration;
  return duration === undefined ? 1 : mostAtOnce(duration);
}

/** The workers of one caller. */
export class LeasedWorkers {
  readonly #byHost: Map<string, LeasedWorker> = new Map();
  /** Cancelled by force when others before them were not answered. */
  readonly #forced: WeakSet<Call> = new WeakSet();
  readonly #onTakenBack: (call: Call) => void;
  readonly #endWorker: (hostId: string) => void;
  /** Looks for long tasks while others stand behind one. */
  #watch: NodeJS.Timeout | undefined;

  constructor(onTakenBack: (call: Call) => void, endWorker: (hostId: string) => void) {
    this.#onTakenBack = onTakenBack;
    this.#endWorker = endWorker;
  }

  add(session: Session, untilMs: number): void {
    this.#byHost.set(session.peerId, new LeasedWorker(session, untilMs));
  }

  at(session: Session): LeasedWorker | undefined {
    const worker = this.#byHost.get(session.peerId);
    return worker?.session === session ? worker : undefined;
  }

  delete(hostId: string): void {
    this.#byHost.delete(hostId);
  }

  /** Takes back a task that stands behind another one, for an idle worker of that kind. */
  takeBackOne(key: string): Call | undefined {
    for (const worker of this.#byHost.values()) {
      if (!worker.hasStanding || worker.first?.plan.worker?.key !== key) continue;
      const call = worker.takeBackLast();
      if (call !== undefined) return call;
    }
    return undefined;
  }

  /** Takes back what stands behind a task that turns out to be long. */
  watchLongTasks(): void {
    // Answers that are here are read between a timer and an immediate.
    this.#watch ??= timers
      .setInterval(() => void timers.setImmediate(() => this.#look()), longTaskMs)
      .unref();
  }

  #takeBack(worker: LeasedWorker, afterMs: number): void {
    const taken = worker.takeBackAll(afterMs, clockMs());
    for (const call of taken) this.#onTakenBack(call);
  }

  #look(): void {
    const standing = [...this.#byHost.values()].filter((worker) => worker.hasStanding);
    for (const worker of standing) this.#takeBack(worker, longTaskMs);
    if (standing.length > 0) return;
    timers.clearInterval(this.#watch);
    this.#watch = undefined;
  }

  /** A task that was sent has its answer. */
  answered(call: Call, session: Session): void {
    call.leavePlace();
    const worker = this.at(session);
    if (worker === undefined) return;
    worker.answered(call, clockMs());
    for (const taken of worker.takeBackSurplus()) this.#onTakenBack(taken);
    const { first } = worker;
    if (first === undefined || !this.#forced.has(first)) return;
    // Its own answer may follow at once.
    timers.queueMicrotask(() => {
      if (worker?.first === first) this.#endWorker(session.peerId);
    });
  }

  /** Ends the worker that runs a task, as soon as the tasks before it are answered. */
  force(call: Call, session: Session): void {
    const worker = this.at(session);
    if (worker === undefined) return this.#endWorker(session.peerId);
    this.#takeBack(worker, 0);
    if (worker.first !== call) this.#forced.add(call);
    // Others that could not be taken back have begun: this one is over, its answer under way.
    else if (!worker.hasStanding) this.#endWorker(session.peerId);
  }
}
