/**
 * Other machines, to core: a node that somebody connected to starts hosts there, and that is all there is to it.
 *
 * Core makes no connection by itself: what does is given in (`provideNodes`), and asked when `init` names nodes.
 */
import type { NodeMachine } from "../../rpc/cluster.ts";
import type { Amounts } from "../../rpc/demand.ts";
import { InvalidOptionError, type DeathCause } from "../../shared/errors.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import type { NetworkSettings } from "../../transport/address.ts";
import type { Host, HostRequest, LauncherOptions } from "../launch/host.ts";

export interface JoinedNode {
  /** For messages to people. */
  readonly nodeName: string;
  readonly machine: NodeMachine;
  /** CPUs of the machine that its hosts can have, whatever it offers: so many of them can start side by side. */
  readonly parallelism: number;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
  /** Starts a host process there. */
  launch(request: HostRequest, options: LauncherOptions): Host;
  /** Called once, when its machine is to be left: everything on it has so many milliseconds. What is placed from then on goes elsewhere. */
  onDrain(listener: (timeoutMs: number) => void): void;
  /** Resolves when the machine cannot be reached any more. */
  readonly lost: Promise<DeathCause>;
  /** Asked when the session leaves it: resolves when nobody there answers any more, so that nothing can be waited for. */
  outOfReach(): Promise<void>;
  /** Ends what this session has there. */
  close(): Promise<void>;
}

export interface JoinRequest {
  readonly driverId: string;
  readonly network: NetworkSettings;
}

/** Why a machine is no node: one line that names its address. */
export interface NodeRefusal extends Error {
  /** It cannot be reached, or takes nobody now; otherwise something is wrong with the address, or with us. */
  readonly mayComeLater?: boolean;
}

/** Rejects with a NodeRefusal when there is no agent that takes us. */
export type NodeConnector = (address: string, request: JoinRequest) => Promise<JoinedNode>;

/** What starts hosts on a machine. Without `parallelism` it is the driver's own. */
export type NodeLauncher = Pick<JoinedNode, "launch" | "lost" | "close"> &
  Partial<Pick<JoinedNode, "parallelism" | "outOfReach">>;

interface ConnectorSlot {
  load: (() => Promise<NodeConnector>) | undefined;
  local: ((request: JoinRequest) => NodeLauncher) | undefined;
}

const slot: ConnectorSlot = threadSlot("nodes", () => ({ load: undefined, local: undefined }));

/** Gives in what connects to the nodes that `init` names; it is loaded when there are some. */
export function provideNodes(load: () => Promise<NodeConnector>): void {
  slot.load ??= load;
}

/** @throws InvalidOptionError when nothing was given in */
export function nodeConnector(): Promise<NodeConnector> {
  if (slot.load === undefined) {
    throw new InvalidOptionError(
      "nodes",
      "option nodes needs @rayling/cluster: import init from rayling, or import @rayling/cluster first",
    );
  }
  return slot.load();
}

/** Gives in what starts the processes of the driver's own machine, in place of the driver itself. */
export function provideLocalNode(
  local: ((request: JoinRequest) => NodeLauncher) | undefined,
): void {
  slot.local = local;
}

export function localNode(request: JoinRequest): NodeLauncher | undefined {
  return slot.local?.(request);
}
