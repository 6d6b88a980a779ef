/**
 * A worker that a caller has leased, with the tasks that it was sent and has not answered: the
 * first runs, and short ones stand behind it, so that it does not wait for the next one.
 *
 * The worker sends each answer before it begins the next task. So when it is lost, the first task
 * without an answer may have begun, and no other has.
 */
import { sizeOf } from "../../protocol/codec.ts";
import { mostClaims } from "../../rpc/session/claims.ts";
import type { Session } from "../../rpc/session/session.ts";
import type { Call } from "./call.ts";

/** Expected time of all tasks that stand at a worker, in ms: nobody waits longer because of it. */
const standingMs = 1;

/** A task stands behind others only if it takes at most this time, in ms. */
const shortMs = 0.5;

const mostStanding = 32;

/** What the last task counts in the mean. */
const share = 0.05;

/** Arguments of a task that stands, in bytes. */
const mostBytes = 4096;

/** How long the tasks of one function take, in ms: a running mean. */
export class TaskPace {
  #meanMs = Infinity;

  note(ms: number): void {
    const mean = this.#meanMs;
    if (mean === Infinity) this.#meanMs = ms;
    else this.#meanMs += (ms - mean) * share;
  }

  /** How many of them may be at a worker, the one that runs included. */
  get most(): number {
    if (this.#meanMs > shortMs) return 1;
    return Math.min(mostStanding, 1 + Math.ceil(standingMs / this.#meanMs));
  }
}

export class LeasedWorker {
  readonly session: Session;
  /** Until when it takes one task after the other, as of performance.now(). */
  readonly untilMs: number;
  /** In the order in which they were sent. */
  readonly #sent: Call[] = [];
  /** Since when the first of them may run, as of performance.now(). */
  #sinceMs = 0;
  /** Whether the first of them, and so what stands behind it, may take long. */
  #isHeld = false;
  /** Whether it was lost, and the one that ran then is no longer among those that were sent. */
  #isFirstGone = false;

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

  /** Whether a task that has no answer may have begun. */
  mayHaveBegun(call: Call): boolean {
    return this.first === call && !this.#isFirstGone;
  }

  send(call: Call): void {
    const { session } = this;
    // The host may look at the claim as soon as it has the call.
    if (this.#canClaim) session.sentClaims?.open(session.requests.nextId);
    call.send(session, call.plan.route, 0);
    if (call.isSettled) return;
    if (this.#sent.push(call) === 1) this.#begin(performance.now());
  }

  /** Whether a task may be sent before the one that runs is answered. */
  takes(call: Call, nowMs: number): boolean {
    const { plan, args } = call;
    if (this.#isHeld || nowMs >= this.untilMs || plan.route.shape !== undefined) return false;
    if (args.dependencies.length > 0 || args.signals !== undefined) return false;
    if (!this.#canClaim) return false;
    const most = Math.min(plan.pace?.most ?? 1, this.first?.plan.pace?.most ?? 1);
    return this.#sent.length < most && sizeOf(args.values) <= mostBytes;
  }

  /** It has its answer. */
  answered(call: Call, nowMs: number): void {
    if (this.first !== call) return this.returned(call);
    this.#sent.shift();
    call.plan.pace?.note(nowMs - this.#sinceMs);
    if (this.session.isOpen) this.#begin(nowMs);
    else this.#isFirstGone = true;
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
    if (index < 1 || this.session.sentClaims?.takesBack(call.id) !== true) return false;
    this.#sent.splice(index, 1);
    this.session.requests.giveUp(call.id);
    return true;
  }

  /** Whether a task that is sent now can be taken back. */
  get #canClaim(): boolean {
    const { requests, sentClaims } = this.session;
    return sentClaims !== undefined && requests.nextId < mostClaims;
  }

  #begin(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#isHeld = false;
  }
}
