/**
 * The Directory in the driver's memory: actors and their names, hosts, leased workers; and the same in plain data for each host.
 *
 * A name is free again when its actor is dead.
 */
import type { DriverControl, HostStats } from "../host/control.ts";
import { causeFromData, causeToData } from "../protocol/cause.ts";
import type { Allocation, Scheduler } from "../placement/scheduler.ts";
import type {
  ActorInfo,
  ActorLocation,
  ActorLoss,
  ActorSpec,
  Directory,
  Registration,
  StartArguments,
} from "../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import type { Channel } from "../transport/channel.ts";
import { type Host, HostLostError, joinHosts, type ThreadLauncher } from "./launch.ts";
import { Supervisor, type SupervisorParts } from "./supervisor.ts";

interface Lease {
  readonly host: Host;
  readonly allocation: Allocation;
  readonly holder: string;
}

export interface DirectorySettings {
  readonly driverId: string;
  readonly namespace: string;
  /** Workers that wait for tasks; tasks that wait for tasks may have needed more. */
  readonly maxIdleWorkers: number;
}

export class LocalDirectory implements Directory {
  readonly #parts: SupervisorParts;
  readonly #driverId: string;
  readonly #namespace: string;
  readonly #maxIdleWorkers: number;
  readonly #actors: Map<string, Supervisor> = new Map();
  readonly #names: Map<string, string> = new Map();
  readonly #hosts: Map<string, Host> = new Map();
  /** Ids that handles in hosts were given before it was known that the actor exists. */
  readonly #aliases: Map<string, string> = new Map();
  /** Registered and not started, by the host that is to start them. */
  readonly #unstarted: Map<string, Set<Supervisor>> = new Map();
  readonly #leases: Map<string, Lease> = new Map();
  readonly #idle: Host[] = [];

  constructor(settings: DirectorySettings, parts: SupervisorParts) {
    this.#driverId = settings.driverId;
    this.#namespace = settings.namespace;
    this.#maxIdleWorkers = settings.maxIdleWorkers;
    this.#parts = parts;
  }

  get #launcher(): ThreadLauncher {
    return this.#parts.launcher();
  }

  get #scheduler(): Scheduler {
    return this.#parts.scheduler;
  }

  addHost(host: Host): void {
    this.#hosts.set(host.id, host);
    void host.exited.then(() => {
      this.#hosts.delete(host.id);
      const index = this.#idle.indexOf(host);
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
    });
  }

  register(spec: ActorSpec): Registration {
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
    this.#actors.set(spec.info.actorId, new Supervisor(spec, this.#parts));
    return { state: "new" };
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
    const registration = this.register(spec);
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

  async locate(actorId: string): Promise<ActorLocation> {
    return this.#actor(actorId).located();
  }

  async loss(actorId: string, incarnation: number): Promise<ActorLoss> {
    return this.#actor(actorId).loss(incarnation);
  }

  async kill(actorId: string, noRestart: boolean): Promise<void> {
    await this.#actor(actorId).kill(
      { kind: "killed", message: "it was killed by ray.kill" },
      noRestart,
    );
  }

  async connect(hostId: string): Promise<Channel> {
    // The driver has a session with every living host from its start.
    throw new RaySystemError(`host ${hostId} is gone`);
  }

  async leaseWorker(numCpus: number, holder: string = this.#driverId): Promise<string> {
    const resources = { CPU: numCpus };
    const allocation = await this.#scheduler.acquire(
      { place: resources, hold: resources },
      "a task",
    );
    try {
      const host =
        this.#idle.pop() ?? this.#launcher.take({ resourceLimits: undefined, env: undefined });
      this.#leases.set(host.id, { host, allocation, holder });
      return host.id;
    } catch (error) {
      allocation.release();
      throw error;
    }
  }

  releaseWorker(hostId: string): void {
    const lease = this.#leases.get(hostId);
    if (lease === undefined) return;
    this.#leases.delete(hostId);
    // One that cannot be talked to any more is ending, and would only be leased in vain.
    if (this.#hosts.has(hostId) && lease.host.channel.isOpen) this.#idle.push(lease.host);
    lease.allocation.release();
    if (this.#idle.length > this.#maxIdleWorkers) void this.#endIdle();
  }

  /** Ends one idle worker, unless others hold objects that it made. */
  async #endIdle(): Promise<void> {
    const host = this.#idle.shift();
    if (host === undefined) return;
    try {
      const stats = await host.control<HostStats>((control) => control.stats());
      if (stats.exportedObjects > 0 || stats.outstandingCalls > 0) this.#idle.push(host);
      else await host.stop({ kind: "exited", message: "it was idle and was ended" });
    } catch (error) {
      // It ended by itself meanwhile, which is what was wanted.
      if (!(error instanceof HostLostError)) throw error;
    }
  }

  setBlocked(hostId: string, blocked: boolean): void {
    this.#leases.get(hostId)?.allocation.lend(blocked);
  }

  /** The same answers for one host, in plain data. */
  controlFor(fromHostId: string): DriverControl {
    return {
      register: (spec) => this.#registerFrom(fromHostId, spec),
      start: (actorId, args) => this.start(actorId, args),
      abandon: (actorId, cause) => this.abandon(actorId, causeFromData(cause)),
      find: (name, namespace) => this.find(name, namespace),
      list: (allNamespaces) => this.list(allNamespaces),
      locate: async (actorId) => {
        const location = await this.locate(actorId);
        return location.state === "alive"
          ? location
          : { state: "dead", cause: causeToData(location.cause) };
      },
      loss: async (actorId, incarnation) => {
        const { restarting, cause } = await this.loss(actorId, incarnation);
        return { restarting, cause: causeToData(cause) };
      },
      kill: (actorId, noRestart) => this.kill(actorId, noRestart),
      connect: (from, to) => {
        const host = this.#hosts.get(to);
        if (host === undefined) throw new RaySystemError(`host ${to} is gone`);
        return joinHosts(from, host);
      },
      death: async (hostId) => {
        const host = this.#hosts.get(hostId);
        return causeToData(
          host === undefined
            ? { kind: "unreachable", message: "its host is gone" }
            : await host.exited,
        );
      },
      leaseWorker: async (numCpus) => {
        const workerId = await this.leaseWorker(numCpus, fromHostId);
        if (!this.#hosts.has(fromHostId)) this.releaseWorker(workerId);
        return workerId;
      },
      releaseWorker: (hostId) => this.releaseWorker(hostId),
      setBlocked: (hostId, blocked) => this.setBlocked(hostId, blocked),
    };
  }

  #named(name: string, namespace: string): Supervisor | undefined {
    const actorId = this.#names.get(nameKey(name, namespace));
    const actor = actorId === undefined ? undefined : this.#actors.get(actorId);
    return actor === undefined || actor.state === "dead" ? undefined : actor;
  }

  #actor(actorId: string): Supervisor {
    const actor = this.#actors.get(this.#aliases.get(actorId) ?? actorId);
    if (actor === undefined)
      throw new RaySystemError(`no actor ${actorId} is known here; its session may have ended`);
    return actor;
  }
}

function nameKey(name: string, namespace: string): string {
  return JSON.stringify([namespace, name]);
}
