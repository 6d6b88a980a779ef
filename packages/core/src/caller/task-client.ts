/**
 * One caller's tasks: each runs once on a leased worker, when its arguments are ready.
 *
 * Tasks have no order among each other. A worker is leased from the directory while there is work and given back when there is
 * none. A worker that dies costs its task one of `maxRetries`; used up, the task fails with WorkerCrashedError.
 */
import type { Encoded } from "../protocol/codec.ts";
import type { Route } from "../protocol/messages.ts";
import type { Demand } from "../rpc/demand.ts";
import { type DeathCause, taskDeath } from "../shared/errors.ts";
import { Fifo } from "../shared/fifo.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import type { ClientLink } from "./actor-client.ts";
import type { WorkerLease } from "../rpc/directory.ts";
import type { Session } from "../rpc/session.ts";

export interface TaskCall {
  readonly route: Route;
  readonly args: Encoded;
  readonly dependencies: readonly ObjectEntry[];
  readonly entry: ObjectEntry;
  readonly demand: Demand;
  readonly retryExceptions: boolean | readonly string[];
  retriesLeft: number;
}

/** Tasks with one demand share leases. */
interface Lane {
  readonly demand: Demand;
  readonly ready: Fifo<TaskCall>;
  asking: number;
}

/** Leases asked for at once beyond those running: the directory queues them, and more than this tells it nothing new. */
const maxAsking = 4;

/** After this it is somebody else's turn, if somebody waits; asking again costs some microseconds. */
const longestLeaseMs = 100;

/** Ends after which the task has no place to be tried again. */
const finalKinds: ReadonlySet<DeathCause["kind"]> = new Set([
  "shutdown",
  "unschedulable",
  "placement-group-removed",
]);

export class TaskClient {
  readonly #link: ClientLink;
  readonly #lanes: Map<string, Lane> = new Map();
  /** By leased worker: until when it takes one task after the other, as of performance.now(). */
  readonly #leasedUntil: Map<string, number> = new Map();
  #unresolved = 0;

  constructor(link: ClientLink) {
    this.#link = link;
  }

  /** Tasks that wait here: for an argument or for a worker. */
  get queued(): number {
    return (
      this.#unresolved + [...this.#lanes.values()].reduce((sum, lane) => sum + lane.ready.size, 0)
    );
  }

  submit(call: TaskCall): void {
    let unresolved = 0;
    for (const dependency of call.dependencies) {
      if (dependency.outcome !== undefined) continue;
      unresolved += 1;
      dependency.whenSettled(() => {
        unresolved -= 1;
        if (unresolved > 0) return;
        this.#unresolved -= 1;
        this.#enqueue(call);
      });
    }
    if (unresolved === 0) this.#enqueue(call);
    else this.#unresolved += 1;
  }

  #enqueue(call: TaskCall): void {
    for (const { outcome } of call.dependencies) {
      if (outcome?.ok === false) return call.entry.reject(outcome.failure);
    }
    const { demand } = call;
    let lane = this.#lanes.get(demand.key);
    if (lane === undefined) {
      lane = { demand, ready: new Fifo(), asking: 0 };
      this.#lanes.set(demand.key, lane);
    }
    lane.ready.push(call);
    this.#ask(lane);
  }

  #ask(lane: Lane): void {
    while (lane.asking < Math.min(lane.ready.size, maxAsking)) {
      lane.asking += 1;
      void this.#lease(lane);
    }
  }

  async #lease(lane: Lane): Promise<void> {
    let lease: WorkerLease;
    try {
      lease = await this.#link.directory.leaseWorker(lane.demand);
    } catch (error) {
      lane.asking -= 1;
      const failure = this.#link.describe(error as Error);
      for (const call of lane.ready.drain()) call.entry.reject(failure);
      return;
    }
    lane.asking -= 1;
    if (lease.state === "refused") {
      for (const { entry } of lane.ready.drain()) {
        entry.reject(this.#link.describe(taskDeath(entry.label, lease.cause)));
      }
      return;
    }
    const { hostId } = lease;
    const oneTask = lane.demand.strategy.kind === "SPREAD";
    this.#leasedUntil.set(hostId, oneTask ? 0 : performance.now() + longestLeaseMs);
    const session = await this.#link.session(hostId).catch(() => undefined);
    if (session === undefined) {
      this.#release(hostId);
      return this.#ask(lane);
    }
    this.#run(lane, hostId, session);
    this.#ask(lane);
  }

  /** The next task, unless it is others' turn: who waits for the same resources must not wait for all tasks of this caller. */
  #next(lane: Lane, hostId: string, session: Session): void {
    if (performance.now() < (this.#leasedUntil.get(hostId) ?? 0)) {
      return this.#run(lane, hostId, session);
    }
    this.#release(hostId);
    this.#ask(lane);
  }

  #release(hostId: string): void {
    this.#leasedUntil.delete(hostId);
    this.#link.directory.releaseWorker(hostId);
  }

  #run(lane: Lane, hostId: string, session: Session): void {
    const call = session.isOpen ? lane.ready.shift() : undefined;
    if (call === undefined) {
      this.#release(hostId);
      this.#ask(lane);
      return;
    }
    if (!this.#link.bringing(call.dependencies, () => this.#send(call, lane, hostId, session))) {
      this.#send(call, lane, hostId, session);
    }
  }

  #send(call: TaskCall, lane: Lane, hostId: string, session: Session): void {
    const failed = call.dependencies.find(({ outcome }) => outcome?.ok === false);
    if (failed !== undefined || !session.isOpen) {
      this.#enqueue(call);
      return this.#next(lane, hostId, session);
    }
    const dependencies = call.dependencies.flatMap(({ outcome }) =>
      outcome?.ok === true ? (outcome.value ?? []) : [],
    );
    session.call(call.route, call.args, dependencies, {
      resolve: (value) => {
        this.#link.settle(call.entry, value);
        this.#next(lane, hostId, session);
      },
      reject: (error) => {
        const failure = this.#link.readFailure(error);
        if (call.retriesLeft !== 0 && this.#link.retryable(failure, call.retryExceptions)) {
          call.retriesLeft -= 1;
          lane.ready.push(call);
        } else {
          call.entry.reject(failure);
        }
        this.#next(lane, hostId, session);
      },
      lose: (reason) => this.#lost(lane, hostId, call, reason),
    });
  }

  #lost(lane: Lane, hostId: string, call: TaskCall, reason: DeathCause): void {
    this.#release(hostId);
    if (call.retriesLeft !== 0 && !finalKinds.has(reason.kind)) {
      call.retriesLeft -= 1;
      this.#enqueue(call);
    } else {
      call.entry.reject(this.#link.describe(taskDeath(call.entry.label, reason)));
    }
  }
}
