/**
 * The Directory in the driver's memory: actors and their names, hosts, leased workers; and the same in plain data for each host.
 *
 * A name is free again when its actor is dead.
 */
import type { DriverControl, HostStats } from "../host/control.ts";
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
import type { Allocation } from "../placement/pool.ts";
import type { ResourceRequest, Scheduler } from "../placement/scheduler.ts";
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
import { Fifo } from "../shared/fifo.ts";
import { type Host, HostLostError } from "./host.ts";
import { joinHosts } from "./join-hosts.ts";
import type { Launcher } from "./launch.ts";
import { LocalCluster } from "./cluster.ts";
import { statusOf } from "./status.ts";
import { Supervisor, type SupervisorParts } from "./supervisor.ts";

interface Lease {
  readonly host: Host;
  readonly allocation: Allocation;
  readonly holder: string;
  /** The placement group that it runs in. */
  readonly groupId: string | undefined;
  /** Which others may do the same work. */
  readonly kind: string;
}

export interface DirectorySettings {
  readonly driverId: string;
  readonly namespace: string;
  /** Workers that wait for tasks; tasks that wait for tasks may have needed more. */
  readonly maxIdleWorkers: number;
  /** Gathers what can be seen of the session. */
  readonly inside: () => InsideDirectory & { reported(hostId: string, report: HostReport): void };
}

export class LocalDirectory implements Directory {
  readonly cluster: LocalCluster;
  readonly #parts: Omit<SupervisorParts, "onDead">;
  readonly #driverId: string;
  readonly #settings: DirectorySettings;
  readonly #namespace: string;
  readonly #maxIdleWorkers: number;
  readonly #actors: Map<string, Supervisor> = new Map();
  readonly #names: Map<string, string> = new Map();
  readonly #hosts: Map<string, Host> = new Map();
  readonly #dead: Fifo<Supervisor> = new Fifo();
  /** Ids that handles in hosts were given before it was known that the actor exists. */
  readonly #aliases: Map<string, string> = new Map();
  /** Registered and not started, by the host that is to start them. */
  readonly #unstarted: Map<string, Set<Supervisor>> = new Map();
  readonly #leases: Map<string, Lease> = new Map();
  /** Leases that are asked for, by who asks. */
  readonly #asked: Map<string, Set<ResourceRequest>> = new Map();
  readonly #idle: { readonly host: Host; readonly kind: string }[] = [];

  constructor(settings: DirectorySettings, parts: Omit<SupervisorParts, "onDead">) {
    this.#driverId = settings.driverId;
    this.#settings = settings;
    this.#namespace = settings.namespace;
    this.#maxIdleWorkers = settings.maxIdleWorkers;
    this.#parts = parts;
    this.cluster = new LocalCluster({
      scheduler: parts.scheduler,
      endNode: (nodeId, cause) => this.#launcher.endNode(nodeId, cause),
      actorEnded: async (actorId) => this.#actors.get(actorId)?.ended(),
      endGroup: (groupId, cause) => this.#endGroup(groupId, cause),
    });
  }

