/**
 * The Directory in the driver's memory: it locates actors and workers for the driver itself, and in
 * plain data for each host.
 *
 * This file is composition: actor-registry knows the actors, workers the workers, cluster the nodes
 * and groups; directory-answers asks them. The hosts are here.
 */
import { asked, type DriverControl, methodsOf, reports } from "../host/host-control.ts";
import { causeFromData, causeToData } from "../protocol/death-cause-data.ts";
import { scopeOf } from "../rpc/resource-demand.ts";
import type { ActorInfo, Directory, RuntimeEnv } from "../rpc/directory.ts";
import type { HostReport, InsideDirectory } from "../rpc/state.ts";
import { type DeathCause, RaySystemError, SessionEndedError } from "../shared/errors.ts";
import { ActorRegistry } from "./actors/actor-registry.ts";
import type { Supervisor, SupervisorParts } from "./actors/supervisor.ts";
import { LocalCluster } from "./cluster.ts";
import type { EngineSession } from "./engine/engine-session.ts";
import { actorAnswers, clusterAnswers, insideAnswers, workerAnswers } from "./directory-answers.ts";
import { type Host, HostLostError } from "./launch/host.ts";
import { joinHosts } from "./nodes/join-hosts.ts";
import { Parent } from "./parent.ts";
import { Workers } from "./workers.ts";

export interface DirectorySettings {
  readonly driverId: string;
  readonly namespace: string;
  /** The most idle workers; tasks that wait for other tasks may have needed more. */
  readonly maxIdleWorkers: number;
  /** The cluster on which the session runs; undefined: the session's own nodes. */
  readonly engine: Pick<EngineSession, "view" | "refresh" | "foreign"> | undefined;
  /** Returns the observer of the session. */
  readonly inside: () => InsideDirectory & { reported(hostId: string, report: HostReport): void };
  /** Takes tasks of hosts that may be part of a cycle. */
  readonly suspect: (taskNodeIds: readonly string[]) => void;
}

export class LocalDirectory {
  readonly cluster: LocalCluster;
  /** The Directory for the driver itself. */
  readonly answers: Directory;
  readonly #settings: DirectorySettings;
  readonly #parts: Omit<SupervisorParts, "onDead" | "onSharedEnd">;
  readonly #actors: ActorRegistry;
  readonly #workers: Workers;
  readonly #hosts: Map<string, Host> = new Map();
  /** Hosts as those that start actors and tasks. */
  readonly #parents: Map<string, Parent> = new Map();

