/**
 * The machine of one agent, as a launcher: it starts hosts there, and notices when the machine or
 * the agent is lost.
 */
import { expose, type Remote, wrap } from "comlink";
import {
  type Address,
  causeFromData,
  type Channel,
  channelEndpoint,
  type DeathCause,
  dialLater,
  dialLink,
  dialled,
  type Host,
  type HostRequest,
  identityOf,
  type JoinRequest,
  type LauncherOptions,
  type Link,
  type NetworkSettings,
  newId,
  type NodeLauncher,
  RaySystemError,
  type RuntimeEnv,
  type Watch,
  watchMachine,
} from "@rayling/core/cluster";
import { addressName, NodeAddressError, parseAddress } from "./address.ts";
import { outOfReach, watchAgent } from "./agent/agent-health.ts";
import type { WrittenLine } from "./agent/host-output.ts";
import { CodeChangedError, CodePackages } from "./code/code-package.ts";
import { CodeSender } from "./code/send-code.ts";
import {
  type AgentControl,
  type DriverAnswers,
  type NodeOffer,
  type ShippedCode,
  standardReconnectTimeoutMs,
} from "./contract.ts";
import { type Dialled, RemoteHost, type RemoteHostParts } from "./remote-host.ts";

/** Takes the agent's reports about one host. */
interface HostReports {
  readonly end: (cause: DeathCause) => void;
  readonly wrote: (line: WrittenLine) => void;
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
  readonly #hosts: Map<string, HostReports> = new Map();
  readonly #packages: CodePackages;
  readonly #sender: CodeSender;
  readonly #channel: Promise<Link>;
  readonly #closed: PromiseWithResolvers<DeathCause> = Promise.withResolvers();

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
        : new NodeAddressError(name, error.message, error);
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

  /** Starts a host process on the machine. */
  launch({ nodeId, runtimeEnv, moduleUrl }: HostRequest, options: LauncherOptions): Host {
    const { objectStoreMemory, output } = options;
    const id = newId("host");
    const { isDevelopment, spillDirectory } = options.objectStoreFor(id);
    const host = new RemoteHost({
      agent: this.#agent,
      order: {
        // The credentials of this machine stay here; the agent gives its hosts its own.
        identity: { ...identityOf(id, nodeId, options), network: this.#times },
        runtimeEnv,
        moduleUrl,
        isDevelopment,
        publicHost: this.host,
        ...(objectStoreMemory === undefined ? {} : { objectStoreMemory }),
      },
      code: this.#codeFor(runtimeEnv, moduleUrl, spillDirectory),
      answers: options.controlFor(id),
      dial: (channel, to) => this.#dial(channel, to),
    });
    this.#hosts.set(id, {
      end: (cause) => host.end(cause),
      wrote: (line) => output.line(...line),
    });
    void host.exited.then(() => this.#hosts.delete(id));
    return host;
  }

  /** Dials a channel of a host on the machine. */
  #dial(channel: keyof typeof dialled, { hostId, address, exited }: Dialled): Channel {
    return dialLater(
      address,
      { peerId: this.#driverId, wayId: dialled[channel] },
      {
        peerId: `host ${hostId}`,
        explain: () => exited,
        whenExplainable: () => this.#heard(),
        network: this.#network,
        mayBeBusy: true,
        onCut: () => this.#look(),
      },
    );
  }

  /** Returns what brings the code for a host there, if some has to be sent. */
  #codeFor(
    runtimeEnv: RuntimeEnv | undefined,
    moduleUrl: string | undefined,
    folder: string,
  ): RemoteHostParts["code"] {
    if (runtimeEnv?.workingDir === undefined) return undefined;
    return (missing) => {
      if (missing !== undefined) this.#sender.missing(missing);
      return this.#bring(runtimeEnv, moduleUrl, folder);
    };
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
          () => link.connection.cut(),
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
      exited: (hostId, cause) => this.#hosts.get(hostId)?.end(causeFromData(cause)),
      wrote: (lines) => {
        for (const line of lines) this.#hosts.get(line[0])?.wrote(line);
      },
    };
    expose(answers, endpoint);
    return wrap<AgentControl>(endpoint);
  }
}
