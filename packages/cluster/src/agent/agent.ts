/**
 * The agent of a machine: it starts hosts for drivers that have its token, and ends the hosts of a
 * driver that is gone. It keeps no names and decides nothing: the driver knows which host runs
 * what, and calls go from host to host.
 */
import { randomUUID } from "node:crypto";
import { availableParallelism, homedir, hostname } from "node:os";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import { expose } from "comlink";
import {
  type Address,
  channelEndpoint,
  type Credentials,
  type DeathCause,
  findCredentials,
  Guard,
  Link,
  listen,
  namesOf,
  type NetworkSettings,
  newToken,
  RaySystemError,
  warn,
  watchCredentials,
  standardMemory,
  standardObjectStoreMemory,
} from "@rayling/core/cluster";
import { formatAddress, standardPort } from "../address.ts";
import { type AgentOptions, checkAgentOptions } from "./agent-options.ts";
import { CodeCache } from "../code/code-cache.ts";
import {
  type DrainReport,
  type OperatorControl,
  operatorWay,
  standardReconnectTimeoutMs,
} from "../contract.ts";
import { DriverSession, type Machine } from "./driver-session.ts";
import { workerPorts } from "./worker-ports.ts";

export interface Agent {
  /** The address for drivers: `rayling://token@host:port`. */
  readonly address: string;
  /** The number of running hosts. */
  readonly hostCount: number;
  /** Resolves when it has ended, for any reason. */
  readonly closed: Promise<void>;
  /**
   * Accepts no more drivers and lets the current ones move away. Ends when nothing is left, or
   * after `timeoutMs` milliseconds. A second call returns the first report.
   */
  drain(timeoutMs: number): Promise<DrainReport>;
  /** Ends every host, and then the agent. Idempotent. */
  close(): Promise<void>;
}

/** Ray's limits for its cache of working directories, and for one of them. */
const standardCodeCacheBytes = 10 * 1024 ** 3;
const standardCodeBytes = 500 * 1024 ** 2;

/** The longest time of a timer. */
const longestMs = 2 ** 31 - 1;

/** A machine that leaves counts as dead: its actors restart and its tasks are retried elsewhere. */
const agentGone: DeathCause = {
  kind: "node-died",
  message: "the agent of its machine was stopped",
};
const drained: DeathCause = { kind: "node-died", message: "its machine was drained" };
const driverGone: DeathCause = { kind: "owner-died", message: "its driver is gone" };

/**
 * Starts an agent. Rejects with InvalidOptionError; with RaySystemError when it cannot listen,
 * naming the port; with CertificateError for unusable certificates.
 */
