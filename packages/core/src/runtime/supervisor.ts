/**
 * The life of one actor: placed, started, watched, restarted by policy, dead with a cause.
 *
 * Each actor has one loop, which fits on one screen. The supervisor owns the actor's record, and
 * the directory reads it. A constructor that throws is not retried. A host that dies is replaced
 * while restarts are left, unless the actor was killed for good. A move from a draining node is not
 * a restart: such an actor first gets a place elsewhere, and then goes.
 */
import type { Caller } from "../caller/caller.ts";
import type { Encoded } from "../protocol/codec.ts";
import type {
  ActorLocation,
  ActorLoss,
  ActorSpec,
  Isolation,
  StartArguments,
} from "../rpc/directory.ts";
import { assignmentOf } from "../rpc/demand.ts";

import type { Allocation, Placement, ResourceRequest } from "../placement/placement.ts";
import { detach, detachArguments } from "../host/control.ts";
import { assertNever, type DeathCause } from "../shared/errors.ts";
import { hasSettings, type Host, HostLostError } from "./launch/host.ts";
import type { Launcher } from "./launch/launcher.ts";
import type { Seat, Seats } from "./seats.ts";

export type ActorState = "registered" | "pending" | "alive" | "restarting" | "dead";

export interface SupervisorParts {
  readonly caller: () => Caller;
  readonly launcher: () => Launcher;
  readonly placement: Placement;
  readonly seats: Seats;
  /** The isolation of actors and tasks that do not set their own. */
  readonly isolation: Isolation;
  /** The most time for an actor to end by itself, before it is ended by force. */
  readonly graceMs: number;
  readonly onDead: (actor: Supervisor) => void;
  /**
   * Called when an incarnation in a shared host ends, which ends the actors that it created; the
   * end of a host of its own does that by itself.
   */
  readonly onSharedEnd: (actor: Supervisor) => void;
}

export class Supervisor {
  readonly spec: ActorSpec;
  readonly namespace: string;
  /** The runtime that created it; a detached actor does not depend on that. */
  readonly owner: string;
  readonly #parts: SupervisorParts;
  #state: ActorState = "registered";
  #incarnation = 0;
  #restartsLeft: number;
  /** Times of restarts, by performance.now(), within the window of its restart intensity. */
  #restarts: number[] = [];
  #seat: Seat | undefined;
  #cause: DeathCause | undefined;
  #killed: DeathCause | undefined;
  #waiters: (() => void)[] = [];
  #failedStarts = 0;
  #wake: (() => void) | undefined;
  #request: ResourceRequest | undefined;
  /** Whether it waits for resources, or for its turn to start. */
  #isWaiting = false;
  /** Whether this incarnation is to go on elsewhere. */
  #isLeaving = false;
  /** The resources of the next place. */
  #next: Allocation | undefined;
  /** The cause, if this incarnation was killed while it waited. */
  #lostTurn: DeathCause | undefined;
  /**
   * Aborted signals of its constructor, by index, with their reasons; each incarnation gets them.
   */
  readonly #aborted: Map<number, Encoded> = new Map();
  /** Ends an incarnation that takes too long to end by itself. */
  #grace: NodeJS.Timeout | undefined;

  constructor(spec: ActorSpec, namespace: string, owner: string, parts: SupervisorParts) {
    this.spec = spec;
    this.namespace = namespace;
    this.owner = owner;
    this.#parts = parts;
    this.#restartsLeft = spec.maxRestarts;
  }

  get state(): ActorState {
    return this.#state;
  }

  /** Whether it is dead, or ending for good: it accepts no new callers. */
  get isOver(): boolean {
    return this.#isDead() || this.#killed !== undefined;
  }

