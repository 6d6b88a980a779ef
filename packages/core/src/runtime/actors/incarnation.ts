/**
 * One incarnation of an actor, in a place of its own: how it starts there, and how it is made to
 * end.
 */
import type { Caller } from "../../caller/caller.ts";
import { detach, detachArguments } from "../../host/host-control.ts";
import type { Allocation } from "../../placement/placement.ts";
import type { Encoded } from "../../protocol/codec.ts";
import { assignmentOf } from "../../rpc/resource-demand.ts";
import {
  type ActorSpec,
  type Isolation,
  type StartArguments,
  targetOf,
} from "../../rpc/directory.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { asError } from "../../shared/errors/thrown.ts";
import { hasSettings, type Host, HostLostError } from "../launch/host.ts";
import type { ActorSlot, ActorSlots } from "./actor-slots.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface IncarnationParts {
  readonly caller: () => Caller;
  readonly slots: ActorSlots;
  /** The isolation of actors and tasks that do not set their own. */
  readonly isolation: Isolation;
  /** The most time for an actor to end by itself, before it is ended by force. */
  readonly graceMs: number;
}

export class Incarnation {
  readonly number: number;
  /** The address: calls to an earlier incarnation never reach a later one. */
  readonly target: string;
  readonly isolation: Isolation;
  /** Whether it waits for resources, or for its turn to start. */
  isWaiting = false;
  /** Whether it is to go on elsewhere. */
  isLeaving = false;
  /** The cause, if it was killed while it waited. */
  lostTurn: DeathCause | undefined;
  readonly #spec: ActorSpec;
  readonly #parts: IncarnationParts;
  #allocation: Allocation | undefined;
  #slot: ActorSlot | undefined;
  /** Ends it if it takes too long to end by itself. */
  #grace: NodeJS.Timeout | undefined;

  constructor(number: number, spec: ActorSpec, parts: IncarnationParts) {
    const { actorId } = spec.info;
    this.number = number;
    this.target = targetOf(actorId, number);
    this.isolation = isolationOf(spec, parts.isolation);
    this.#spec = spec;
    this.#parts = parts;
  }

  /** Its place in a host, while it has one. */
  get slot(): ActorSlot | undefined {
    return this.#slot;
  }

  /** The host in which it lives, or soon will. */
  get host(): Host | undefined {
    return this.#slot?.host;
  }

  /** Whether it was on a node that is being drained. */
  get isDrained(): boolean {
    return this.#allocation?.isDrained === true;
  }

  /** Takes a place on the node of its resources; undefined when it is not wanted any more. */
  async take(allocation: Allocation, isWanted: () => boolean): Promise<ActorSlot | undefined> {
    this.#allocation = allocation;
    if (!isWanted()) return undefined;
    const { nodeId, env } = allocation;
    const { isolation } = this;
    const { threadName, key, runtimeEnv, inherited } = this.#spec;
    const { moduleUrl } = key;
    const settings = { runtimeEnv, inherited, variables: env };
    const request = { nodeId, isolation, threadName, moduleUrl, ...settings };
    return this.#parts.slots.take(request, isWanted);
  }

  /** Makes the actor in that place. Returns the cause of its end if that fails. */
  async start(
    slot: ActorSlot,
    args: StartArguments,
    namespace: string,
  ): Promise<DeathCause | undefined> {
    this.#slot = slot;
    this.isWaiting = false;
    const { target } = this;
    const spec = this.#spec;
    const caller = this.#parts.caller();
    try {
      // Refs among the arguments are held here for every later incarnation.
      for (const value of [args.values, ...args.dependencies]) {
        caller.values.codec.claim(value);
        caller.references.exportTo(slot.host.id, value.references ?? []);
      }
      const created = await slot.create({
        target,
        key: spec.key,
        info: spec.info,
        name: spec.name,
        namespace,
        incarnation: this.number,
        isShared: this.isolation === "shared",
        args: detachArguments(args),
        assignment: assignmentOf(spec.demand),
      });
      if (created.ok) return undefined;
      const error = caller.values.codec.reviveFailure(created.failure);
      const message = `${failedStep[created.kind]}: ${error.name}: ${error.message}`;
      const cause: DeathCause = { kind: created.kind, message, error };
      // A constructor may have called other actors before it threw. How its host ends after that
      // is no cause any more.
      this.endAfterGrace(cause);
      await slot.leave(cause).catch(() => slot.end(cause));
      return cause;
    } catch (error) {
      const cause = causeOfStart(error);
      // Its new host belongs to nobody else.
      if (!(error instanceof HostLostError)) await slot.end(cause);
      return cause;
    }
  }

  /** Tells it that a signal among the arguments of its constructor is aborted. */
  abortSignal(index: number, reason: Encoded): void {
    const { host, target } = this;
    if (host === undefined) return;
    const caller = this.#parts.caller();
    caller.values.codec.claim(reason);
    caller.references.exportTo(host.id, reason.references ?? []);
    void host
      .control((control) => control.abortSignal(target, index, detach(reason)))
      // This incarnation is over, and the next one gets the signal.
      .catch(() => undefined);
  }

  /** Ends it when its running calls have ended. Resolves when its host knows that. */
  async terminate(cause: DeathCause): Promise<void> {
    const { host, target } = this;
    // If its host is gone meanwhile, so is this incarnation.
    await host?.control((control) => control.terminate(target, cause)).catch(() => undefined);
  }

  /** Restarts the grace period. */
  endAfterGrace(cause: DeathCause): void {
    const slot = this.#slot;
    if (slot === undefined) return;
    timers.clearTimeout(this.#grace);
    const grace = timers.setTimeout(() => void slot.end(cause), this.#parts.graceMs);
    grace.unref();
    this.#grace = grace;
    void slot.ended.then(() => timers.clearTimeout(grace));
  }

  /** Frees its place and its resources: it has ended, or was not begun. */
  over(): void {
    const allocation = this.#allocation;
    const gone = this.#slot?.gone;
    if (gone === undefined) allocation?.release();
    else void gone.then(() => allocation?.release());
    this.#slot = undefined;
    this.isWaiting = false;
  }
}

/** Returns why an incarnation could not be started. */
export function causeOfStart(thrown: unknown): DeathCause {
  if (thrown instanceof HostLostError) return thrown.deathCause;
  const message = `it could not be started: ${String(thrown)}`;
  return { kind: "unreachable", message, error: asError(thrown) };
}

const failedStep = {
  "load-failed": "its module threw while it was loaded",
  "init-failed": "its constructor threw",
  "not-registered": "its class was not found",
} as const;

/**
 * Returns the isolation. An actor with settings of its own cannot share a thread, so a shared
 * default becomes "thread"; with those of its creator it can, among others that have the same.
 */
function isolationOf(spec: ActorSpec, standard: Isolation): Isolation {
  if (spec.isolation !== undefined) return spec.isolation;
  return standard === "shared" && hasSettings(spec.runtimeEnv) ? "thread" : standard;
}
