/**
 * The workers of a session's tasks: leased by the needs of a task, kept for the next task of their
 * kind, and ended when too many are idle.
 */
import type { HostStats } from "../host/host-control.ts";

import type { Allocation, Placement, ResourceRequest } from "../placement/placement.ts";
import { scopeOf } from "../rpc/resource-demand.ts";
import type { Isolation, WorkerLease, WorkerRequest } from "../rpc/directory.ts";
import { type DeathCause, SessionEndedError } from "../shared/errors.ts";
import { causeOfStart } from "./actors/incarnation.ts";
import { type Host, HostLostError, type HostRequest } from "./launch/host.ts";
import type { Launcher } from "./launch/launcher.ts";
import { timers } from "../shared/machine/timers.ts";

interface Lease {
  readonly host: Host;
  readonly allocation: Allocation;
  readonly holder: string;
  /** The placement group that it runs in. */
  readonly groupId: string | undefined;
  /** Names the requests that it can serve. */
  readonly kind: string;
}

/**
 * How long a worker may take to say that it is free, or to hand over what others hold of it, before
 * its thread counts as blocked by its task, in ms.
 */
const answerMs = 2_000;

const askerGone: DeathCause = { kind: "unreachable", message: "its requester is gone" };

export interface WorkersParts {
  readonly driverId: string;
  readonly launcher: () => Launcher;
  readonly placement: Placement;
  /** The isolation of actors and tasks that do not set their own. */
  readonly isolation: Isolation;
  /** The most idle workers; tasks that wait for other tasks may have needed more. */
  readonly maxIdle: number;
  readonly isLiving: (hostId: string) => boolean;
  /** Whether actors that it made are alive. */
  readonly ownsActors: (hostId: string) => boolean;
}

interface Idle {
  readonly host: Host;
  readonly kind: string;
}

export class Workers {
  readonly #parts: WorkersParts;
  readonly #leases: Map<string, Lease> = new Map();
  /** Pending requests for leases, by requester and ticket. */
  readonly #asked: Map<string, Map<number, ResourceRequest>> = new Map();
  readonly #idle: Idle[] = [];

  constructor(parts: WorkersParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when there is room for a worker, when there never will be, or when the request was
   * withdrawn.
   */
  async lease(worker: WorkerRequest, holder: string, ticket: number): Promise<WorkerLease> {
    const { demand } = worker;
    const request = this.#parts.placement.request(demand, "a task");
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
      // While the request waited, its node or its requester may have gone.
      const isAsked = (): boolean => holder === driverId || isLiving(holder);
      const isWanted = (): boolean => isAsked() && !allocation.isLost;
      const { nodeId, env } = allocation;
      // Workers with other variables are of another kind.
      const kind = env === undefined ? worker.kind : JSON.stringify([worker.kind, env]);
      const wanted = { ...worker, kind, variables: env };
      const host = isWanted() ? await this.#workerOn(nodeId, wanted, isWanted) : undefined;
      // A refusal is the answer, because the requester would repeat the request for ever.
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
      if (error instanceof SessionEndedError) throw error;
      // Whatever the system says of a process that it does not start, the task hears as a death.
      return { state: "refused", cause: causeOfStart(error) };
    }
  }

  /** Withdraws a request. If it already has its place, the worker is leased and returned. */
  withdraw(holder: string, ticket: number): void {
    this.#asked.get(holder)?.get(ticket)?.withdraw();
  }

  release(hostId: string): void {
    const lease = this.#leases.get(hostId);
    if (lease === undefined) return;
    this.#leases.delete(hostId);
    // A worker without its channel is ending, and a lease of it would be in vain.
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

  /** Ends a leased worker. */
  async end(hostId: string, cause: DeathCause): Promise<void> {
    await this.#leases.get(hostId)?.host.terminate(cause);
  }

  /** Ends the workers in a placement group. */
  async endGroup(groupId: string, cause: DeathCause): Promise<void> {
    const leases = [...this.#leases.values()].filter((lease) => lease.groupId === groupId);
    await Promise.all(leases.map(({ host }) => host.terminate(cause)));
  }

  /** Lends its CPUs to other tasks while its own task waits for some. */
  setBlocked(hostId: string, blocked: boolean): void {
    this.#leases.get(hostId)?.allocation.lend(blocked);
  }

  /** Handles the end of a host: as a worker, and as a holder or requester of leases. */
  hostGone(host: Host): void {
    const index = this.#idle.findIndex((idle) => idle.host === host);
    if (index >= 0) this.#idle.splice(index, 1);
    for (const [workerId, lease] of this.#leases) {
      if (workerId === host.id) this.release(workerId);
      else if (lease.holder === host.id) void this.#forsaken(lease);
    }
    for (const request of this.#asked.get(host.id)?.values() ?? []) request.withdraw();
    this.#asked.delete(host.id);
  }

  /**
   * Ends a worker whose holder has died, with the task that nobody waits for; its CPUs are free
   * when it has ended. One that has nothing to do is kept.
   */
  async #forsaken({ host, holder }: Lease): Promise<void> {
    try {
      const free = host.control((control) => control.forsaken(holder));
      const isFree = await inTime(free);
      if (isFree === true) return this.release(host.id);
      const cause: DeathCause = {
        kind: "owner-died",
        message: `it ran a task of ${holder}, which has died`,
      };
      // A thread that is blocked hands nothing over.
      if (isFree === false) await inTime(host.stop(cause));
      await host.terminate(cause);
    } catch (error) {
      // It ended by itself meanwhile, as wanted.
      if (!(error instanceof HostLostError)) throw error;
    }
  }

  /** Ends idle workers of a draining node, unless they are still needed. */
  endIdleOn(nodeId: string): void {
    for (const idle of this.#idle.filter(({ host }) => host.nodeId === nodeId)) {
      this.#idle.splice(this.#idle.indexOf(idle), 1);
      // Objects of it that others hold are handed over.
      void this.#endIdle(idle, ({ outstandingCalls }) => outstandingCalls > 0);
    }
  }

  async #workerOn(
    nodeId: string,
    { isolation, kind, ...wanted }: WorkerRequest & Pick<HostRequest, "variables">,
    isWanted: () => boolean,
  ): Promise<Host | undefined> {
    const index = this.#idle.findLastIndex(
      (idle) => idle.host.nodeId === nodeId && idle.kind === kind,
    );
    const [idle] = index < 0 ? [] : this.#idle.splice(index, 1);
    if (idle !== undefined) return idle.host;
    const own = this.#parts.isolation === "process" ? "process" : "thread";
    const { runtimeEnv, inherited, variables, moduleUrl } = wanted;
    const settings = { runtimeEnv, inherited, variables };
    const request = { nodeId, isolation: isolation ?? own, moduleUrl, ...settings };
    return this.#parts.launcher().take(request, isWanted);
  }

  /** Ends an idle worker, unless it is in use, or actors that it made are alive. */
  async #endIdle(idle: Idle, isUsed: (stats: HostStats) => boolean): Promise<void> {
    const { host } = idle;
    try {
      const stats = await host.control<HostStats>((control) => control.stats());
      if (isUsed(stats) || this.#parts.ownsActors(host.id)) this.#idle.push(idle);
      else await host.stop({ kind: "exited", message: "it was idle and was ended" });
    } catch (error) {
      // It ended by itself meanwhile, as wanted.
      if (!(error instanceof HostLostError)) throw error;
    }
  }
}

/** Resolves to undefined where it takes too long. */
async function inTime<T>(answer: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = timers.setTimeout(late.resolve, answerMs, undefined);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    timers.clearTimeout(timer);
  }
}
