/**
 * The Directory in the driver's memory: it locates actors and workers for the driver itself, and in
 * plain data for each host.
 *
 * This file is composition: actor-registry knows the actors, workers the workers, cluster the nodes
 * and groups. The hosts are here.
 */
import { asked, type DriverControl, methodsOf, told } from "../host/control.ts";
import type { Encoded } from "../protocol/codec.ts";
import { causeFromData, causeToData } from "../protocol/cause.ts";
import type {
  ClusterResources,
  GroupInfo,
  GroupRegistration,
  GroupSpec,
  GroupState,
  NodeInfo,
  NodeSpec,
} from "../rpc/cluster.ts";
import { type Demand, scopeOf } from "../rpc/demand.ts";
import type {
  ActorInfo,
  ActorLocation,
  ActorLoss,
  ActorSpec,
  ActorStatus,
  Directory,
  Registration,
  StartArguments,
  WorkerLease,
  WorkerRequest,
} from "../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import type {
  HostReport,
  InsideDirectory,
  StateAnswer,
  StateQuery,
  TraceEvent,
} from "../rpc/state.ts";
import type { Channel } from "../transport/channel.ts";
import { ActorRegistry, forgotten } from "./actors/actor-registry.ts";
import { LocalCluster } from "./cluster.ts";
import { type Host, HostLostError } from "./launch/host.ts";
import { joinHosts } from "./nodes/join-hosts.ts";
import { statusOf } from "./observe/status.ts";
import type { Supervisor, SupervisorParts } from "./actors/supervisor.ts";
import { Workers } from "./workers.ts";

export interface DirectorySettings {
  readonly driverId: string;
  readonly namespace: string;
  /** The most idle workers; tasks that wait for other tasks may have needed more. */
  readonly maxIdleWorkers: number;
  /** Returns the observer of the session. */
  readonly inside: () => InsideDirectory & { reported(hostId: string, report: HostReport): void };
  /** Takes tasks of hosts that may be part of a cycle. */
  readonly suspect: (taskNodeIds: readonly string[]) => void;
}

