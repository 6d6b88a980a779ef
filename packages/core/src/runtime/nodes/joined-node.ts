/**
 * Other machines as core sees them: a node on which an outside launcher starts hosts.
 *
 * Core makes no connection by itself: `provideNodes` injects the connector, which is called when
 * `init` names nodes.
 */
import type { NodeMachine } from "../../rpc/cluster-directory.ts";
import type { Amounts } from "../../rpc/resource-demand.ts";
import { InvalidOptionError, type DeathCause } from "../../shared/errors.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import type { NetworkSettings } from "../../transport/address.ts";
import type { Host, HostRequest, LauncherOptions } from "../launch/host.ts";

export interface JoinedNode {
  /** The id that an engine has for the machine. Default: a new one. */
  readonly nodeId?: string;
  /** The name of the node, for messages to people. */
  readonly nodeName: string;
  readonly machine: NodeMachine;
  /**
   * CPUs of the machine that its hosts can use, whatever it offers: this many of them can start
   * side by side.
   */
  readonly parallelism: number;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
  /** Starts a host process there. */
  launch(request: HostRequest, options: LauncherOptions): Host;
  /** Resolves when the machine can no longer be reached. */
  readonly lost: Promise<DeathCause>;
  /**
   * Called when the session leaves the node: resolves when nobody there answers any more, so that
   * no wait makes sense.
   */
  outOfReach(): Promise<void>;
  /** Ends everything that this session has there. */
  close(): Promise<void>;
}

export interface JoinRequest {
  readonly driverId: string;
  readonly network: NetworkSettings;
}

/** Rejects when no agent accepts this session, with one line that names the address. */
export type NodeConnector = (address: string, request: JoinRequest) => Promise<JoinedNode>;

/** Starts hosts on a machine. Without `parallelism` it is the driver's own machine. */
export type NodeLauncher = Pick<JoinedNode, "launch" | "lost" | "close"> &
  Partial<Pick<JoinedNode, "parallelism" | "outOfReach">>;

interface ConnectorSlot {
  /** By the scheme of the addresses; "" for those without one. */
  readonly byScheme: Map<string, () => Promise<NodeConnector>>;
  local: ((request: JoinRequest) => NodeLauncher) | undefined;
}

const slot: ConnectorSlot = threadSlot("nodes", () => ({ byScheme: new Map(), local: undefined }));

/**
 * Injects the connector of nodes that `init` names; it loads when there are some. The first one of
 * a scheme counts.
 *
 * @param scheme of their addresses, as `ray+http` of `ray+http://head:8265`
 */
export function provideNodes(load: () => Promise<NodeConnector>, scheme: string = ""): void {
  if (!slot.byScheme.has(scheme)) slot.byScheme.set(scheme, load);
}

/**
 * Returns the connectors of one session: the nodes of a scheme share theirs.
 *
 * @throws InvalidOptionError (what is returned) when none was injected
 */
export function nodeConnectors(): (address: string) => Promise<NodeConnector> {
  const loaded = new Map<() => Promise<NodeConnector>, Promise<NodeConnector>>();
  return (address) => {
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase() ?? "";
    const load = slot.byScheme.get(scheme) ?? slot.byScheme.get("") ?? unprovided;
    const connector = loaded.get(load) ?? load();
    loaded.set(load, connector);
    return connector;
  };
}

function unprovided(): never {
  throw new InvalidOptionError(
    "nodes",
    "option nodes needs @rayling/cluster: import init from rayling, or import @rayling/cluster first",
  );
}

/** Injects the launcher of processes on the driver's own machine, in place of the driver itself. */
export function provideLocalNode(
  local: ((request: JoinRequest) => NodeLauncher) | undefined,
): void {
  slot.local = local;
}

export function localNode(request: JoinRequest): NodeLauncher | undefined {
  return slot.local?.(request);
}
