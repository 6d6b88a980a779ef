/**
 * The life of one actor: placed, started, watched, restarted by policy, dead with a cause.
 *
 * One loop per actor, on one screen. It owns the actor's record; the directory reads it. A constructor that throws is not retried; a host that
 * dies is, as long as restarts are left, unless the actor was killed for good.
 */
import type { Caller } from "../rpc/caller.ts";
import type { ActorLocation, ActorLoss, ActorSpec, StartArguments } from "../rpc/directory.ts";
import type { Allocation, Scheduler } from "../placement/scheduler.ts";
import { type CreateResult, detachArguments } from "../host/control.ts";
import type { DeathCause } from "../shared/errors.ts";
import { type Host, HostLostError, type ThreadLauncher } from "./launch.ts";

export type ActorState = "registered" | "pending" | "alive" | "restarting" | "dead";

export interface SupervisorParts {
  readonly caller: () => Caller;
  readonly launcher: () => ThreadLauncher;
  readonly scheduler: Scheduler;
}

export class Supervisor {
  readonly spec: ActorSpec;
  readonly #parts: SupervisorParts;
  #state: ActorState = "registered";
  #incarnation = 0;
  #restartsLeft: number;
  #host: Host | undefined;
  #cause: DeathCause | undefined;
  #killed: DeathCause | undefined;
  #waiters: (() => void)[] = [];

  constructor(spec: ActorSpec, parts: SupervisorParts) {
    this.spec = spec;
    this.#parts = parts;
    this.#restartsLeft = spec.maxRestarts;
  }

  get state(): ActorState {
    return this.#state;
  }

  async run(args: StartArguments): Promise<void> {
    if (this.#state !== "registered") return;
    this.#set("pending");
    const caller = this.#parts.caller();
    // Refs among the arguments stay held here for every later incarnation.
    for (const value of [args.values, ...args.dependencies]) caller.accept(value);
    while (!this.#isDead()) {
      let allocation: Allocation | undefined;
      let cause: DeathCause;
      try {
        allocation = await this.#parts.scheduler.acquire(
          demand(this.spec),
          `actor ${this.spec.info.className}`,
        );
        cause = this.#isDead() ? (this.#killed ?? noCause) : await this.#live(args);
      } catch (error) {
        cause = {
          kind: "unreachable",
          message: `it could not be started: ${String(error)}`,
          error: error as Error,
        };
      }
      allocation?.release();
      this.#host = undefined;
      this.#cause = cause;
      const final = ["init-failed", "not-registered", "shutdown", "unreachable"].includes(
        cause.kind,
      );
      if (final || this.#killed !== undefined || this.#restartsLeft === 0) {
        this.#die(cause);
      } else {
        this.#restartsLeft -= 1;
        this.#incarnation += 1;
        this.#set("restarting");
      }
    }
  }

  /** Resolves with why this incarnation ended. */
  async #live(args: StartArguments): Promise<DeathCause> {
    const { spec } = this;
    const host = this.#parts
      .launcher()
      .take({ resourceLimits: spec.resourceLimits, env: spec.env });
    this.#host = host;
    const caller = this.#parts.caller();
    for (const value of [args.values, ...args.dependencies])
      caller.exportReferences(value.references ?? []);
    try {
      const request = { key: spec.key, info: spec.info, args: detachArguments(args) };
      const loaded = await host.control<CreateResult>((control) => control.load(spec.key));
      const created = loaded.ok
        ? await host.control<CreateResult>((control) => control.create(request))
        : loaded;
      if (!created.ok) {
        const error = caller.codec.reviveFailure(created.failure);
        const what =
          created.kind === "init-failed" ? "its constructor threw" : "its class was not found";
        const cause: DeathCause = {
          kind: created.kind,
          message: `${what}: ${error.name}: ${error.message}`,
          error,
        };
        await host.terminate(cause);
        return cause;
      }
    } catch (error) {
      if (error instanceof HostLostError) return error.deathCause;
      throw error;
    }
    this.#set("alive");
    this.#parts.launcher().warmUp();
    return host.exited;
  }

  async kill(cause: DeathCause, noRestart: boolean): Promise<void> {
    if (this.#isDead()) return;
    if (noRestart) this.#killed = cause;
    // Without a host there is nothing to end, and a kill that allows a restart has nothing to do.
    if (this.#host !== undefined) await this.#host.terminate(cause);
    else if (noRestart) this.#die(cause);
    if (!noRestart) return;
    while (!this.#isDead()) await this.#changed();
  }

  abandon(cause: DeathCause): void {
    if (this.#state === "registered") this.#die(cause);
  }

  async located(): Promise<ActorLocation> {
    for (;;) {
      if (this.#state === "dead") return { state: "dead", cause: this.#cause ?? noCause };
      if (this.#state === "alive" && this.#host !== undefined) {
        const { actorId } = this.spec.info;
        return { state: "alive", actorId, hostId: this.#host.id, incarnation: this.#incarnation };
      }
      await this.#changed();
    }
  }

  async loss(incarnation: number): Promise<ActorLoss> {
    while (this.#state === "alive" && this.#incarnation === incarnation) await this.#changed();
    return { restarting: this.#state !== "dead", cause: this.#cause ?? noCause };
  }

  #isDead(): boolean {
    return this.#state === "dead";
  }

  #die(cause: DeathCause): void {
    this.#cause = cause;
    this.#set("dead");
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

const noCause: DeathCause = { kind: "unreachable", message: "no cause is known" };

function demand(spec: ActorSpec): { place: { CPU: number }; hold: { CPU: number } } {
  const cpus = spec.numCpus;
  return cpus === undefined
    ? { place: { CPU: 1 }, hold: { CPU: 0 } }
    : { place: { CPU: cpus }, hold: { CPU: cpus } };
}