export async function startAgent(options: AgentOptions = {}): Promise<Agent> {
  checkAgentOptions(options);
  const { host = "127.0.0.1", port = 0, token = newToken() } = options;
  const ports = workerPorts(options);
  const found = findCredentials(options.tls, !isLoopback(host));
  const credentials = found?.credentials;
  if (credentials === undefined && !isLoopback(host)) {
    throw new RaySystemError(
      `the agent listens on ${host} only with certificates, since others can reach it there: make some with rayling cert, and name them`,
    );
  }
  const network: NetworkSettings = {
    reconnectTimeoutMs: options.reconnectTimeoutMs ?? standardReconnectTimeoutMs,
    ...(credentials === undefined ? {} : { credentials }),
  };
  const sessions = new Set<DriverSession>();
  let closing: Promise<void> | undefined;
  const guard = new Guard();
  const spillDirectory = join(guard.folder, "spilled");
  await mkdir(spillDirectory);
  const tell = (line: string): void => tellSafely(options.onEvent, line);
  const codeCache = new CodeCache({
    directory: options.codeCache ?? join(homedir(), ".rayling", "code"),
    maxBytes: options.codeCacheBytes ?? standardCodeCacheBytes,
    maxPackageBytes: options.maxCodeBytes ?? standardCodeBytes,
    tell,
  });
  const machine: Machine = {
    guard,
    host,
    ports,
    tell,
    codeCache,
    network,
    spillDirectory,
    maxHosts: options.maxHosts ?? 1000,
    objectStoreMemory: options.objectStoreMemory ?? standardObjectStoreMemory(),
    hostCount: () => [...sessions].reduce((sum, session) => sum + session.hostCount, 0),
    isDraining: () => draining !== undefined,
    endOthers: (session) => {
      for (const other of sessions) {
        const isSame = other !== session && other.peerId === session.peerId;
        // A driver that is joining through another address of this agent learns that the machine is
        // already a node.
        if (isSame && other.isNode) void other.end(driverGone);
      }
    },
    offer: {
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
      code: {
        platform: `${process.platform}-${process.arch}`,
        maxPackageBytes: codeCache.maxPackageBytes,
      },
    },
  };
  if (options.codeCache !== undefined) {
    await codeCache.open().catch((error: unknown) => {
      void guard.close();
      throw error;
    });
  }
  const address: Address = { place: { host, port }, token, isSecure: credentials !== undefined };
  const listener = await listen({
    address,
    // Nobody can report that a driver is gone; its silence does.
    explain: never,
    network: { ...network, explainMs: 0 },
    onChannel: (channel, { peerId, wayId }) => {
      // The driver proved its token while the agent was closing.
      if (closing !== undefined) return channel.close(agentGone);
      // A peer with the token that asks for the wrong kind of connection is no driver.
      const isLink = channel instanceof Link;
      if (isLink !== (wayId === undefined)) return channel.close(driverGone);
      if (wayId === operatorWay) {
        return expose({ drain } satisfies OperatorControl, channelEndpoint(channel));
      }
      if (!isLink) return channel.close(driverGone);
      const session = new DriverSession(peerId, channel, machine);
      sessions.add(session);
      tell(`driver ${peerId} joined`);
      void channel.closed.then(async ({ kind, message }) => {
        // Otherwise this machine is the one that leaves.
        if (kind !== "node-died") {
          tell(`driver ${peerId} is gone (${message}); its ${session.hostCount} hosts end`);
        }
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
  const endWatch =
    found &&
    watchCredentials(found, {
      tell,
      onRenewed: (renewed) => {
        for (const session of sessions) session.renew(renewed);
      },
    });
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>();
  let draining: Promise<DrainReport> | undefined;
  function close(cause: DeathCause): Promise<void> {
    closing ??= (async () => {
      listener.close();
      endWatch?.();
      await Promise.all([...sessions].map((session) => session.end(cause)));
      await codeCache.close();
      await rm(spillDirectory, { recursive: true, force: true });
      await guard.close();
    })().finally(onClosed);
    return closing;
  }
  function drain(timeoutMs: number): Promise<DrainReport> {
    draining ??= (async () => {
      const all = machine.hostCount();
      tell(`it is being drained: ${all} hosts have ${timeoutMs / 1000} s to go elsewhere`);
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, longestMs));
      await Promise.all([...sessions].map((session) => session.drain(timeoutMs, late.signal)));
      clearTimeout(timer);
      if (closing !== undefined) {
        throw new RaySystemError("the agent was ended before it was drained");
      }
      const ended = machine.hostCount();
      tell(ended === 0 ? "it is drained" : `its time is over; ${ended} hosts end`);
      await Promise.all([...sessions].map((session) => session.end(drained)));
      // The answer to the operator leaves first.
      setImmediate(() => void close(drained));
      return { left: Math.max(0, all - ended), ended };
    })();
    return draining;
  }
  return {
    address: formatAddress(
      address,
      options.publicHost ?? nameOf(host, credentials),
      (listener.address as AddressInfo).port,
    ),
    closed,
    get hostCount() {
      return machine.hostCount();
    },
    drain,
    close: () => close(agentGone),
  };
}

/**
 * Returns the address of an agent with these options.
 *
 * @throws CertificateError
 */
export function agentAddress({
  host = "127.0.0.1",
  port = standardPort,
  publicHost,
  tls,
  token,
}: Pick<AgentOptions, "host" | "port" | "publicHost" | "tls"> & {
  readonly token: string;
}): string {
  const { credentials } = findCredentials(tls, !isLoopback(host)) ?? {};
  const address: Address = { place: { host, port }, token, isSecure: credentials !== undefined };
  return formatAddress(address, publicHost ?? nameOf(host, credentials), port);
}

/** Returns a new promise on each call: the reactions of a promise live as long as it does. */
const never = (): Promise<DeathCause> => new Promise(() => undefined);

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Returns the host name for others. */
function nameOf(host: string, credentials: Credentials | undefined): string {
  const isEverything = host === "0.0.0.0" || host === "::";
  if (!isEverything || credentials === undefined) return host;
  return namesOf(credentials).find((name) => !isLoopback(name)) ?? hostname();
}

/** Calls `onEvent`; its failure does not end the reported work. */
function tellSafely(onEvent: AgentOptions["onEvent"], line: string): void {
  const failed = (error: unknown): void => {
    const why = error instanceof Error ? error.message : String(error);
    warn(`onEvent failed, told "${line}": ${why}`);
  };
  try {
    // It may be an async function, which this type includes.
    Promise.resolve(onEvent?.(line)).catch(failed);
  } catch (error) {
    failed(error);
  }
}