  async run(args: StartArguments): Promise<void> {
    if (this.#state !== "registered") return;
    this.#set("pending");
    while (!this.#isDead()) {
      this.#isWaiting = true;
      let allocation: Allocation | undefined;
      let cause: DeathCause;
      try {
        const placed = await this.#place();
        this.#request = undefined;
        if ("kind" in placed) cause = this.#lostTurn ?? placed;
        else {
          allocation = placed;
          cause = await this.#live(args, placed);
        }
      } catch (error) {
        cause = causeOfStart(error);
      }
      this.#isWaiting = false;
      this.#lostTurn = undefined;
      const gone = this.#seat?.gone;
      if (gone === undefined) allocation?.release();
      else void gone.then(() => allocation?.release());
      this.#seat = undefined;
      this.#isLeaving = false;
      this.#cause = cause;
      if (isolationOf(this.spec, this.#parts.isolation) === "shared") this.#parts.onSharedEnd(this);
      const lived = this.state === "alive";
      const isFree = allocation?.isDrained === true && (!lived || this.spec.maxRestarts !== 0);
      const isOver = this.#restartsLeft === 0 && !isFree;
      // An actor that lived and lost its host may live elsewhere; an actor that could not start
      // there is not retried for ever.
      const isFinal = finalKinds.has(cause.kind) && !(lived && cause.kind === "unreachable");
      if (isOver || isFinal || this.#killed !== undefined) {
        this.#die(this.#killed ?? cause);
        return;
      }
      if (!isFree) {
        const tooOften = this.#diesTooOften(cause);
        if (tooOften !== undefined) return this.#die(tooOften);
        this.#restartsLeft -= 1;
      }
      this.#incarnation += 1;
      this.#set("restarting");
      this.#failedStarts = lived ? 0 : this.#failedStarts + 1;
      if (this.#failedStarts > 1) await this.#pause(backOffMs(this.#failedStarts));
    }
  }

  #diesTooOften(cause: DeathCause): DeathCause | undefined {
    const limit = this.spec.restartIntensity;
    if (limit === undefined) return undefined;
    const now = performance.now();
    this.#restarts = [...this.#restarts.filter((at) => now - at < limit.withinMs), now];
    if (this.#restarts.length <= limit.restarts) return undefined;
    return {
      ...cause,
      kind: "restart-intensity",
      message: `it died ${this.#restarts.length} times within ${limit.withinMs} ms, at last because ${cause.message}`,
    };
  }

  /**
   * Waits, so that a start that fails again and again does not keep a CPU busy; the end of the
   * actor ends the pause.
   */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    // The process may end; a caller that waits for an answer keeps it alive.
    timer.unref();
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** Returns the host in which it lives, or soon will. */
  get host(): Host | undefined {
    return this.#seat?.host;
  }

  /** Returns the cause of its death, or of its last restart. */
  get cause(): DeathCause | undefined {
    return this.#cause;
  }

  /** Returns the number of its restarts. */
  get incarnation(): number {
    return this.#incarnation;
  }

  /** Returns why it waits for resources, if it does. */
  get waitsFor(): string | undefined {
    return this.#request?.reason;
  }

  /** Returns the resources that it needs, or the cause why it cannot have them. */
  async #place(): Promise<Allocation | DeathCause> {
    const kept = this.#next;
    this.#next = undefined;
    if (kept?.isLost === false) return kept;
    kept?.release();
    this.#request = this.#ask();
    const outcome = await this.#request.outcome;
    switch (outcome.kind) {
      case "placed":
        return outcome.allocation;
      case "refused":
        return { kind: outcome.refusal, message: outcome.reason };
      case "withdrawn":
        return this.#cause ?? noCause;
      default:
        return assertNever(outcome);
    }
  }

  #ask(): ResourceRequest {
    const { demand, info } = this.spec;
    return this.#parts.placement.request(demand, `actor ${info.className}`);
  }

  /** Resolves with the cause when this incarnation ends. */
  async #live(args: StartArguments, allocation: Allocation): Promise<DeathCause> {
    const { spec } = this;
    const { nodeId } = allocation;
    const isolation = isolationOf(spec, this.#parts.isolation);
    const { runtimeEnv, key } = spec;
    const { moduleUrl } = key;
    const isWanted = (): boolean =>
      !this.#isDead() && this.#lostTurn === undefined && !allocation.isLost;
    const seat = isWanted()
      ? await this.#parts.seats.take({ nodeId, isolation, runtimeEnv, moduleUrl }, isWanted)
      : undefined;
    if (seat === undefined || !isWanted()) {
      const lost: DeathCause = {
        kind: "node-died",
        message: `its place on node ${nodeId} is gone`,
      };
      const cause = this.#killed ?? this.#lostTurn ?? lost;
      void seat?.end(cause);
      return cause;
    }
    this.#seat = seat;
    this.#isWaiting = false;
    const caller = this.#parts.caller();
    try {
      // Refs among the arguments are held here for every later incarnation.
      for (const value of [args.values, ...args.dependencies]) {
        caller.values.codec.claim(value);
        caller.references.exportTo(seat.host.id, value.references ?? []);
      }
      const created = await seat.create({
        target: this.#target,
        key: spec.key,
        info: spec.info,
        name: spec.name,
        namespace: this.namespace,
        incarnation: this.#incarnation,
        isShared: isolation === "shared",
        args: detachArguments(args),
        assignment: assignmentOf(spec.demand),
      });
      if (!created.ok) {
        const error = caller.values.codec.reviveFailure(created.failure);
        const cause: DeathCause = {
          kind: created.kind,
          message: `${failedStep[created.kind]}: ${error.name}: ${error.message}`,
          error,
        };
        await seat.end(cause);
        return cause;
      }
    } catch (error) {
      const cause = causeOfStart(error);
      // Its new host belongs to nobody else.
      if (!(error instanceof HostLostError)) await seat.end(cause);
      return cause;
    }
    this.#set("alive");
    for (const [index, reason] of this.#aborted) this.#tellAborted(index, reason);
    this.#parts.launcher().warmUp();
    return seat.ended;
  }

  /**
   * Moves the actor from a draining node: when there is room elsewhere, running calls may end, and
   * the next incarnation starts there. An actor that may not be restarted, or finds no place,
   * stays. It may be called again.
   */
  async leave(cause: DeathCause): Promise<void> {
    const seat = this.#seat;
    if (this.#state !== "alive" || seat === undefined) return;
    if (this.#isLeaving || this.spec.maxRestarts === 0) return;
    this.#isLeaving = true;
    const request = this.#ask();
    this.#request = request;
    void seat.ended.then(() => request.withdraw());
    const outcome = await request.outcome.catch(() => undefined);
    if (outcome?.kind !== "placed") return;
    if (this.#isDead() || this.#seat !== seat) return outcome.allocation.release();
    this.#next = outcome.allocation;
    const target = this.#target;
    // If its host is gone meanwhile, so is this incarnation.
    await seat.host.control((control) => control.terminate(target, cause)).catch(() => undefined);
  }

  abortSignal(index: number, reason: Encoded): void {
    if (this.#isDead() || this.#aborted.has(index)) return;
    this.#aborted.set(index, reason);
    if (this.#state === "alive") this.#tellAborted(index, reason);
  }

  #tellAborted(index: number, reason: Encoded): void {
    const host = this.host;
    if (host === undefined) return;
    const caller = this.#parts.caller();
    caller.values.codec.claim(reason);
    caller.references.exportTo(host.id, reason.references ?? []);
    const target = this.#target;
    void host
      .control((control) => control.abortSignal(target, index, detach(reason)))
      // This incarnation is over, and the next one gets the signal.
      .catch(() => undefined);
  }

  async kill(cause: DeathCause, noRestart: boolean): Promise<void> {
    if (this.#isDead()) return;
    if (noRestart) this.#killed ??= cause;
    if (this.#seat !== undefined) await this.#seat.end(cause);
    else if (noRestart) this.#die(cause);
    else if (this.#state === "registered") {
      // It waits for its arguments: nothing has to restart, but the kill uses up a restart.
      if (this.#restartsLeft === 0) this.#die(cause);
      else this.#restartsLeft -= 1;
    } else if (this.#isWaiting) {
      // It has lost its turn, and a restart is a new request.
      this.#lostTurn ??= cause;
      this.#request?.withdraw();
      await this.#changed();
    }
    if (!noRestart) return;
    await this.ended();
  }

  /** Ends an actor without handles: running calls may end, then its hook runs. */
  outOfScope(): void {
    const cause: DeathCause = { kind: "out-of-scope", message: "no handle of it was left" };
    const seat = this.#seat;
    if (this.#isDead()) return;
    this.#killed ??= cause;
    if (seat === undefined) return this.#die(cause);
    if (this.#state !== "alive") return void seat.end(cause);
    const target = this.#target;
    void seat.host.control((control) => control.terminate(target, cause)).catch(() => undefined);
    this.#endAfterGrace(seat, cause);
  }

  /**
   * That incarnation has begun to end by itself, for good: running calls may end, then its hook
   * runs. A running call may block its host.
   */
  exiting(incarnation: number, cause: DeathCause): void {
    if (this.#isDead() || this.#incarnation !== incarnation || this.#seat === undefined) return;
    this.#killed ??= cause;
    this.#endAfterGrace(this.#seat, cause);
  }

  /** Ends the actor when its owner is gone. */
  ownerDied(owner: string): void {
    if (this.spec.info.isDetached || this.isOver) return;
    void this.kill({ kind: "owner-died", message: `its owner ${owner} died` }, true);
  }

  /** That incarnation has ended by itself, for good. Nobody else uses its host. */
  exited(incarnation: number, cause: DeathCause): void {
    if (this.#isDead() || this.#incarnation !== incarnation || this.#seat === undefined) return;
    if (cause.kind !== "drained") this.#killed ??= cause;
    // The grace period covers its last messages, too: their reader may never read them.
    this.#endAfterGrace(this.#seat, cause);
    void this.#seat.leave(cause).catch(() => undefined);
  }

  /** Restarts the grace period. */
  #endAfterGrace(seat: Seat, cause: DeathCause): void {
    clearTimeout(this.#grace);
    const grace = setTimeout(() => void seat.end(cause), this.#parts.graceMs);
    grace.unref();
    this.#grace = grace;
    void seat.ended.then(() => clearTimeout(grace));
  }

  /** Resolves when it is dead for good. */
  async ended(): Promise<void> {
    while (!this.#isDead()) await this.#changed();
  }

  /** Gives up an actor that its creator will not start. Does nothing to a started actor. */
  abandon(cause: DeathCause): void {
    if (this.#state === "registered") this.#die(cause);
  }

  /** Ends the actor with the runtime, wherever it is; the launcher ends its host. */
  end(cause: DeathCause): void {
    this.#killed ??= cause;
    if (this.#seat === undefined) this.#die(cause);
  }

  async located(): Promise<ActorLocation> {
    for (;;) {
      if (this.#state === "dead") return { state: "dead", cause: this.#cause ?? noCause };
      if (this.#state === "alive" && this.#seat !== undefined) {
        return {
          state: "alive",
          target: this.#target,
          hostId: this.#seat.host.id,
          incarnation: this.#incarnation,
        };
      }
      await this.#changed();
    }
  }

  async loss(incarnation: number): Promise<ActorLoss> {
    while (this.#state === "alive" && this.#incarnation === incarnation) await this.#changed();
    return { restarting: this.#state !== "dead", cause: this.#cause ?? noCause };
  }

  /** The address of an incarnation: calls to an earlier one never reach a later one. */
  get #target(): string {
    const { actorId } = this.spec.info;
    return this.#incarnation === 0 ? actorId : `${actorId}~${this.#incarnation}`;
  }

  #isDead(): boolean {
    return this.#state === "dead";
  }

  #die(cause: DeathCause): void {
    if (this.#isDead()) return;
    this.#cause = cause;
    this.#set("dead");
    this.#parts.onDead(this);
    // Nobody else waits for the request of a dead actor.
    this.#request?.withdraw();
    this.#next?.release();
    this.#wake?.();
  }

  #set(state: ActorState): void {
    this.#state = state;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  #changed(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
}

/** Causes that a restart would only repeat. */
const finalKinds: ReadonlySet<DeathCause["kind"]> = new Set([
  "load-failed",
  "init-failed",
  "not-registered",
  "shutdown",
  "unreachable",
  "unschedulable",
  "placement-group-removed",
  "runtime-env-failed",
]);

function causeOfStart(error: unknown): DeathCause {
  if (error instanceof HostLostError) return error.deathCause;
  const message = `it could not be started: ${String(error)}`;
  return { kind: "unreachable", message, error: error as Error };
}

const failedStep = {
  "load-failed": "its module threw while it was loaded",
  "init-failed": "its constructor threw",
  "not-registered": "its class was not found",
} as const;

/**
 * Returns the isolation. An actor with settings of its own cannot share a thread, so a shared
 * default becomes "thread".
 */
function isolationOf(spec: ActorSpec, standard: Isolation): Isolation {
  if (spec.isolation !== undefined) return spec.isolation;
  return standard === "shared" && hasSettings(spec.runtimeEnv) ? "thread" : standard;
}

/** 100 ms, doubling, at most 10 s. */
function backOffMs(failedStarts: number): number {
  return Math.min(10_000, 100 * 2 ** (failedStarts - 2));
}

const noCause: DeathCause = { kind: "unreachable", message: "no cause is known" };
