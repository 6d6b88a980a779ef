/**
 * A machine with an agent as a node of this driver: one more launcher.
 */
import { expose, type Remote, wrap } from "comlink";
import {
  type Address,
  AuthenticationError,
  causeFromData,
  CertificateError,
  channelEndpoint,
  controlUntil,
  type DeathCause,
  dialLater,
  dialLink,
  dialled,
  type Host,
  type HostControl,
  type HostRequest,
  identityOf,
  type Channel,
  type JoinedNode,
  type NetworkSettings,
  type NodeConnector,
  type NodeLauncher,
  type JoinRequest,
  type LauncherControl,
  type LauncherOptions,
  type Link,
  newId,
  ProtocolVersionError,
  RaySystemError,
  type RuntimeEnv,
  type Watch,
  watchMachine,
} from "@rayling/core/cluster";
import { addressName, NodeAddressError, parseAddress } from "./address.ts";
import { CodeChangedError, CodePackages } from "./code/code-package.ts";
import { CodeSender } from "./code/send-code.ts";
import {
  type AgentControl,
  type DriverAnswers,
  type HostOrder,
  type NodeOffer,
  type ShippedCode,
  standardReconnectTimeoutMs,
} from "./contract.ts";
import { outOfReach, watchAgent } from "./agent/health.ts";
import type { WrittenLine } from "./agent/host-output.ts";

interface RemoteHost {
  readonly end: (cause: DeathCause) => void;
  readonly wrote: (line: WrittenLine) => void;
}

/** Returns the connector for the nodes of one session, which share the session's code. */
export function nodeJoiner(): NodeConnector {
  const packages = new CodePackages();
  const joined = new Map<string, string>();
  return (address, request) => joinNode(address, request, packages, joined);
}

/**
 * Joins a machine. Rejects with NodeAddressError when no agent answers there, or the agent is
 * already a node.
 *
 * @param joined addresses of joined machines, by their agents
 */
export async function joinNode(
  address: string,
  request: JoinRequest,
  packages?: CodePackages,
  joined: Map<string, string> = new Map(),
): Promise<JoinedNode> {
  const node = new RemoteNode(address, request, packages);
  const { name } = node;
  let offer: NodeOffer;
  try {
    offer = await node.offer;
    const known = joined.get(offer.agentId);
    if (known !== undefined) {
      throw new NodeAddressError(name, `is the agent at ${known}, which is already a node`);
    }
  } catch (error) {
    await node.close();
    throw error;
  }
  const { agentId, hostname, ...offered } = offer;
  joined.set(agentId, name);
  node.takeOver();
  void node.lost.then(() => joined.delete(agentId));
  return {
    ...offered,
    machine: { hostname, address: node.host },
    onDrain: (listener) => node.onDrain(listener),
    lost: node.lost,
    launch: (wish, options) => node.launch(wish, options),
    outOfReach: () => node.outOfReach(),
    close: () => node.close(),
  };
}

/** The machine of one agent. Hosts may be ordered before it has answered. */
export class RemoteNode implements NodeLauncher {
  /** Its address without the token, for messages. */
  readonly name: string;
  /** Rejects with NodeAddressError when no agent answers there. */
  readonly offer: Promise<NodeOffer>;
  /** Resolves with the cause when the machine can no longer be reached. */
  readonly lost: Promise<DeathCause>;
  readonly #driverId: string;
  /** The host name of its machine. */
  readonly host: string;
  readonly #address: Address;
  #looking: Watch | undefined;
  readonly #network: NetworkSettings;
  /** Only the times of the network settings. */
  readonly #times: NetworkSettings;
  readonly #agent: Promise<Remote<AgentControl>>;
  readonly #hosts: Map<string, RemoteHost> = new Map();
  readonly #packages: CodePackages;
  readonly #sender: CodeSender;
  readonly #channel: Promise<Link>;
  readonly #closed: PromiseWithResolvers<DeathCause> = Promise.withResolvers();
  #onDrain: ((timeoutMs: number) => void) | undefined;
  /** The drain time of a request that came before there was a listener. */
  #leaveWithinMs: number | undefined;

