/** Machines of a simulated world: an agent on each, and the hosts that it starts. All of it is the code that real ones run, but for what starts a process and ends it. */
import { PassThrough } from "node:stream";
import { expose, wrap } from "comlink";
import { type LauncherControl, dialled } from "../../../core/src/host/host-control.ts";
import {
  HostListener,
  type HostListenerParts,
} from "../../../core/src/host/channels/host-listener.ts";
import { HostRuntime } from "../../../core/src/host/host-runtime.ts";
import type { DeathCause } from "../../../core/src/shared/errors.ts";
import { newBudget } from "../../../core/src/store/memory-budget.ts";
import type { Channel } from "../../../core/src/transport/channel.ts";
import { channelEndpoint } from "../../../core/src/transport/endpoint.ts";
import { Link } from "../../../core/src/transport/link/link.ts";
import { listen } from "../../../core/src/transport/link/listen.ts";
import { DriverSession, type Machine } from "../../src/agent/driver-session.ts";
import type { AgentHost } from "../../src/agent/start-host.ts";
import type { Network } from "./network.ts";
import { inProcess, type Process, type World } from "./world.ts";

type HostOrder = Parameters<NonNullable<Machine["startHost"]>>[0];

/** What actors are made of: the class of a name, for code that runs in that host. */
export type ClassOf = (host: SimulatedHost, name: string) => unknown;

const token = "simulated-token";
const never = (): Promise<DeathCause> => new Promise(() => undefined);

export class SimulatedMachine {
  readonly name: string;
  readonly port: number;
  readonly hosts: Set<SimulatedHost> = new Set();
  agent: Process;
  readonly #world: World;
  readonly #network: Network;
  readonly #classOf: ClassOf;
  readonly #reconnectTimeoutMs: number;
  readonly #numCpus: number;
  #agents = 0;

  constructor(
    name: string,
    world: World,
    network: Network,
    settings: {
      readonly classOf: ClassOf;
      readonly reconnectTimeoutMs: number;
      readonly numCpus: number;
    },
  ) {
    this.name = name;
    this.#world = world;
    this.#network = network;
    this.#classOf = settings.classOf;
    this.#reconnectTimeoutMs = settings.reconnectTimeoutMs;
    this.#numCpus = settings.numCpus;
    this.port = network.freePort();
    this.agent = { name: `agent of ${name}`, isAlive: false, busyUntilMs: 0 };
  }

  get address(): string {
    return `rayling://${token}@127.0.0.1:${this.port}`;
  }

