/**
 * The agent of a machine: it starts hosts for drivers that have its token, and ends those of a driver that is gone. It keeps no names and decides nothing:
 * which host runs what is known to the driver, and calls go from host to host.
 */
import { availableParallelism, hostname, totalmem } from "node:os";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { expose, type Remote, wrap } from "comlink";
import {
  type Address,
  type Amounts,
  causeToData,
  type Channel,
  channelEndpoint,
  type DeathCause,
  Guard,
  HostProcess,
  listen,
  newToken,
  RaySystemError,
  readLines,
} from "@rayling/core/cluster";
import { formatAddress } from "./address.ts";
import type { AgentControl, DriverAnswers, HostOrder, NodeOffer, StartedHost } from "./contract.ts";

export interface AgentOptions {
  /** What it listens on. Default "127.0.0.1". */
  readonly host?: string;
  /** Default 0: one that is free. */
  readonly port?: number;
  /** What drivers must have. Default: a new one. */
  readonly token?: string;
  readonly nodeName?: string;
  /** Default: as many as the machine has for this process. */
  readonly numCpus?: number;
  /** Amounts of anything else. */
  readonly resources?: Amounts;
  readonly labels?: Readonly<Record<string, string>>;
  /** Hosts of all drivers together. Default 1,000. */
  readonly maxHosts?: number;
  /** Bytes of big values that each host keeps in memory. Default: 30 % of the machine's memory. */
  readonly objectStoreMemory?: number;
  /** How long the connection to a driver may be cut before its hosts end. Default 30,000. */
  readonly reconnectTimeoutMs?: number;
  /** Called with each line worth telling. */
  readonly onEvent?: (line: string) => void;
}

export interface Agent {
  /** What a driver is to name: `rayling://token@host:port`. */
  readonly address: string;
  /** Hosts that run now. */
  readonly hostCount: number;
  /** Ends every host, and then the agent. Idempotent. */
  close(): Promise<void>;
}

const standardReconnectTimeoutMs = 30_000;

const agentGone: DeathCause = { kind: "shutdown", message: "the agent of its machine was stopped" };
const driverGone: DeathCause = { kind: "owner-died", message: "its driver is gone" };

/** Rejects with RaySystemError when it cannot listen there, naming the port. */
export async function startAgent(options: AgentOptions = {}): Promise<Agent> {
  const { host = "127.0.0.1", port = 0, token = newToken() } = options;
  if (!isLoopback(host)) {
    throw new RaySystemError(
      `the agent listens on loopback addresses only, not on ${host}: connections are not encrypted`,
    );
  }
  const sessions = new Set<DriverSession>();
  const guard = new Guard();
  const spillDirectory = join(guard.folder, "spilled");
  await mkdir(spillDirectory);
  const memory = process.constrainedMemory() || totalmem();
  const machine: Machine = {
    guard,
    host,
    spillDirectory,
    maxHosts: options.maxHosts ?? 1000,
    objectStoreMemory: options.objectStoreMemory ?? Math.floor(0.3 * memory),
    hostCount: () => [...sessions].reduce((sum, session) => sum + session.hostCount, 0),
    offer: {
      nodeName: options.nodeName ?? hostname(),
      resources: {
        memory: Math.floor(0.7 * memory),
        ...options.resources,
        CPU: options.numCpus ?? availableParallelism(),
      },
      labels: options.labels ?? {},
    },
  };
  const tell = options.onEvent ?? ((): void => undefined);
  const listener = await listen({
    address: { place: { host, port }, token },
    // Nobody can say that a driver is gone; its silence does.
    explain: () => never,
    times: {
      reconnectTimeoutMs: options.reconnectTimeoutMs ?? standardReconnectTimeoutMs,
      explainMs: 0,
    },
    onChannel: (channel, { peerId }) => {
      const session = new DriverSession(channel, machine);
      sessions.add(session);
      tell(`driver ${peerId} joined`);
      void channel.closed.then(async ({ message }) => {
        tell(`driver ${peerId} is gone (${message}); its ${session.hostCount} hosts end`);
        await session.end(driverGone);
        sessions.delete(session);
      });
    },
  }).catch((error: NodeJS.ErrnoException) => {
    void guard.close();
    const why = error.code === "EADDRINUSE" ? "the port is taken" : error.message;
    throw new RaySystemError(`the agent cannot listen on ${host}:${port}: ${why}`, {
      cause: error,
    });
  });
  let closing: Promise<void> | undefined;
  return {
    address: formatAddress(token, host, (listener.address as AddressInfo).port),
    get hostCount() {
      return machine.hostCount();
    },
    close: () => {
      closing ??= (async () => {
        listener.close();
        await Promise.all([...sessions].map((session) => session.end(agentGone)));
        await rm(spillDirectory, { recursive: true, force: true });
        await guard.close();
      })();
      return closing;
    },
  };
}