  /** @throws NodeAddressError for a malformed address */
  constructor(
    address: string,
    { driverId, network }: JoinRequest,
    packages: CodePackages = new CodePackages(),
  ) {
    const parsed = parseAddress(address);
    const { place } = parsed;
    this.#address = parsed;
    const name = addressName(parsed);
    this.name = name;
    const peer = `the agent at ${place.host}:${place.port}`;
    this.#driverId = driverId;
    this.host = place.host;
    const { reconnectTimeoutMs } = network;
    this.#network = network;
    this.#times = reconnectTimeoutMs === undefined ? {} : { reconnectTimeoutMs };
    const refused = (error: Error): never => {
      throw error instanceof NodeAddressError
        ? error
        : new NodeAddressError(name, error.message, error, !isRefusal(error));
    };
    this.#channel = dialLink(
      parsed,
      { peerId: driverId, wayId: undefined },
      {
        peerId: peer,
        explain: () => this.#closed.promise,
        network: { ...network, explainMs: 0 },
        // The agent then ends the hosts.
        endsWithProcess: true,
      },
    ).catch(refused);
    this.lost = this.#channel.then(
      async (channel): Promise<DeathCause> => ({
        kind: "node-died",
        message: (await channel.closed).message,
      }),
      (error: Error): DeathCause => ({ kind: "node-died", message: error.message, error }),
    );
    void this.lost.then((cause) => {
      this.#looking?.end();
      for (const host of this.#hosts.values()) host.end(cause);
    });
    this.#agent = this.#channel.then((channel) => this.#introduce(channel));
    this.#watch();
    this.#packages = packages;
    this.#sender = new CodeSender(this.#agent, this.lost);
    this.offer = Promise.race([
      this.#agent.then((agent) => agent.describe()).catch(refused),
      this.lost.then((cause) => refused(cause.error ?? new Error(cause.message))),
    ]);
    // A launch that does not wait for the agent gets the error through the host.
    for (const one of [this.#channel, this.#agent, this.offer]) one.catch(() => undefined);
  }

  /**
   * Ends earlier sessions of this driver: an agent that this driver gave up may still wait for it,
   * and run its hosts.
   */
  takeOver(): void {
    // A lost agent has nothing to take over.
    this.#agent.then((agent) => agent.takeOver()).catch(() => undefined);
  }

  /**
   * Sets the listener that is called once, when the machine is to be drained within `timeoutMs`
   * milliseconds.
   */
  onDrain(listener: (timeoutMs: number) => void): void {
    this.#onDrain = listener;
    if (this.#leaveWithinMs !== undefined) listener(this.#leaveWithinMs);
  }

  /** Starts a host process on the machine. */
  launch({ nodeId, runtimeEnv, moduleUrl }: HostRequest, options: LauncherOptions): Host {
    const { objectStoreMemory } = options;
    const id = newId("host");
    const { promise: exited, resolve } = Promise.withResolvers<DeathCause>();
    let known: DeathCause | undefined;
    let pid: number | undefined;
    const end = (cause: DeathCause): void => {
      this.#hosts.delete(id);
      // A lost link to the host was the first sign of the lost machine; on a busy machine either
      // may be noticed first.
      const isSign = known?.kind === "unreachable" && cause.kind === "node-died";
      resolve(isSign ? cause : (known ?? cause));
    };
    this.#hosts.set(id, { end, wrote: (line) => options.output.line(...line) });
    const { isDevelopment, spillDirectory } = options.objectStoreFor(id);
    const order: Omit<HostOrder, "code"> = {
      // The credentials of this machine stay here; the agent gives its hosts its own.
      identity: { ...identityOf(id, nodeId, options), network: this.#times },
      runtimeEnv,
      moduleUrl,
      isDevelopment,
      publicHost: this.host,
      ...(objectStoreMemory === undefined ? {} : { objectStoreMemory }),
    };
    let isOrdered = false;
    const code = this.#codeFor(runtimeEnv, moduleUrl, spillDirectory);
    let unprepared: DeathCause | undefined;
    code?.catch(({ message }: Error) => {
      unprepared = { kind: "runtime-env-failed", message };
      end(unprepared);
    });
    const started = (async () => {
      const brought = await code;
      const agent = await this.#agent;
      if (known !== undefined) throw new RaySystemError(known.message);
      isOrdered = true;
      return agent.launch({ ...order, code: brought });
    })();
    started.then(
      (host) => (pid = host.pid),
      // The agent reports the cause of the end; this is the cause when there is no agent.
      (error: Error) => end({ kind: "unreachable", message: error.message, error }),
    );
    const channelTo = (wayId: string): Channel =>
      dialLater(
        async () => (await started).address,
        { peerId: this.#driverId, wayId },
        {
          peerId: `host ${id}`,
          explain: () => exited,
          whenExplainable: () => this.#heard(),
          network: this.#network,
          mayBeBusy: true,
          onCut: () => this.#look(),
        },
      );
    const endpoint = channelEndpoint(channelTo(dialled.control));
    const ready = Promise.withResolvers<void>();
    const answers: LauncherControl = {
      ...options.controlFor(id),
      ready: () => ready.resolve(),
      dying: (cause) => void (known ??= causeFromData(cause)),
    };
    expose(answers, endpoint);
    const use = controlUntil(id, wrap<HostControl>(endpoint), exited);
    const terminate = async (cause: DeathCause): Promise<void> => {
      known ??= cause;
      if (!isOrdered) return end(cause);
      // The host may not have reported its address: its code may hang before that.
      void this.#agent.then((agent) => agent.terminate(id)).catch(() => undefined);
      await exited;
    };
    return {
      id,
      nodeId,
      isolation: "process",
      isRemote: true,
      get pid() {
        return pid;
      },
      ready: ready.promise,
      exited,
      ...(code === undefined ? {} : { prepared: settled([code, exited]).then(() => unprepared) }),
      channel: channelTo(dialled.data),
      control: use,
      terminate,
      async stop(cause) {
        known ??= cause;
        await use((host) => host.stop());
        await terminate(cause);
      },
    };
  }

  /** Returns the code for a host there, if some has to be sent. */
  #codeFor(
    runtimeEnv: RuntimeEnv | undefined,
    moduleUrl: string | undefined,
    folder: string,
  ): Promise<ShippedCode> | undefined {
    if (runtimeEnv?.workingDir === undefined) return undefined;
    return this.#bring(runtimeEnv, moduleUrl, folder);
  }

  /** Sends code. Rejects with the reason of a failure. */
  async #bring(
    runtimeEnv: RuntimeEnv,
    moduleUrl: string | undefined,
    folder: string,
    attempts = 3,
  ): Promise<ShippedCode> {
    const { nodeName, code: offer } = await this.offer;
    const code = await this.#packages.for(runtimeEnv, moduleUrl, folder);
    code.checkFor(nodeName, offer);
    try {
      return await this.#sender.bring(code);
    } catch (error) {
      if (error instanceof CodeChangedError && attempts > 1) {
        await this.#packages.forget(code);
        return this.#bring(runtimeEnv, moduleUrl, folder, attempts - 1);
      }
      throw new RaySystemError(`node ${nodeName}: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Resolves when nobody on the machine answers any more. */
  async outOfReach(): Promise<void> {
    await Promise.all([this.#channel, this.#agent]).then(
      ([link, agent]) => outOfReach({ link, ask: () => agent.ping() }),
      // The agent was never there.
      () => undefined,
    );
  }

  /** Ends the connection and the hosts of this driver on the machine. */
  async close(): Promise<void> {
    const cause: DeathCause = { kind: "shutdown", message: "the runtime was shut down" };
    this.#closed.resolve(cause);
    await this.#channel.then(
      (channel) => channel.close(cause),
      // The agent was never there.
      () => undefined,
    );
    await this.lost;
  }

  /**
   * Settles when the agent answers, which can report how a host ended, or when the agent is lost,
   * which ends its hosts as node-died.
   */
  async #heard(): Promise<void> {
    try {
      await (await this.#agent).ping();
    } catch {
      await this.lost;
    }
  }

  /**
   * Watches the machine after the channel to one of its hosts was cut: if the machine is
   * unreachable, so is the agent, which may have answered a moment ago.
   */
  #look(): void {
    this.#channel.then(
      (link) => {
        if (!link.isOpen || this.#looking?.isOver === false) return;
        this.#looking = watchMachine(
          async () => this.#address,
          () => link.cut(),
        );
      },
      // The agent was never there.
      () => undefined,
    );
  }

  /** Watches for a silent agent. */
  #watch(): void {
    const { reconnectTimeoutMs: timeoutMs = standardReconnectTimeoutMs } = this.#times;
    Promise.all([this.#channel, this.#agent]).then(
      ([link, agent]) => watchAgent({ link, timeoutMs, ask: () => agent.ping() }),
      // The agent was never there.
      () => undefined,
    );
  }

  #introduce(channel: Channel): Remote<AgentControl> {
    const endpoint = channelEndpoint(channel);
    const answers: DriverAnswers = {
      draining: (timeoutMs) => {
        this.#leaveWithinMs = timeoutMs;
        this.#onDrain?.(timeoutMs);
      },
      exited: (hostId, cause) => this.#hosts.get(hostId)?.end(causeFromData(cause)),
      wrote: (lines) => {
        for (const line of lines) this.#hosts.get(line[0])?.wrote(line);
      },
    };
    expose(answers, endpoint);
    return wrap<AgentControl>(endpoint);
  }
}

/** Whether the agent was reached and would refuse this driver again. */
function isRefusal(error: Error): boolean {
  return [AuthenticationError, ProtocolVersionError, CertificateError].some(
    (kind) => error instanceof kind,
  );
}

/** Resolves when the first promise has settled, either way. */
async function settled(promises: readonly Promise<unknown>[]): Promise<void> {
  await Promise.race(promises).catch(() => undefined);
}
