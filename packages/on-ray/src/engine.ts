/**
 * Ray as the engine of a session: its gateway reserves what the session asks for, and starts an
 * agent on each node where something was reserved.
 */
import { nodeJoiner, SessionAuthority } from "@rayling/cluster";
import {
  type ClusterResources,
  type Credentials,
  type DeathCause,
  type Demand,
  type EngineEvents,
  type EngineRequest,
  type EngineView,
  type ForeignAnswer,
  type ForeignRequest,
  type GroupSpec,
  type JoinedNode,
  newToken,
  type NodeConnector,
  type NodeInfo,
  type OpenEngine,
  RaySystemError,
  type Reserved,
} from "@rayling/core/cluster";
import { ownDashboard, parseClusterAddress, rayToken } from "./address.ts";
import {
  type DialLimits,
  dialGateway,
  GatewayClient,
  GatewayEndedError,
  standardTimeoutMs,
} from "./gateway/gateway-client.ts";
import { startGatewayJob, type StartedGateway } from "./gateway/gateway-job.ts";
import type { GatewayEvent, RayNode } from "./gateway/messages.ts";
import { isOwnAddress, isOwnHost } from "./own-addresses.ts";
import { JobsApi } from "./jobs/jobs-api.ts";
import { PythonActors } from "./python-actors.ts";

/** A gateway waits for its driver for a time, which a machine under load may exceed. */
const mostGateways = 3;

/** How long the gateway may take to give everything back, in ms, until its job is stopped. */
const closeMs = 10_000;

/**
 * Opens Ray for one session. Rejects with InvalidOptionError for a malformed address, with
 * AuthenticationError for the token, with RaySystemError when the cluster cannot be used or does
 * not answer for `reconnectTimeoutMs`, with the reason of the signal.
 */
export async function openOnRay(
  request: EngineRequest,
  events: EngineEvents,
  signal: AbortSignal,
): Promise<OpenEngine> {
  const { address, namespace, network } = request;
  const cluster = parseClusterAddress(address);
  const token = newToken();
  const timeoutMs = network.reconnectTimeoutMs ?? standardTimeoutMs;
  const url = cluster.kind === "inside" ? await ownDashboard(signal) : cluster.url;
  const jobs = new JobsApi(url, rayToken(), { timeoutMs, signal });
  const isInside = cluster.kind === "inside";
  const reach = !(await isOwnHost(url)) ? "tls" : isInside ? "unix" : "loopback";
  for (let attempt = 1; ; attempt++) {
    const gateway = await startGatewayJob(jobs, { token, namespace, timeoutMs, reach });
    const engine = new RayEngine({ request, gateway, events, jobs });
    try {
      await engine.open(token, { timeoutMs, signal });
      await gateway.keepPackages();
      return engine;
    } catch (error) {
      await engine.cut();
      signal.throwIfAborted();
      if (!(error instanceof GatewayEndedError) || attempt === mostGateways) throw error;
    }
  }
}

interface RayEngineParts {
  readonly request: EngineRequest;
  readonly gateway: StartedGateway;
  readonly events: EngineEvents;
  readonly jobs: JobsApi;
}

class RayEngine implements OpenEngine {
  readonly lost: Promise<DeathCause>;
  readonly #request: EngineRequest;
  readonly #gateway: StartedGateway;
  readonly #events: EngineEvents;
  readonly #jobs: JobsApi;
  readonly #connect: NodeConnector = nodeJoiner();
  readonly #lost: PromiseWithResolvers<DeathCause> = Promise.withResolvers();
  #client: GatewayClient | undefined;
  #view: EngineView = viewOf([]);
  #closing: Promise<void> | undefined;
  #python: PythonActors | undefined;
  #authority: SessionAuthority | undefined;
  #own: Credentials | undefined;

  constructor({ request, gateway, events, jobs }: RayEngineParts) {
    this.#request = request;
    this.#gateway = gateway;
    this.#events = events;
    this.#jobs = jobs;
    this.lost = this.#lost.promise;
  }

  get view(): EngineView {
    return this.#view;
  }

