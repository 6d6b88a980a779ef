/**
 * The life of one actor: placed, started, watched, restarted by policy, dead with a cause.
 *
 * Each actor has one loop, which fits on one screen. The supervisor owns the actor's record, and
 * the directory reads it. A constructor that throws is not retried. A host that dies is replaced
 * while restarts are left, unless the actor was killed for good. A move from a draining node is not
 * a restart: such an actor first gets a place elsewhere, and then goes.
 */
import type { Encoded } from "../../protocol/codec.ts";
import type { ActorSpec, StartArguments } from "../../rpc/directory.ts";
import type { Placement } from "../../placement/placement.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import type { Launcher } from "../launch/launcher.ts";
import { ActorRecord, noCause } from "./actor-record.ts";
import { causeOfStart, Incarnation, type IncarnationParts } from "./incarnation.ts";
import { NextPlace } from "./next-place.ts";
import { RestartBudget } from "./restart-budget.ts";
import { RestartPause } from "./restart-pause.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface SupervisorParts extends IncarnationParts {
  readonly launcher: () => Launcher;
  readonly placement: Placement;
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
  readonly record: ActorRecord;
  readonly #parts: SupervisorParts;
  readonly #restarts: RestartBudget;
  readonly #restartPause: RestartPause = new RestartPause();
  readonly #next: NextPlace;
  /**
   * Aborted signals of its constructor, by index, with their reasons; each incarnation gets them.
   */
  #aborted: Map<number, Encoded> | undefined;
  /** Its constructor's arguments, as long as an incarnation may need them. */
  #args: StartArguments | undefined;
  /** Why it was killed for good. */
  #killed: DeathCause | undefined;
  /** Ends the pause before a start. */
  #wake: (() => void) | undefined;

  constructor(spec: ActorSpec, namespace: string, owner: string, parts: SupervisorParts) {
    this.spec = spec;
    this.namespace = namespace;
    this.owner = owner;
    this.#parts = parts;
    this.#restarts = new RestartBudget(spec);
    this.#next = new NextPlace(parts.placement, spec);
    this.record = new ActorRecord(new Incarnation(0, spec, parts));
  }

  /** Whether it is dead, or ending for good: it accepts no new callers. */
  get isOver(): boolean {
    return this.record.isDead || this.#killed !== undefined;
  }

  /** Returns why it waits for resources, if it does. */
  get waitsFor(): string | undefined {
    return this.#next.waitsFor;
  }

  run(args: StartArguments): Promise<void> {
    if (this.record.state === "registered") this.#args = args;
    return this.#run();
  }

  async #run(): Promise<void> {
    const { record } = this;
    if (record.state !== "registered") return;
    record.set("pending");
    while (!record.isDead) {
      const { life } = record;
      const cause = await this.#live(life).catch(causeOfStart);
      life.over();
      record.cause = cause;
      if (life.isolation === "shared") this.#parts.onSharedEnd(this);
      const lived = this.record.state === "alive";
      const isFree = life.isDrained && (!lived || this.spec.maxRestarts !== 0);
      const isSpent = this.#restarts.isSpent && !isFree;
      // An actor that lived and lost its host may live elsewhere; an actor that could not start
      // there is not retried for ever.
      const isFinal = finalKinds.has(cause.kind) && !(lived && cause.kind === "unreachable");
      if (isSpent || isFinal || this.#killed !== undefined) {
        return this.#die(this.#killed ?? cause);
      }
      if (!isFree) {
        const tooOften = this.#restarts.diesTooOften(cause);
        if (tooOften !== undefined) return this.#die(tooOften);
        this.#restarts.spend();
      }
      record.life = new Incarnation(life.number + 1, this.spec, this.#parts);
      record.set("restarting");
      const pauseMs = this.#restartPause.next(lived);
      if (pauseMs > 0) await this.#pause(pauseMs);
    }
  }

  /** Resolves with the cause when the incarnation has ended, or could not begin. */
  async #live(life: Incarnation): Promise<DeathCause> {
    const { record } = this;
    life.isWaiting = true;
    const placed = await this.#next.take();
    if (placed === undefined) return life.lostTurn ?? record.cause ?? noCause;
    if ("kind" in placed) return life.lostTurn ?? placed;
    const isWanted = (): boolean => !record.isDead && life.lostTurn === undefined && !placed.isLost;
    const slot = await life.take(placed, isWanted);
    if (slot === undefined || !isWanted()) {
      const message = `its place on node ${placed.nodeId} is gone`;
      const cause = this.#killed ?? life.lostTurn ?? { kind: "node-died", message };
      void slot?.end(cause);
      return cause;
    }
    if (this.#args === undefined) throw new RaySystemError("an actor without restarts began twice");
    const failure = await life.start(slot, this.#args, this.namespace);
    if (failure !== undefined) return failure;
    // Nothing will be made of them again.
    if (this.spec.maxRestarts === 0) this.#args = undefined;
    record.set("alive");
    for (const [index, reason] of this.#aborted ?? []) life.abortSignal(index, reason);
    this.#parts.launcher().actorStarted();
    return slot.ended;
  }

  /**
   * Waits, so that a start that fails again and again does not keep a CPU busy; the end of the
   * actor ends the pause.
   */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = timers.setTimeout(resolve, ms);
    // The process may end; a caller that waits for an answer keeps it alive.
    timer.unref();
    this.#wake = resolve;
    await promise;
    timers.clearTimeout(timer);
  }

  /**
   * Moves the actor from a draining node: when there is room elsewhere, running calls may end, and
   * the next incarnation starts there. An actor that may not be restarted, or finds no place,
   * stays. It may be called again.
   */
  async leave(cause: DeathCause): Promise<void> {
    const { life, state } = this.record;
    const { slot } = life;
    if (state !== "alive" || slot === undefined) return;
    if (life.isLeaving || this.spec.maxRestarts === 0) return;
    life.isLeaving = true;
    const request = this.#next.ask();
    void slot.ended.then(() => request.withdraw());
    const outcome = await request.outcome.catch(() => undefined);
    if (outcome?.kind !== "placed") return;
    if (this.record.isDead || life.slot !== slot) return outcome.allocation.release();
    this.#next.keep(outcome.allocation);
    await life.terminate(cause);
  }

  abortSignal(index: number, reason: Encoded): void {
    const { isDead, state, life } = this.record;
    const aborted = (this.#aborted ??= new Map());
    if (isDead || aborted.has(index)) return;
    aborted.set(index, reason);
    if (state === "alive") life.abortSignal(index, reason);
  }

  async kill(cause: DeathCause, noRestart: boolean): Promise<void> {
    const { record } = this;
    const { life } = record;
    if (record.isDead) return;
    if (noRestart) this.#killed ??= cause;
    if (life.slot !== undefined) await life.slot.end(cause);
    else if (noRestart) this.#die(cause);
    else if (record.state === "registered") {
      // It waits for its arguments: nothing has to restart, but the kill uses up a restart.
      if (this.#restarts.isSpent) this.#die(cause);
      else this.#restarts.spend();
    } else if (life.isWaiting) {
      // It has lost its turn, and a restart is a new request.
      life.lostTurn ??= cause;
      this.#next.withdraw();
      await record.changed();
    }
    if (noRestart) await record.ended();
  }

  /** Ends an actor without handles: running calls may end, then its hook runs. */
  outOfScope(): void {
    const cause: DeathCause = { kind: "out-of-scope", message: "no handle of it was left" };
    const { life, isDead, state } = this.record;
    if (isDead) return;
    this.#killed ??= cause;
    if (life.slot === undefined) return this.#die(cause);
    if (state !== "alive") return void life.slot.end(cause);
    void life.terminate(cause);
    life.endAfterGrace(cause);
  }

  /**
   * That incarnation has begun to end by itself, for good: running calls may end, then its hook
   * runs. A running call may block its host.
   */
  exiting(incarnation: number, cause: DeathCause): void {
    const life = this.#seated(incarnation);
    if (life === undefined) return;
    this.#killed ??= cause;
    life.endAfterGrace(cause);
  }

  /** That incarnation has ended by itself, for good. Nobody else uses its host. */
  exited(incarnation: number, cause: DeathCause): void {
    const life = this.#seated(incarnation);
    if (life === undefined) return;
    if (cause.kind !== "drained") this.#killed ??= cause;
    // The grace period covers its last messages, too: their reader may never read them.
    life.endAfterGrace(cause);
    void life.slot?.leave(cause).catch(() => undefined);
  }

  /** Returns that incarnation if it is the current one and has a place. */
  #seated(incarnation: number): Incarnation | undefined {
    const { life, isDead } = this.record;
    const isCurrent = !isDead && life.number === incarnation && life.slot !== undefined;
    return isCurrent ? life : undefined;
  }

  /** Ends the actor when its owner is gone. */
  ownerDied(owner: string): void {
    if (this.spec.info.isDetached || this.isOver) return;
    void this.kill({ kind: "owner-died", message: `its owner ${owner} died` }, true);
  }

  /** Gives up an actor that its creator will not start. Does nothing to a started actor. */
  abandon(cause: DeathCause): void {
    if (this.record.state === "registered") this.#die(cause);
  }

  /** Ends the actor with the runtime, wherever it is; the launcher ends its host. */
  end(cause: DeathCause): void {
    this.#killed ??= cause;
    if (this.record.life.slot === undefined) this.#die(cause);
  }

  #die(cause: DeathCause): void {
    if (this.record.isDead) return;
    this.record.cause = cause;
    this.#args = undefined;
    this.record.set("dead");
    this.#parts.onDead(this);
    this.#next.end();
    this.#wake?.();
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
