/** The workers of a session's tasks: leased by what a task needs, kept for the next of its kind, ended when too many of them are idle. */
import type { HostStats } from "../host/control.ts";
import type { Allocation } from "../placement/pool.ts";
import type { ResourceRequest, Scheduler } from "../placement/scheduler.ts";
import { scopeOf } from "../rpc/demand.ts";
import type { Isolation, WorkerLease, WorkerRequest } from "../rpc/directory.ts";
import type { DeathCause } from "../shared/errors.ts";
import { type Host, HostLostError } from "./launch/host.ts";
import type { Launcher } from "./launch/launcher.ts";

interface Lease {
  readonly host: Host;
  readonly allocation: Allocation;
  readonly holder: string;
  /** The placement group that it runs in. */
  readonly groupId: string | undefined;
  /** Which others may do the same work. */
  readonly kind: string;
}

const askerGone: DeathCause = { kind: "unreachable", message: "who asked for it is gone" };

export interface WorkersParts {
  readonly driverId: string;
  readonly launcher: () => Launcher;
  readonly scheduler: Scheduler;
  /** Of actors and tasks that do not say. */
  readonly isolation: Isolation;
  /** Workers that wait for tasks; tasks that wait for tasks may have needed more. */
  readonly maxIdle: number;
  readonly isLiving: (hostId: string) => boolean;
  /** Whether actors that it made live. */
  readonly ownsActors: (hostId: string) => boolean;
}

interface Idle {
  readonly host: Host;
  readonly kind: string;
}

export class Workers {
  readonly #parts: WorkersParts;
  readonly #leases: Map<string, Lease> = new Map();
  /** Leases that are asked for, by who asks and its ticket. */
  readonly #asked: Map<string, Map<number, ResourceRequest>> = new Map();
  readonly #idle: Idle[] = [];

  constructor(parts: WorkersParts) {
    this.#parts = parts;
  }

  /** Resolves when there is room for one, or never will be, or it was withdrawn. */
  async lease(worker: WorkerRequest, holder: string, ticket: number): Promise<WorkerLease> {
    const { demand, kind } = worker;
    const request = this.#parts.scheduler.request(demand, "a task");
    const asked = this.#asked.get(holder) ?? new Map<number, ResourceRequest>();
    this.#asked.set(holder, asked.set(ticket, request));
    const outcome = await request.outcome;
    asked.delete(ticket);
    if (outcome.kind === "withdrawn") return { state: "withdrawn" };
    if (outcome.kind === "refused") {
      return { state: "refused", cause: { kind: outcome.refusal, message: outcome.reason } };
    }
    const { allocation } = outcome;
    const { driverId, isLiving } = this.#parts;
    try {
      // Much may have happened until it is its turn: its node may be gone, or who asked for it.
      const isAsked = (): boolean => holder === driverId || isLiving(holder);
      const isWanted = (): boolean => isAsked() && !allocation.isLost;
      const host = isWanted()
        ? await this.#workerOn(allocation.nodeId, worker, isWanted)
        : undefined;
      // It would be asked for again and again: that it cannot be started is the answer.
      const cause = await host?.prepared;
      if (cause !== undefined) {
        allocation.release();
        return { state: "refused", cause };
      }
      if (host === undefined || !isWanted()) {
        if (host !== undefined) void host.terminate(askerGone);
        allocation.release();
        return isAsked()
          ? this.lease(worker, holder, ticket)
          : { state: "refused", cause: askerGone };
      }
      const groupId = scopeOf(demand)?.group.groupId;
      this.#leases.set(host.id, { host, allocation, holder, groupId, kind });
      return { state: "leased", hostId: host.id };
    } catch (error) {
      allocation.release();
      if (error instanceof HostLostError) return { state: "refused", cause: error.deathCause };
      throw error;
    }
  }

  /** Its asker has no use for it any more. One that has its place already is leased, and given back. */
  withdraw(holder: string, ticket: number): void {
    this.#asked.get(holder)?.get(ticket)?.withdraw();
  }

  release(hostId: string): void {
    const lease = this.#leases.get(hostId);
    if (lease === undefined) return;
    this.#leases.delete(hostId);
    // One that cannot be talked to any more is ending, and would only be leased in vain.
    const { host, kind } = lease;
    if (this.#parts.isLiving(hostId) && host.channel.isOpen) this.#idle.push({ host, kind });
    lease.allocation.release();
    if (this.#idle.length <= this.#parts.maxIdle) return;
    const longest = this.#idle.shift();
    if (longest === undefined) return;
    void this.#endIdle(
      longest,
      ({ exportedObjects, outstandingCalls }) => exportedObjects > 0 || outstandingCalls > 0,
    );
  }

  /** Ends one that is leased. */
  async end(hostId: string, cause: DeathCause): Promise<void> {
    await this.#leases.get(hostId)?.host.terminate(cause);
  }

  /** Ends those that run in a placement group. */
  async endGroup(groupId: string, cause: DeathCause): Promise<void> {
    const leases = [...this.#leases.values()].filter((lease) => lease.groupId === groupId);
    await Promise.all(leases.map(({ host }) => host.terminate(cause)));
  }

  /** While its task waits for others, its CPUs are theirs. */
  setBlocked(hostId: string, blocked: boolean): void {
    this.#leases.get(hostId)?.allocation.lend(blocked);
  }

  /** That host is gone: as a worker, and as one who leased or asked for some. */
  hostGone(host: Host): void {
    const index = this.#idle.findIndex((idle) => idle.host === host);
    if (index >= 0) this.#idle.splice(index, 1);
    for (const [workerId, lease] of this.#leases) {
      if (workerId === host.id || lease.holder === host.id) this.release(workerId);
    }
    for (const request of this.#asked.get(host.id)?.values() ?? []) request.withdraw();
    this.#asked.delete(host.id);
  }

  /** Its node is emptied: those that wait for tasks end, unless they are still needed. */
  endIdleOn(nodeId: string): void {
    for (const idle of this.#idle.filter(({ host }) => host.nodeId === nodeId)) {
      this.#idle.splice(this.#idle.indexOf(idle), 1);
      // What others hold of it is handed over.
      void this.#endIdle(idle, ({ outstandingCalls }) => outstandingCalls > 0);
    }
  }

  async #workerOn(
    nodeId: string,
    { isolation, runtimeEnv, moduleUrl, kind }: WorkerRequest,
    isWanted: () => boolean,
  ): Promise<Host | undefined> {
    const index = this.#idle.findLastIndex(
      (idle) => idle.host.nodeId === nodeId && idle.kind === kind,
    );
    const [idle] = index < 0 ? [] : this.#idle.splice(index, 1);
    if (idle !== undefined) return idle.host;
    const own = this.#parts.isolation === "process" ? "process" : "thread";
    const request = { nodeId, isolation: isolation ?? own, runtimeEnv, moduleUrl };
    return this.#parts.launcher().take(request, isWanted);
  }

  /** Ends an idle worker, unless it is used, or actors that it made live. */
  async #endIdle(idle: Idle, isUsed: (stats: HostStats) => boolean): Promise<void> {
    const { host } = idle;
    try {
      const stats = await host.control<HostStats>((control) => control.stats());
      if (isUsed(stats) || this.#parts.ownsActors(host.id)) this.#idle.push(idle);
      else await host.stop({ kind: "exited", message: "it was idle and was ended" });
    } catch (error) {
      // It ended by itself meanwhile, which is what was wanted.
      if (!(error instanceof HostLostError)) throw error;
    }
  }
}