  /** Starts its agent, perhaps once more. */
  async start(): Promise<void> {
    const agent: Process = { name: `agent of ${this.name}`, isAlive: true, busyUntilMs: 0 };
    this.agent = agent;
    this.#agents += 1;
    const network = { reconnectTimeoutMs: this.#reconnectTimeoutMs };
    const sessions = new Set<DriverSession>();
    const machine: Machine = {
      guard: undefined as never,
      codeCache: undefined as never,
      host: "127.0.0.1",
      ports: undefined,
      tell: (line) => this.#world.tell(() => `${this.name}: ${line}`),
      network,
      spillDirectory: "/nowhere",
      maxHosts: 1000,
      objectStoreMemory: 2 ** 30,
      hostCount: () => [...sessions].reduce((sum, session) => sum + session.hostCount, 0),
      endOthers: (session) => {
        for (const other of sessions) {
          const isSame = other !== session && other.peerId === session.peerId;
          if (isSame && other.isNode) void other.end(driverGone);
        }
      },
      startHost: (order) => {
        const host = new SimulatedHost(this, order, this.#world, this.#network, this.#classOf);
        this.hosts.add(host);
        return host;
      },
      offer: {
        agentId: `${this.name}-${this.#agents}`,
        nodeName: this.name,
        hostname: this.name,
        parallelism: this.#numCpus,
        resources: { CPU: this.#numCpus, memory: 2 ** 30 },
        labels: {},
        code: { platform: "simulated", maxPackageBytes: 0 },
      },
    };
    await inProcess(agent, () =>
      listen({
        address: { place: { host: "127.0.0.1", port: this.port }, token },
        explain: never,
        network: { ...network, explainMs: 0 },
        onChannel: (channel, { peerId }) => {
          if (!(channel instanceof Link)) return channel.close(driverGone);
          const session = new DriverSession(peerId, channel, machine);
          sessions.add(session);
          void channel.closed.then(async ({ message }) => {
            this.#world.tell(() => `${this.name}: driver is gone (${message})`);
            await session.end(driverGone);
            sessions.delete(session);
          });
        },
      }),
    );
  }

  /** It loses its power: nobody is told. */
  crash(): void {
    this.#world.tell(() => `${this.name} loses its power`);
    for (const host of this.hosts) host.crash();
    this.hosts.clear();
    this.agent.isAlive = false;
    this.#network.ended(this.agent, true);
  }
}

const driverGone: DeathCause = { kind: "owner-died", message: "its driver is gone" };

export class SimulatedHost implements AgentHost {
  readonly pid = 1;
  readonly control: PassThrough = new PassThrough();
  readonly exited: Promise<DeathCause>;
  readonly id: string;
  readonly process: Process;
  readonly machine: SimulatedMachine;
  composed: HostRuntime | undefined;
  readonly #resolveExited: (cause: DeathCause) => void;
  readonly #world: World;
  readonly #network: Network;
  #known: DeathCause | undefined;

  constructor(
    machine: SimulatedMachine,
    order: HostOrder,
    world: World,
    network: Network,
    classOf: ClassOf,
  ) {
    const { promise, resolve } = Promise.withResolvers<DeathCause>();
    this.exited = promise;
    this.#resolveExited = resolve;
    this.#world = world;
    this.#network = network;
    this.machine = machine;
    this.id = order.settings.hostId;
    this.process = { name: this.id, isAlive: true, busyUntilMs: 0 };
    // A process takes its time to start.
    world.after(world.random.between(5, 100), () => void this.#main(order, classOf), this.process);
  }

  ready(): void {
    // Its settings were right.
  }

  renew(): void {
    // No certificates here.
  }

  hearsUntil(): void {
    // What it says is heard at once.
  }

  dying(cause: DeathCause): void {
    this.#known ??= cause;
  }

  async terminate(cause: DeathCause): Promise<void> {
    this.dying(cause);
    this.end("was killed");
    await this.exited;
  }

  /** Ends the process: its system closes what it had open, and its agent hears of it. */
  end(how: string): void {
    if (!this.process.isAlive) return;
    this.#world.tell(() => `${this.id} ${how}`);
    this.process.isAlive = false;
    this.#network.ended(this.process, false);
    this.machine.hosts.delete(this);
    const cause = this.#known ?? { kind: "exited", message: `its process ${how}` };
    this.#world.after(
      this.#world.random.between(0.1, 5),
      () => this.#resolveExited(cause),
      this.machine.agent,
    );
  }

  crash(): void {
    this.process.isAlive = false;
    this.#network.ended(this.process, true);
  }

  async #main({ settings }: HostOrder, classOf: ClassOf): Promise<void> {
    const { hostId, driverId, network, listenAt: address } = settings;
    let known: Pick<HostListenerParts, "death" | "onChannel"> | undefined;
    const early: [string, Channel][] = [];
    const listener = new HostListener({
      hostId,
      address,
      network,
      death: (peerId) =>
        peerId === driverId || known === undefined ? never() : known.death(peerId),
      onChannel: (peerId, channel) => {
        if (known === undefined) early.push([peerId, channel]);
        else known.onChannel(peerId, channel);
      },
    });
    const expected = [listener.expect(dialled.control), listener.expect(dialled.data)] as const;
    const place = await listener.address();
    this.#toAgent(place);
    const [control, data] = await Promise.all(expected.map(({ channel }) => channel));
    if (control === undefined || data === undefined) return;
    void control.closed.then(({ kind, message }) => {
      if (kind === "unreachable") this.#toAgent({ dying: { kind, message } });
      this.end(`exited with code 0: ${message}`);
    });
    const endpoint = channelEndpoint(control);
    const driver = wrap<LauncherControl>(endpoint);
    this.composed = new HostRuntime(
      {
        identity: settings,
        driver,
        data: () => data,
        listen: (parts) => {
          known = parts;
          queueMicrotask(() => {
            for (const [peerId, channel] of early) parts.onChannel(peerId, channel);
          });
          return listener;
        },
        objectStore: {
          budget: newBudget(2 ** 30),
          spillDirectory: "/nowhere",
          isDevelopment: false,
        },
        keepsResults: true,
      },
      { find: async (key) => classOf(this, key.name) },
    );
    expose(this.composed.control, endpoint);
    void driver.ready();
  }

  #toAgent(said: object): void {
    inProcess(this.machine.agent, () => this.control.write(`${JSON.stringify(said)}\n`));
  }
}