  get #launcher(): Launcher {
    return this.#parts.launcher();
  }

  get #scheduler(): Scheduler {
    return this.#parts.scheduler;
  }

  addHost(host: Host): void {
    this.#hosts.set(host.id, host);
    void host.exited.then(() => {
      this.#hosts.delete(host.id);
      const index = this.#idle.findIndex((idle) => idle.host === host);
      if (index >= 0) this.#idle.splice(index, 1);
      for (const [workerId, lease] of this.#leases) {
        if (workerId === host.id || lease.holder === host.id) this.releaseWorker(workerId);
      }
      for (const actor of this.#unstarted.get(host.id) ?? []) {
        actor.abandon({
          kind: "unreachable",
          message: "its creator died before the constructor arguments were ready",
        });
      }
      this.#unstarted.delete(host.id);
      for (const actor of this.#actors.values()) {
        if (actor.owner === host.id) actor.ownerDied(host.id);
      }
      for (const request of this.#asked.get(host.id) ?? []) request.withdraw();
      this.#asked.delete(host.id);
    });
  }

  register(spec: ActorSpec, owner: string = this.#driverId): Registration {
    if (spec.name !== undefined) {
      const namespace = spec.namespace ?? this.#namespace;
      const existing = this.#named(spec.name, namespace);
      if (existing !== undefined) {
        return spec.getIfExists
          ? { state: "existing", info: existing.spec.info }
          : { state: "taken", name: spec.name, namespace };
      }
      this.#names.set(nameKey(spec.name, namespace), spec.info.actorId);
    }
    this.#actors.set(
      spec.info.actorId,
      new Supervisor(spec, spec.namespace ?? this.#namespace, owner, {
        ...this.#parts,
        onDead: (actor) => this.#bury(actor),
      }),
    );
    return { state: "new" };
  }

  /** Keeps the record of a dead actor for a while, so that whoever asks hears why it died. */
  #bury(actor: Supervisor): void {
    this.#dead.push(actor);
    if (this.#dead.size <= keptRecords) return;
    const oldest = this.#dead.shift();
    if (oldest === undefined) return;
    const { spec } = oldest;
    this.#actors.delete(spec.info.actorId);
    if (spec.name === undefined) return;
    const key = nameKey(spec.name, oldest.namespace);
    if (this.#names.get(key) === spec.info.actorId) this.#names.delete(key);
  }

  start(actorId: string, args: StartArguments): void {
    const actor = this.#actor(actorId);
    for (const unstarted of this.#unstarted.values()) unstarted.delete(actor);
    void actor.run(args);
  }

  /** Every actor ends with the runtime. */
  end(cause: DeathCause): void {
    for (const actor of this.#actors.values()) actor.end(cause);
  }

  /** A host registers: its handle has an id of its own, and may die before it starts the actor. */
  #registerFrom(hostId: string, spec: ActorSpec): Registration {
    const registration = this.register(spec, hostId);
    const { actorId } = spec.info;
    if (registration.state === "existing") {
      this.#aliases.set(actorId, registration.info.actorId);
    } else if (registration.state === "new") {
      const actor = this.#actor(actorId);
      const unstarted = this.#unstarted.get(hostId) ?? new Set();
      this.#unstarted.set(hostId, unstarted.add(actor));
    }
    return registration;
  }

  abandon(actorId: string, cause: DeathCause): void {
    this.#actor(actorId).abandon(cause);
  }

  async find(name: string, namespace: string | undefined): Promise<ActorInfo | undefined> {
    return this.#named(name, namespace ?? this.#namespace)?.spec.info;
  }

  async list(
    allNamespaces: boolean,
  ): Promise<{ readonly name: string; readonly namespace: string }[]> {
    return [...this.#actors.values()].flatMap(({ spec, state }) => {
      const namespace = spec.namespace ?? this.#namespace;
      const shown = state !== "dead" && (allNamespaces || namespace === this.#namespace);
      return spec.name !== undefined && shown ? [{ name: spec.name, namespace }] : [];
    });
  }

  async locate(info: ActorInfo): Promise<ActorLocation> {
    return (await this.#registered(info))?.located() ?? { state: "dead", cause: forgotten };
  }

  async loss(actorId: string, incarnation: number): Promise<ActorLoss> {
    return this.#known(actorId)?.loss(incarnation) ?? { restarting: false, cause: forgotten };
  }

  outOfScope(actorId: string): void {
    // A handle that was given another actor's (getIfExists) counts for nothing.
    if (!this.#aliases.delete(actorId)) this.#known(actorId)?.outOfScope();
  }

  async kill(info: ActorInfo, noRestart: boolean): Promise<void> {
    // Without a turn in between where it can be: what is called next finds it ending.
    const actor = this.#known(info.actorId) ?? (await this.#registered(info));
    await actor?.kill({ kind: "killed", message: "it was killed by ray.kill" }, noRestart);
  }

  async connect(hostId: string): Promise<Channel> {
    // The driver has a session with every living host from its start.
    throw new RaySystemError(`host ${hostId} is gone`);
  }

  /** The living ones. */
  hosts(): readonly Host[] {
    return [...this.#hosts.values()];
  }

  /** The living, and the dead that are remembered. */
  actors(): readonly Supervisor[] {
    return [...this.#actors.values()];
  }

  waitingRequests(): number {
    return this.#scheduler.pending().length;
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
    const actor = this.#actors.get(this.#aliases.get(actorId) ?? actorId);
    return actor === undefined ? undefined : await statusOf(actor);
  }

  async whyWaiting(demand: Demand): Promise<string | undefined> {
    return this.#scheduler.whyWaiting(demand);
  }

  async leaseWorker(worker: WorkerRequest, holder: string = this.#driverId): Promise<WorkerLease> {
    const { demand, kind } = worker;
    const request = this.#scheduler.request(demand, "a task");
    const asked = this.#asked.get(holder) ?? new Set();
    this.#asked.set(holder, asked.add(request));
    const outcome = await request.outcome;
    asked.delete(request);
    if (outcome.kind !== "placed") {
      const cause: DeathCause =
        outcome.kind === "refused"
          ? { kind: outcome.refusal, message: outcome.reason }
          : { kind: "unreachable", message: "who asked for it is gone" };
      return { state: "refused", cause };
    }
    const { allocation } = outcome;
    // Its node went between the decision and this turn.
    if (allocation.isLost) return this.leaseWorker(worker, holder);
    try {
      const host = this.#workerOn(allocation.nodeId, worker);
      const groupId = scopeOf(demand)?.group.groupId;
      this.#leases.set(host.id, { host, allocation, holder, groupId, kind });
      return { state: "leased", hostId: host.id };
    } catch (error) {
      allocation.release();
      if (error instanceof HostLostError) return { state: "refused", cause: error.deathCause };
      throw error;
    }
  }

  #workerOn(nodeId: string, { isolation, runtimeEnv, moduleUrl, kind }: WorkerRequest): Host {
    const index = this.#idle.findLastIndex(
      (idle) => idle.host.nodeId === nodeId && idle.kind === kind,
    );
    const [idle] = index < 0 ? [] : this.#idle.splice(index, 1);
    if (idle !== undefined) return idle.host;
    return this.#launcher.take({
      nodeId,
      isolation: isolation ?? (this.#parts.isolation === "process" ? "process" : "thread"),
      runtimeEnv,
      moduleUrl,
    });
  }

  /** Ends what runs in a placement group that is gone. */
  async #endGroup(groupId: string, cause: DeathCause): Promise<void> {
    const actors = [...this.#actors.values()].filter(({ spec }) => {
      return scopeOf(spec.demand)?.group.groupId === groupId;
    });
    const leases = [...this.#leases.values()].filter((lease) => lease.groupId === groupId);
    await Promise.all([
      ...actors.map((actor) => actor.kill(cause, true)),
      ...leases.map(({ host }) => host.terminate(cause)),
    ]);
  }

  releaseWorker(hostId: string): void {
    const lease = this.#leases.get(hostId);
    if (lease === undefined) return;
    this.#leases.delete(hostId);
    // One that cannot be talked to any more is ending, and would only be leased in vain.
    const { host, kind } = lease;
    if (this.#hosts.has(hostId) && host.channel.isOpen) this.#idle.push({ host, kind });
    lease.allocation.release();
    if (this.#idle.length > this.#maxIdleWorkers) void this.#endIdle();
  }

  /** Ends one idle worker, unless others hold objects that it made, or actors that it made live. */
  async #endIdle(): Promise<void> {
    const idle = this.#idle.shift();
    if (idle === undefined) return;
    const { host } = idle;
    try {
      const stats = await host.control<HostStats>((control) => control.stats());
      const isNeeded = [...this.#actors.values()].some(
        (actor) => actor.owner === host.id && actor.state !== "dead",
      );
      if (isNeeded || stats.exportedObjects > 0 || stats.outstandingCalls > 0)
        this.#idle.push(idle);
      else await host.stop({ kind: "exited", message: "it was idle and was ended" });
    } catch (error) {
      // It ended by itself meanwhile, which is what was wanted.
      if (!(error instanceof HostLostError)) throw error;
    }
  }

  async endWorker(hostId: string): Promise<void> {
    const lease = this.#leases.get(hostId);
    if (lease === undefined) return;
    await lease.host.terminate({ kind: "killed", message: "its task was cancelled with force" });
  }

  setBlocked(hostId: string, blocked: boolean): void {
    this.#leases.get(hostId)?.allocation.lend(blocked);
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

  /** The same answers for one host, in plain data. */
  controlFor(fromHostId: string): DriverControl {
    return {
      register: (spec) => this.#registerFrom(fromHostId, spec),
      start: (actorId, args) => this.start(actorId, args),
      abandon: (actorId, cause) => this.abandon(actorId, causeFromData(cause)),
      find: (name, namespace) => this.find(name, namespace),
      list: (allNamespaces) => this.list(allNamespaces),
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
      kill: (info, noRestart) => this.kill(info, noRestart),
      connect: async (from, to, wayId) => joinHosts(this.#host(from), this.#host(to), wayId),
      death: async (hostId) => {
        const host = this.#hosts.get(hostId);
        return causeToData(
          host === undefined
            ? { kind: "unreachable", message: "its host is gone" }
            : await host.exited,
        );
      },
      state: (query) => this.state(query),
      timeline: () => this.timeline(),
      metricsText: () => this.metricsText(),
      reported: (report) => this.#settings.inside().reported(fromHostId, report),
      actorStatus: (actorId) => this.actorStatus(actorId),
      whyWaiting: (demand) => this.whyWaiting(demand),
      leaseWorker: async (request) => {
        const lease = await this.leaseWorker(request, fromHostId);
        if (lease.state === "leased" && !this.#hosts.has(fromHostId)) {
          this.releaseWorker(lease.hostId);
        }
        return lease;
      },
      outOfScope: (actorId) => this.outOfScope(actorId),
      exited: (actorId, incarnation, cause) =>
        this.#actor(actorId).exited(incarnation, causeFromData(cause)),
      endWorker: (hostId) => this.endWorker(hostId),
      releaseWorker: (hostId) => this.releaseWorker(hostId),
      setBlocked: (hostId, blocked) => this.setBlocked(hostId, blocked),
      nodes: () => this.cluster.nodes(),
      resources: () => this.cluster.resources(),
      addNode: (spec) => this.cluster.addNode(spec),
      removeNode: (nodeId) => this.removeNode(nodeId),
      createGroup: (spec) => this.cluster.createGroup(spec),
      groupReady: (groupId) => this.groupReady(groupId),
      removeGroup: (groupId) => this.removeGroup(groupId),
      groups: () => this.cluster.groups(),
    };
  }

  #host(hostId: string): Host {
    const host = this.#hosts.get(hostId);
    if (host === undefined) throw new RaySystemError(`host ${hostId} is gone`);
    return host;
  }

  #named(name: string, namespace: string): Supervisor | undefined {
    const actorId = this.#names.get(nameKey(name, namespace));
    const actor = actorId === undefined ? undefined : this.#actors.get(actorId);
    return actor === undefined || actor.state === "dead" ? undefined : actor;
  }

  /** The actor of a handle. A handle that came straight from its creator may be quicker than the creator's word to us. */
  async #registered({ actorId, owner }: ActorInfo): Promise<Supervisor | undefined> {
    const known = this.#known(actorId);
    const creator = this.#hosts.get(owner);
    if (known !== undefined || creator === undefined) return known;
    try {
      await creator.control((control) => control.registered());
    } catch (error) {
      if (!(error instanceof HostLostError)) throw error;
    }
    return this.#known(actorId);
  }

  #known(actorId: string): Supervisor | undefined {
    return this.#actors.get(this.#aliases.get(actorId) ?? actorId);
  }

  #actor(actorId: string): Supervisor {
    const actor = this.#known(actorId);
    if (actor === undefined)
      throw new RaySystemError(`no actor ${actorId} is known here; its session may have ended`);
    return actor;
  }
}

/** Records of dead actors that are kept. */
const keptRecords = 1000;

const forgotten: DeathCause = {
  kind: "unreachable",
  message: "it died so long ago that no record of it is kept",
};

function nameKey(name: string, namespace: string): string {
  return JSON.stringify([namespace, name]);
}