export class LocalDirectory implements Directory {
  readonly cluster: LocalCluster;
  readonly #settings: DirectorySettings;
  readonly #parts: Omit<SupervisorParts, "onDead" | "onSharedEnd">;
  readonly #actors: ActorRegistry;
  readonly #workers: Workers;
  readonly #hosts: Map<string, Host> = new Map();

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
      ownsActors: (hostId) => this.#actors.livesOwnedBy(hostId),
    });
    this.cluster = new LocalCluster({
      placement: parts.placement,
      leaveNode: (nodeId, cause) => this.#leaveNode(nodeId, cause),
      endNode: (nodeId, cause) => parts.launcher().endNode(nodeId, cause),
      actorEnded: async (actorId) => this.#actors.find(actorId)?.record.ended(),
      endGroup: (groupId, cause) => this.#endGroup(groupId, cause),
    });
  }

  addHost(host: Host): void {
    this.#hosts.set(host.id, host);
    void host.exited.then(() => {
      this.#hosts.delete(host.id);
      this.#workers.hostGone(host);
      this.#actors.hostGone(host.id);
    });
  }

  register(spec: ActorSpec): Registration {
    return this.#actors.register(spec, this.#settings.driverId);
  }

  start(actorId: string, args: StartArguments): void {
    this.#actors.start(actorId, args);
  }

  abortSignal(actorId: string, index: number, reason: Encoded): void {
    this.#actors.find(actorId)?.abortSignal(index, reason);
  }

  async actorEnded(actorId: string): Promise<void> {
    await this.#actors.find(actorId)?.record.ended();
  }

  /** Ends every actor with the runtime. */
  end(cause: DeathCause): void {
    this.#actors.end(cause);
  }

  abandon(actorId: string, cause: DeathCause): void {
    this.#actors.get(actorId).abandon(cause);
  }

  async find(name: string, namespace: string | undefined): Promise<ActorInfo | undefined> {
    return this.#actors.named(name, namespace)?.spec.info;
  }

  async list(
    allNamespaces: boolean,
  ): Promise<{ readonly name: string; readonly namespace: string }[]> {
    return this.#actors.names(allNamespaces);
  }

  async locate(info: ActorInfo): Promise<ActorLocation> {
    return (await this.#registered(info))?.record.located() ?? { state: "dead", cause: forgotten };
  }

  async loss(actorId: string, incarnation: number): Promise<ActorLoss> {
    const actor = this.#actors.find(actorId);
    return actor?.record.loss(incarnation) ?? { restarting: false, cause: forgotten };
  }

  outOfScope(actorId: string): void {
    this.#actors.outOfScope(actorId);
  }

  async kill(info: ActorInfo, noRestart: boolean): Promise<void> {
    // When possible, no turn passes in between: a call right after this finds the actor ending.
    const actor = this.#actors.find(info.actorId) ?? (await this.#registered(info));
    await actor?.kill({ kind: "killed", message: "it was killed by ray.kill" }, noRestart);
  }

  async death(hostId: string): Promise<DeathCause> {
    return this.#hosts.get(hostId)?.exited ?? { kind: "unreachable", message: "its host is gone" };
  }

  async connect(hostId: string): Promise<Channel> {
    // The driver has a session with every living host from its start.
    throw new RaySystemError(`host ${hostId} is gone`);
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

  state(query: StateQuery): Promise<StateAnswer> {
    return this.#settings.inside().state(query);
  }

  timeline(): Promise<readonly TraceEvent[]> {
    return this.#settings.inside().timeline();
  }

  metricsText(): Promise<string> {
    return this.#settings.inside().metricsText();
  }

  async actorStatus(actorId: string): Promise<ActorStatus | undefined> {
    const actor = this.#actors.find(actorId);
    return actor === undefined ? undefined : await statusOf(actor);
  }

  async whyWaiting(demand: Demand): Promise<string | undefined> {
    return this.#parts.placement.whyWaiting(demand);
  }

  leaseWorker(request: WorkerRequest, ticket: number): Promise<WorkerLease> {
    return this.#workers.lease(request, this.#settings.driverId, ticket);
  }

  withdrawWorker(ticket: number): void {
    this.#workers.withdraw(this.#settings.driverId, ticket);
  }

  releaseWorker(hostId: string): void {
    this.#workers.release(hostId);
  }

  endWorker(hostId: string): Promise<void> {
    return this.#workers.end(hostId, {
      kind: "killed",
      message: "its task was cancelled with force",
    });
  }

  setBlocked(hostId: string, blocked: boolean): void {
    this.#workers.setBlocked(hostId, blocked);
  }

  async nodes(): Promise<readonly NodeInfo[]> {
    return this.cluster.nodes();
  }

  async resources(): Promise<ClusterResources> {
    return this.cluster.resources();
  }

  async addNode(spec: NodeSpec): Promise<NodeInfo> {
    return this.cluster.addNode(spec);
  }

  removeNode(nodeId: string): Promise<boolean> {
    return this.cluster.removeNode(nodeId);
  }

  drainNode(nodeId: string, timeoutMs: number): Promise<boolean | undefined> {
    return this.cluster.drainNode(nodeId, timeoutMs);
  }

  createGroup(spec: GroupSpec): GroupRegistration {
    return this.cluster.createGroup(spec);
  }

  groupReady(groupId: string): Promise<GroupState> {
    return this.cluster.groupReady(groupId);
  }

  removeGroup(groupId: string): Promise<void> {
    return this.cluster.removeGroup(groupId);
  }

  async groups(): Promise<readonly GroupInfo[]> {
    return this.cluster.groups();
  }

  /** Returns the Directory for one host, in plain data. */
  controlFor(fromHostId: string): DriverControl {
    return {
      ...methodsOf<Directory, (typeof asked)[number] | (typeof told)[number]>(this, [
        ...asked,
        ...told,
      ]),
      register: (spec) => this.#actors.registerFrom(fromHostId, spec),
      start: (actorId, args) => {
        // The refs in the arguments are claimed at once, because the start may wait long: they are
        // no longer in flight.
        for (const value of [args.values, ...args.dependencies])
          this.#parts.caller().values.claim(value);
        this.start(actorId, args);
      },
      abortSignal: (actorId, index, reason) => {
        this.#parts.caller().values.claim(reason);
        this.abortSignal(actorId, index, reason);
      },
      abandon: (actorId, cause) => this.abandon(actorId, causeFromData(cause)),
      locate: async (info) => {
        const location = await this.locate(info);
        return location.state === "alive"
          ? location
          : { state: "dead", cause: causeToData(location.cause) };
      },
      loss: async (actorId, incarnation) => {
        const { restarting, cause } = await this.loss(actorId, incarnation);
        return { restarting, cause: causeToData(cause) };
      },
      connect: async (from, to, wayId) => joinHosts(this.#host(from), this.#host(to), wayId),
      death: async (hostId) => causeToData(await this.death(hostId)),
      reported: (report) => this.#settings.inside().reported(fromHostId, report),
      suspect: (ids) => this.#settings.suspect(ids),
      leaseWorker: async (request, ticket) => {
        const lease = await this.#workers.lease(request, fromHostId, ticket);
        if (lease.state === "leased" && !this.#hosts.has(fromHostId)) {
          this.releaseWorker(lease.hostId);
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
    this.#parts.seats.endEmptyOn(nodeId, cause);
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