const never: Promise<DeathCause> = new Promise(() => undefined);

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

interface Machine {
  readonly guard: Guard;
  readonly host: string;
  readonly spillDirectory: string;
  readonly maxHosts: number;
  readonly objectStoreMemory: number;
  readonly offer: NodeOffer;
  readonly hostCount: () => number;
}

/** What one driver has on this machine. */
class DriverSession {
  readonly #machine: Machine;
  readonly #channel: Channel;
  readonly #driver: Remote<DriverAnswers>;
  readonly #hosts: Map<string, HostProcess> = new Map();

  constructor(channel: Channel, machine: Machine) {
    this.#machine = machine;
    this.#channel = channel;
    const endpoint = channelEndpoint(channel);
    this.#driver = wrap<DriverAnswers>(endpoint);
    const control: AgentControl = {
      describe: () => machine.offer,
      launch: (order) => this.#launch(order),
      terminate: (hostId) =>
        void this.#hosts.get(hostId)?.terminate({ kind: "killed", message: "its driver ended it" }),
    };
    expose(control, endpoint);
  }

  get hostCount(): number {
    return this.#hosts.size;
  }

  async end(cause: DeathCause): Promise<void> {
    await Promise.all([...this.#hosts.values()].map((host) => host.terminate(cause)));
    this.#channel.close(cause);
  }

  async #launch({ identity, runtimeEnv, moduleUrl, ...order }: HostOrder): Promise<StartedHost> {
    const { guard, host, maxHosts, hostCount, spillDirectory, objectStoreMemory } = this.#machine;
    if (hostCount() >= maxHosts) {
      throw new RaySystemError(
        `node ${this.#machine.offer.nodeName} runs ${maxHosts} hosts, which is its limit`,
      );
    }
    const { hostId } = identity;
    const child = new HostProcess(
      {
        settings: {
          ...identity,
          objectStoreMemory,
          ...order,
          door: { place: { host, port: 0 }, token: newToken() },
          spillDirectory,
        },
        runtimeEnv,
        moduleUrl,
      },
      {
        guard,
        onLine: (stream, owner, line) => {
          if (this.#channel.isOpen) void this.#driver.wrote(hostId, stream, owner, line);
        },
      },
    );
    this.#hosts.set(hostId, child);
    const address = firstLine(child.control).then((line) => JSON.parse(line) as Address);
    const exited = child.exited.then((cause) => {
      this.#hosts.delete(hostId);
      if (this.#channel.isOpen) void this.#driver.exited(hostId, causeToData(cause));
      return Promise.reject(new RaySystemError(cause.message));
    });
    exited.catch(() => undefined);
    const started = { address: await Promise.race([address, exited]), pid: child.pid };
    child.ready();
    return started;
  }
}

/** The first is the runtime's own; what comes later is the user's, and nobody reads it. */
function firstLine(stream: Readable): Promise<string> {
  return new Promise((resolve) => readLines(stream, resolve));
}