  constructor(settings: DirectorySettings, parts: Omit<SupervisorParts, "onDead" | "onSharedEnd">) {
    this.#settings = settings;
    this.#parts = parts;
    this.#actors = new ActorRegistry(settings.namespace, parts);
    this.#workers = new Workers({
      driverId: settings.driverId,
      launcher: parts.launcher,
      placement: parts.placement,
      isolation: parts.isolation,
      maxIdle: settings.maxIdleWorkers,
      isLiving: (hostId) => this.#hosts.has(hostId),
      ownsActors: (hostId) => this.#actors.ownsLiving(hostId),
    });
    this.cluster = new LocalCluster({
      placement: parts.placement,
      engineNodes: () => settings.engine?.view?.nodes,
      leaveNode: (nodeId, cause) => this.#leaveNode(nodeId, cause),
      endNode: (nodeId, cause) => parts.launcher().endNode(nodeId, cause),
      actorEnded: async (actorId) => this.#actors.find(actorId)?.record.ended(),
      endGroup: (groupId, cause) => this.#endGroup(groupId, cause),
    });
    const { driverId, inside } = settings;
    this.answers = {
      ...actorAnswers(this.#actors, (info) => this.#registered(info), driverId),
      ...workerAnswers(this.#workers, parts.placement, driverId),
      ...clusterAnswers(this.cluster, async () => settings.engine?.refresh()),
      ...insideAnswers(inside),
      foreign: async (request) => settings.engine?.foreign(request) ?? {},
      death: async (hostId) => this.#hosts.get(hostId)?.exited ?? hostGone,
      connect: async (hostId) => {
        // The driver has a session with every living host from its start.
        throw new RaySystemError(`host ${hostId} is gone`);
      },
    };
  }

  addHost(host: Host): void {
    this.#hosts.set(host.id, host);
    void host.exited.then(() => {
      this.#hosts.delete(host.id);
      this.#parents.delete(host.id);
      this.#workers.hostGone(host);
      this.#actors.hostGone(host.id);
    });
  }

  /** From now on, what the code of that host starts has those settings below its own. */
  handsDown(hostId: string, settings: RuntimeEnv): void {
    const parent = this.#parents.get(hostId);
    if (parent !== undefined) parent.settings = settings;
  }

  /** Ends every actor with the runtime; nothing is placed any more. */
  end(cause: DeathCause): void {
    this.#actors.end(cause);
    this.#parts.placement.close(
      new SessionEndedError(`no resources are allocated any more: ${cause.message}`),
    );
  }

  /** Returns the living hosts. */
  hosts(): readonly Host[] {
    return [...this.#hosts.values()];
  }

  /** Whether its creator has yet to start that actor. */
  isRegistered(actorId: string): boolean {
    return this.#actors.find(actorId)?.record.state === "registered";
  }

  /** Returns the living actors, and the dead ones that are remembered. */
  actors(): readonly Supervisor[] {
    return this.#actors.all();
  }

  waitingRequests(): number {
    return this.#parts.placement.pending().length;
  }

  /** Returns the lines of requests for resources. */
  waitingLines(): ReturnType<SupervisorParts["placement"]["pendingLines"]> {
    return this.#parts.placement.pendingLines();
  }

  /** Returns the Directory for one host, in plain data. */
  controlFor(fromHostId: string): DriverControl {
    const { answers } = this;
    const parent = new Parent();
    this.#parents.set(fromHostId, parent);
    return {
      ...methodsOf(answers, [...asked, ...reports]),
      register: (spec) => {
        const registered = this.#actors.registerFrom(fromHostId, parent.ofActor(spec));
        const refusal = registered.state === "new" ? parent.refuses(spec.runtimeEnv) : undefined;
        if (refusal !== undefined) this.#actors.get(spec.info.actorId).abandon(refusal);
        return registered;
      },
      foreign: async (request) => parent.refusesForeign(request) ?? answers.foreign(request),
      start: (actorId, args) => {
        // The refs in the arguments are claimed at once, because the start may wait long: they are
        // no longer in flight.
        for (const value of [args.values, ...args.dependencies])
          this.#parts.caller().values.claim(value);
        answers.start(actorId, args);
      },
      abortSignal: (actorId, index, reason) => {
        this.#parts.caller().values.claim(reason);
        answers.abortSignal(actorId, index, reason);
      },
      abandon: (actorId, cause) => answers.abandon(actorId, causeFromData(cause)),
      locate: async (info) => {
        const location = await answers.locate(info);
        return location.state === "alive"
          ? location
          : { state: "dead", cause: causeToData(location.cause) };
      },
      loss: async (actorId, incarnation) => {
        const { restarting, cause } = await answers.loss(actorId, incarnation);
        return { restarting, cause: causeToData(cause) };
      },
      connect: async (from, to, wayId) => joinHosts(this.#host(from), this.#host(to), wayId),
      death: async (hostId) => causeToData(await answers.death(hostId)),
      reported: (report) => this.#settings.inside().reported(fromHostId, report),
      suspect: (ids) => this.#settings.suspect(ids),
      leaseWorker: async (request, ticket) => {
        const cause = parent.refuses(request.runtimeEnv);
        if (cause !== undefined) return { state: "refused", cause };
        const lease = await this.#workers.lease(parent.ofTask(request), fromHostId, ticket);
        if (lease.state === "leased" && !this.#hosts.has(fromHostId)) {
          answers.releaseWorker(lease.hostId);
        }
        return lease;
      },
      withdrawWorker: (ticket) => this.#workers.withdraw(fromHostId, ticket),
      exiting: (actorId, incarnation, cause) =>
        this.#actors.find(actorId)?.exiting(incarnation, causeFromData(cause)),
      exited: (actorId, incarnation, cause) =>
        this.#actors.get(actorId).exited(incarnation, causeFromData(cause)),
    };
  }

  #host(hostId: string): Host {
    const host = this.#hosts.get(hostId);
    if (host === undefined) throw new RaySystemError(`host ${hostId} is gone`);
    return host;
  }

  #leaveNode(nodeId: string, cause: DeathCause): boolean {
    for (const actor of this.#actors.all()) {
      if (actor.record.life.host?.nodeId === nodeId) void actor.leave(cause);
    }
    this.#workers.endIdleOn(nodeId);
    this.#parts.slots.endEmptyOn(nodeId, cause);
    return this.hosts().every((host) => host.nodeId !== nodeId);
  }

  /** Ends actors and tasks that run in a removed placement group. */
  async #endGroup(groupId: string, cause: DeathCause): Promise<void> {
    const actors = this.#actors
      .all()
      .filter(({ spec }) => scopeOf(spec.demand)?.group.groupId === groupId);
    await Promise.all([
      ...actors.map((actor) => actor.kill(cause, true)),
      this.#workers.endGroup(groupId, cause),
    ]);
  }

  /**
   * Returns the actor of a handle. A handle that came straight from its creator may arrive before
   * the creator's registration.
   */
  async #registered({ actorId, owner }: ActorInfo): Promise<Supervisor | undefined> {
    const known = this.#actors.find(actorId);
    const creator = this.#hosts.get(owner);
    if (known !== undefined || creator === undefined) return known;
    try {
      await creator.control((control) => control.registered());
    } catch (error) {
      if (!(error instanceof HostLostError)) throw error;
    }
    return this.#actors.find(actorId);
  }
}

const hostGone: DeathCause = { kind: "unreachable", message: "its host is gone" };
