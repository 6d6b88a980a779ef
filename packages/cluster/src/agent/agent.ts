/**
 * The agent of a machine: it starts hosts for drivers that have its token, and ends the hosts of a
 * driver that is gone. It keeps no names and decides nothing: the driver knows which host runs
 * what, and calls go from host to host.
 */
import { randomUUID } from "node:crypto";
import { availableParallelism, hostname } from "node:os";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Address,
  type Channel,
  type Credentials,
  type DeathCause,
  findCredentials,
  type FoundCredentials,
  Guard,
  isLoopback,
  isUnspecified,
  Link,
  listen,
  type Listener,
  namesOf,
  newToken,
  RaySystemError,
  warn,
  watchCredentials,
  standardMemory,
  standardObjectStoreMemory,
  asError,
  timers,
  codeOf,
  inHome,
} from "@rayling/core/cluster";
import { formatAddress } from "../address.ts";
import { type AgentOptions, checkAgentOptions } from "./agent-options.ts";
import { CodeCache } from "../code/code-cache.ts";
import { standardReconnectTimeoutMs } from "../contract.ts";
import { DriverSession, type Machine } from "./driver-session.ts";
import { workerPorts } from "./worker-ports.ts";

/** A running agent, which starts hosts on this machine for drivers. */
export interface Agent {
  /** The address for drivers: `rayling://token@host:port`. */
  readonly address: string;
  /** The number of running hosts. */
  readonly hostCount: number;
  /** Resolves when it has ended, for any reason. */
  readonly closed: Promise<void>;
  /** Ends every host, and then the agent, which holds the process no more. Idempotent. */
  close(): Promise<void>;
}

/** Ray's limits for its cache of working directories, and for one of them. */
const standardCodeCacheBytes = 10 * 1024 ** 3;
const standardCodeBytes = 500 * 1024 ** 2;

/** A machine that leaves counts as dead: its actors restart and its tasks are retried elsewhere. */
const agentGone: DeathCause = {
  kind: "node-died",
  message: "the agent of its machine was stopped",
};
/** The time between two turns that only hold the process, in ms: days. */
const holdingMs = 2 ** 30;

const driverGone: DeathCause = { kind: "owner-died", message: "its driver is gone" };

/**
 * Starts an agent, which holds the process until it is closed. Rejects with InvalidOptionError;
 * with RaySystemError when it cannot listen, naming the port; with CertificateError for unusable
 * certificates.
 */
export async function startAgent(options: AgentOptions = {}): Promise<Agent> {
  checkAgentOptions(options);
  const { host = "127.0.0.1" } = options;
  const found: KnownCredentials | undefined =
    options.credentials === undefined
      ? findCredentials(options.tls, !isLoopback(host))
      : { credentials: options.credentials };
  if (found === undefined && !isLoopback(host)) {
    throw new RaySystemError(
      `the agent listens on ${host} only with certificates, since others can reach it there: make some with rayling cert, and name them`,
    );
  }
  const agent = new RunningAgent(options, found);
  await agent.open();
  return agent;
}

/** Credentials of files are renewed with them; others stay as they are. */
type KnownCredentials = Pick<FoundCredentials, "credentials"> & Partial<FoundCredentials>;

class RunningAgent implements Agent {
  readonly closed: Promise<void>;
  readonly #options: AgentOptions;
  readonly #found: KnownCredentials | undefined;
  readonly #place: { readonly host: string; readonly port: number };
  readonly #address: Address;
  readonly #guard: Guard = new Guard();
  readonly #codeCache: CodeCache;
  readonly #machine: Machine;
  readonly #sessions: Set<DriverSession> = new Set();
  readonly #onClosed: () => void;
  #listener: Listener | undefined;
  #endWatch: (() => void) | undefined;
  /** Its connections do not hold the process: this does, until everything has ended. */
  #holding: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: AgentOptions, found: KnownCredentials | undefined) {
    const { host = "127.0.0.1", port = 0, token = newToken() } = options;
    this.#options = options;
    this.#found = found;
    this.#place = { host, port };
    this.#address = { place: this.#place, token, isSecure: found !== undefined };
    ({ promise: this.closed, resolve: this.#onClosed } = Promise.withResolvers<void>());
    this.#codeCache = new CodeCache({
      directory: options.codeCache ?? inHome("the cache of code", ".rayling", "code"),
      maxBytes: options.codeCacheBytes ?? standardCodeCacheBytes,
      maxPackageBytes: options.maxCodeBytes ?? standardCodeBytes,
      tell: (line) => this.#tell(line),
    });
    this.#machine = {
      guard: this.#guard,
      host,
      ports: workerPorts(options),
      tell: (line) => this.#tell(line),
      codeCache: this.#codeCache,
      network: {
        reconnectTimeoutMs: options.reconnectTimeoutMs ?? standardReconnectTimeoutMs,
        ...(found === undefined ? {} : { credentials: found.credentials }),
      },
      spillDirectory: join(this.#guard.folder, "spilled"),
      maxHosts: options.maxHosts ?? 1000,
      objectStoreMemory: options.objectStoreMemory ?? standardObjectStoreMemory(),
      hostCount: () => this.hostCount,
      endOthers: (session) => this.#endOthers(session),
      offer: offerOf(options, this.#codeCache),
    };
  }