  /** Connects to the gateway. Rejects with why it does not accept this driver. */
  async open(token: string, limits: DialLimits): Promise<void> {
    const socket = await dialGateway(this.#gateway.announced, limits);
    const onEvent = (event: GatewayEvent): void => this.#heard(event);
    const client = new GatewayClient(this.#gateway.name, socket, onEvent, limits);
    this.#client = client;
    limits.signal?.addEventListener("abort", () => client.cut(), { once: true });
    void client.lost.then((cause) => this.#lost.resolve(cause));
    await client.open(token);
    // Connections between machines are secured by certificates of the session.
    const isFar = this.#gateway.announced.fingerprint !== undefined;
    if (isFar || !this.#view.nodes.every((one) => isOwnAddress(one.nodeManagerAddress))) {
      this.#authority = new SessionAuthority();
      this.#own = this.#authority.own();
    }
  }

  async refresh(): Promise<void> {
    await this.#ask("look");
  }

  async reserve(reservation: string, { hold, strategy, selectors }: Demand): Promise<Reserved> {
    const said = await this.#ask("reserve", {
      reservation,
      demand: { hold, strategy, selectors },
    });
    const refused = textIn(said, "refused");
    if (refused !== undefined) return { kind: "refused", reason: refused };
    const engineNode = textIn(said, "node");
    if (engineNode === undefined) return { kind: "withdrawn" };
    const gpus = textIn(said, "gpus");
    const env = gpus === undefined ? undefined : { CUDA_VISIBLE_DEVICES: gpus };
    return { kind: "reserved", engineNode, env };
  }

  async reserveGroup({ groupId, strategy, bundles, selectors }: GroupSpec): Promise<void> {
    await this.#ask("reserve_group", { reservation: groupId, strategy, bundles, selectors });
  }

  release(reservation: string): void {
    // Without its gateway it is given back already.
    this.#ask("release", { reservation }).catch(() => undefined);
  }

  async join(engineNode: string): Promise<JoinedNode> {
    const { network } = this.#request;
    const { reconnectTimeoutMs } = network;
    const options = {
      ...(await this.#place(engineNode)),
      ...(reconnectTimeoutMs === undefined ? {} : { reconnectTimeoutMs }),
    };
    const said = await this.#ask("agent", { node: engineNode, options });
    const address = textIn(said, "address");
    if (address === undefined) throw new RaySystemError("the gateway names no agent");
    const secured = this.#own === undefined ? {} : { credentials: this.#own };
    const node = await this.#connect(address, {
      ...this.#request,
      network: { ...network, ...secured },
    });
    return { ...node, nodeId: engineNode };
  }

  /** Where an agent listens, and its certificate if other machines reach it. */
  async #place(engineNode: string): Promise<object> {
    const host = await this.#hostOf(engineNode);
    const authority = this.#authority;
    if (authority === undefined) {
      if (isOwnAddress(host)) return { host: "127.0.0.1" };
      throw new RaySystemError(
        `the node is on another machine, ${host}, and this session began on machines of its own only: start it again`,
      );
    }
    const publicKey = textIn(await this.#ask("agent_key", { node: engineNode }), "publicKey");
    if (publicKey === undefined) throw new RaySystemError("an agent has no key");
    const cert = authority.certify([host], publicKey);
    return { host, certified: { ca: authority.ca, cert } };
  }

  /** A reservation may come before the news of a node that has just joined. */
  async #hostOf(engineNode: string): Promise<string> {
    const isIt = ({ nodeId }: NodeInfo): boolean => nodeId === engineNode;
    if (!this.#view.nodes.some(isIt)) await this.refresh();
    const found = this.#view.nodes.find(isIt);
    if (found === undefined) throw new RaySystemError(`Ray has no node ${engineNode}`);
    return found.nodeManagerAddress;
  }

  async foreign(request: ForeignRequest): Promise<ForeignAnswer> {
    this.#python ??= new PythonActors(this.#jobs, (op, given) => this.#ask(op, given));
    return this.#python.ask(request);
  }

  /** Ends the gateway without its help. */
  async cut(): Promise<void> {
    this.#client?.cut();
    await this.#gateway.stop().catch(() => undefined);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), closeMs);
    });
    const hasEnded = await Promise.race([this.#client?.close() ?? true, late]);
    clearTimeout(timer);
    if (!hasEnded) await this.cut();
  }

  #ask(op: string, given: object = {}): Promise<unknown> {
    if (this.#client === undefined) throw new RaySystemError("the gateway is not connected yet");
    return this.#client.ask(op, given);
  }

  #heard(event: GatewayEvent): void {
    switch (event.event) {
      case "nodes":
        this.#view = viewOf(event.nodes);
        return;
      case "node-gone":
        return this.#events.nodeGone(event.node, event.reason);
      case "agent-gone":
        return this.#events.agentGone(event.node, event.reason);
      case "group-placed":
        return this.#events.groupPlaced(event.group, event.nodes);
      case "welcome":
    }
  }
}

function textIn(said: unknown, name: string): string | undefined {
  const value = typeof said === "object" && said !== null ? Reflect.get(said, name) : undefined;
  return typeof value === "string" ? value : undefined;
}

function viewOf(found: readonly RayNode[]): EngineView {
  const nodes = found.map(infoOf);
  const living = nodes.filter(({ alive }) => alive);
  const resources: ClusterResources = {
    total: sum(living.map((node) => node.resources)),
    available: sum(living.map((node) => node.availableResources)),
  };
  return { nodes, resources };
}

function infoOf(node: RayNode): NodeInfo {
  const { id, alive, name, hostname, address, labels, deathReason } = node;
  return {
    nodeId: id,
    alive,
    draining: false,
    nodeName: name,
    nodeManagerHostname: hostname,
    nodeManagerAddress: address,
    resources: alive ? node.resources : {},
    availableResources: alive ? node.available : {},
    labels,
    deathReason: alive ? undefined : deathReason,
  };
}

function sum(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const amounts of all) {
    for (const [name, amount] of Object.entries(amounts)) {
      total[name] = (total[name] ?? 0) + amount;
    }
  }
  return total;
}