  get address(): string {
    const { host, port } = this.#place;
    const name = this.#options.publicHost ?? nameOf(host, this.#found?.credentials);
    const bound = this.#listener?.address;
    const own = typeof bound === "object" ? bound?.port : undefined;
    return formatAddress(this.#address, name, own ?? port);
  }

  get hostCount(): number {
    return [...this.#sessions].reduce((sum, session) => sum + session.hostCount, 0);
  }

  /** Begins to listen. Rejects with RaySystemError, or with the error of the code cache. */
  async open(): Promise<void> {
    try {
      await mkdir(this.#machine.spillDirectory);
      if (this.#options.codeCache !== undefined) await this.#codeCache.open();
      this.#listener = await this.#listen();
    } catch (error) {
      void this.#guard.close();
      throw error;
    }
    this.#holding = timers.setInterval(() => undefined, holdingMs);
    const { paths, credentials } = this.#found ?? {};
    if (paths === undefined || credentials === undefined) return;
    this.#endWatch = watchCredentials(
      { paths, credentials },
      {
        tell: (line) => this.#tell(line),
        onRenewed: (renewed) => {
          for (const session of this.#sessions) session.renew(renewed);
        },
      },
    );
  }

  close(): Promise<void> {
    return this.#close(agentGone);
  }

  async #listen(): Promise<Listener> {
    const { host, port } = this.#place;
    try {
      return await listen({
        address: this.#address,
        // Nobody can report that a driver is gone; its silence does.
        explain: never,
        network: { ...this.#machine.network, explainMs: 0 },
        onChannel: (channel, { peerId, wayId }) => this.#connected(channel, peerId, wayId),
      });
    } catch (error) {
      const isTaken = codeOf(error) === "EADDRINUSE";
      const why = isTaken ? "the port is taken" : asError(error).message;
      throw new RaySystemError(`the agent cannot listen on ${host}:${port}: ${why}`, {
        cause: error,
      });
    }
  }

  /** A peer with the token has connected. */
  #connected(channel: Channel, peerId: string, wayId: string | undefined): void {
    // The driver proved its token while the agent was closing.
    if (this.#closing !== undefined) return channel.close(agentGone);
    // A peer with the token that asks for another kind of connection is no driver.
    if (!(channel instanceof Link) || wayId !== undefined) return channel.close(driverGone);
    const session = new DriverSession(peerId, channel, this.#machine);
    this.#sessions.add(session);
    this.#tell(`driver ${peerId} joined`);
    void channel.closed.then((cause) => this.#disconnected(session, cause));
  }

  async #disconnected(session: DriverSession, { kind, message }: DeathCause): Promise<void> {
    // Otherwise this machine is the one that leaves.
    if (kind !== "node-died") {
      this.#tell(
        `driver ${session.peerId} is gone (${message}); its ${session.hostCount} hosts end`,
      );
    }
    await this.#end(session, driverGone);
    this.#sessions.delete(session);
  }

  /** Ends a session. Only reports a failure, so that other drivers go on. */
  async #end(session: DriverSession, cause: DeathCause): Promise<void> {
    await session.end(cause).catch((error: unknown) => {
      this.#tell(`driver ${session.peerId} did not end as it should: ${asError(error).message}`);
    });
  }

  /**
   * Ends other sessions of the same driver. A driver that is joining through another address of
   * this agent learns that the machine is already a node.
   */
  #endOthers(session: DriverSession): void {
    for (const other of this.#sessions) {
      const isSame = other !== session && other.peerId === session.peerId;
      if (isSame && other.isNode) void this.#end(other, driverGone);
    }
  }

  #close(cause: DeathCause): Promise<void> {
    this.#closing ??= (async () => {
      this.#listener?.close();
      this.#endWatch?.();
      await Promise.all([...this.#sessions].map((session) => this.#end(session, cause)));
      await this.#codeCache.close();
      const { spillDirectory } = this.#machine;
      await rm(spillDirectory, { recursive: true, force: true }).catch((error: unknown) => {
        this.#tell(`${spillDirectory} stays: ${asError(error).message}`);
      });
      await this.#guard.close();
    })().finally(() => {
      timers.clearInterval(this.#holding);
      this.#onClosed();
    });
    return this.#closing;
  }

  #tell(line: string): void {
    tellSafely(this.#options.onEvent, line);
  }
}

/** The resources and labels that this machine has for drivers. */
function offerOf(options: AgentOptions, { maxPackageBytes }: CodeCache): Machine["offer"] {
  return {
    agentId: randomUUID(),
    nodeName: options.nodeName ?? hostname(),
    hostname: hostname(),
    parallelism: availableParallelism(),
    resources: {
      memory: standardMemory(),
      ...options.resources,
      CPU: options.numCpus ?? availableParallelism(),
    },
    labels: options.labels ?? {},
    code: { platform: `${process.platform}-${process.arch}`, maxPackageBytes },
  };
}

/** Returns a new promise on each call: the reactions of a promise live as long as it does. */
const never = (): Promise<DeathCause> => new Promise(() => undefined);

/** Returns the host name for others. The names of a certificate may be patterns. */
function nameOf(host: string, credentials: Credentials | undefined): string {
  if (!isUnspecified(host) || credentials === undefined) return host;
  const isReachable = (name: string): boolean => !isLoopback(name) && !name.includes("*");
  return namesOf(credentials).find(isReachable) ?? hostname();
}

/** Calls `onEvent`; its failure does not end the reported work. */
function tellSafely(onEvent: AgentOptions["onEvent"], line: string): void {
  const failed = (error: unknown): void => {
    warn(`onEvent failed, told "${line}": ${asError(error).message}`);
  };
  try {
    // It may be an async function, which this type includes.
    Promise.resolve(onEvent?.(line)).catch(failed);
  } catch (error) {
    failed(error);
  }
}
