/**
 * The nodes of this process and its placement groups, as the directory reports them.
 *
 * A node is a set of resources and the hosts started for it. The first one is the machine's; others
 * are added on request, as Ray's cluster_utils does for tests. The removal of a node ends its
 * hosts: actors restart elsewhere by their policy, and groups request new bundles.
 */
import { hostname, networkInterfaces } from "node:os";
import type {
  ClusterResources,
  GroupInfo,
  GroupSpec,
  GroupState,
  NodeInfo,
  NodeMachine,
  NodeSpec,
} from "../rpc/cluster-directory.ts";
import type { Labels } from "../placement/labels.ts";
import { toAmounts } from "../placement/resources.ts";
import type { Placement } from "../placement/placement.ts";
import { clockMs } from "../shared/clock.ts";
import type { DeathCause } from "../shared/errors.ts";
import { newId } from "../shared/ids.ts";
import { pause } from "../shared/machine/timers.ts";

/** Ray's control plane remembers this many dead nodes. */
const maxDeadNodes = 1000;

/** The pause between two looks at a draining node, in ms. */
const lookAgainMs = 100;

export interface ClusterParts {
  readonly placement: Placement;
  /** The nodes as an engine shows them; undefined without one. */
  readonly engineNodes: () => readonly NodeInfo[] | undefined;
  /**
   * Takes one step of draining a node: actors and workers that can leave it do. Returns whether it
   * is empty.
   */
  readonly leaveNode: (nodeId: string, cause: DeathCause) => boolean;
  /** Ends the hosts of a node that is gone. */
  readonly endNode: (nodeId: string, cause: DeathCause) => Promise<void>;
  /** Resolves when that actor is dead for good. */
  readonly actorEnded: (actorId: string) => Promise<void>;
  /** Ends actors and tasks that run in a group or wait for it. */
  readonly endGroup: (groupId: string, cause: DeathCause) => Promise<void>;
}

export class LocalCluster {
  readonly #parts: ClusterParts;
  readonly #nodes: Map<string, NodeInfo> = new Map();
  readonly #dead: string[] = [];
  /** Groups that end with the actor that made them, by its id. */
  readonly #ownedGroups: Map<string, Set<string>> = new Map();
  #headId: string | undefined;
  #machine: NodeMachine | undefined;

  constructor(parts: ClusterParts) {
    this.#parts = parts;
  }

  /** Adds a node. The first one is the driver's own, and ends with it. */
  addNode(spec: NodeSpec): NodeInfo {
    const nodeId = spec.nodeId ?? newId("node");
    const isHead = this.#headId === undefined;
    if (isHead) this.#headId = nodeId;
    const resources = {
      ...spec.resources,
      [`node:${nodeId}`]: 1,
      ...(isHead ? { "node:__internal_head__": 1 } : {}),
    };
    const { machine = (this.#machine ??= ownMachine()) } = spec;
    const node: NodeInfo = {
      nodeId,
      alive: true,
      draining: false,
      nodeName: spec.nodeName ?? nodeId,
      nodeManagerHostname: machine.hostname,
      nodeManagerAddress: machine.address,
      resources,
      availableResources: resources,
      labels: { ...spec.labels, "ray.io/node-id": nodeId },
      deathReason: undefined,
    };
    // A machine of an engine may be back.
    if (this.#nodes.has(nodeId)) this.#dead.splice(this.#dead.indexOf(nodeId), 1);
    this.#nodes.set(nodeId, node);
    this.#parts.placement.addNode(nodeId, node.resources, node.labels);
    return node;
  }

  /** Returns the CPUs of a node, rounded down; 0 for one that is gone. */
  cpus(nodeId: string): number {
    return Math.floor(this.#nodes.get(nodeId)?.resources["CPU"] ?? 0);
  }

  labels(nodeId: string): Labels {
    return this.#nodes.get(nodeId)?.labels ?? {};
  }

  async removeNode(nodeId: string, reason = "was removed from the cluster"): Promise<boolean> {
    const node = this.#nodes.get(nodeId);
    if (node?.alive !== true || nodeId === this.#headId) return false;
    const message = `node ${node.nodeName} ${reason}`;
    this.#nodes.set(nodeId, {
      ...node,
      alive: false,
      draining: false,
      resources: {},
      availableResources: {},
      deathReason: message,
    });
    this.#dead.push(nodeId);
    const oldest = this.#dead.length > maxDeadNodes ? this.#dead.shift() : undefined;
    if (oldest !== undefined) this.#nodes.delete(oldest);
    this.#parts.placement.removeNode(nodeId);
    await this.#parts.endNode(nodeId, { kind: "node-died", message });
    return true;
  }

  /** Stops placement on a node. Returns whether the node exists and can be drained. */
  #closeNode(nodeId: string): boolean {
    const node = this.#nodes.get(nodeId);
    if (node?.alive !== true || nodeId === this.#headId) return false;
    this.#nodes.set(nodeId, { ...node, draining: true });
    this.#parts.placement.drainNode(nodeId);
    return true;
  }

  isDraining(nodeId: string): boolean {
    return this.#nodes.get(nodeId)?.draining === true;
  }

  /**
   * Lets actors and workers leave a closed node. Resolves with whether the node is empty: when it
   * is, after `timeoutMs`, or when the node is gone.
   */
  async #emptyNode(nodeId: string, timeoutMs: number): Promise<boolean> {
    const name = this.#nodes.get(nodeId)?.nodeName ?? nodeId;
    const cause: DeathCause = { kind: "drained", message: `node ${name} is being drained` };
    const deadline = clockMs() + timeoutMs;
    while (!this.#parts.leaveNode(nodeId, cause)) {
      if (clockMs() >= deadline || !this.isDraining(nodeId)) return false;
      await pause(lookAgainMs);
    }
    return true;
  }

  async drainNode(nodeId: string, timeoutMs: number): Promise<boolean | undefined> {
    if (!this.#closeNode(nodeId)) return undefined;
    const isEmpty = await this.#emptyNode(nodeId, timeoutMs);
    await this.removeNode(nodeId, "was drained");
    return isEmpty;
  }

  nodes(): readonly NodeInfo[] {
    const engineNodes = this.#parts.engineNodes();
    if (engineNodes !== undefined) return engineNodes;
    const pools = new Map(this.#parts.placement.nodes.map((pool) => [pool.nodeId, pool]));
    return [...this.#nodes.values()].map((node) => {
      const pool = pools.get(node.nodeId);
      return pool === undefined
        ? node
        : { ...node, availableResources: toAmounts(pool.available, 0) };
    });
  }

  resources(): ClusterResources {
    return this.#parts.placement.resources;
  }

  createGroup(spec: GroupSpec): { readonly created: boolean } {
    const created = this.#parts.placement.createGroup(spec);
    if (created && spec.owner !== undefined) this.#own(spec.owner, spec.groupId);
    return { created };
  }

  /**
   * Binds a group to its owner: restarts of the owner leave the group as it is, and its end removes
   * the group.
   */
  #own(owner: string, groupId: string): void {
    const owned = this.#ownedGroups.get(owner);
    if (owned !== undefined) return void owned.add(groupId);
    this.#ownedGroups.set(owner, new Set([groupId]));
    void this.#parts.actorEnded(owner).then(() => {
      for (const one of this.#ownedGroups.get(owner) ?? []) void this.removeGroup(one);
      this.#ownedGroups.delete(owner);
    });
  }

  groupReady(groupId: string): Promise<GroupState> {
    return this.#parts.placement.groupReady(groupId);
  }

  async removeGroup(groupId: string): Promise<void> {
    this.#parts.placement.removeGroup(groupId);
    for (const owned of this.#ownedGroups.values()) owned.delete(groupId);
    await this.#parts.endGroup(groupId, {
      kind: "placement-group-removed",
      message: `its placement group ${groupId} was removed`,
    });
  }

  groups(): readonly GroupInfo[] {
    return this.#parts.placement.groups();
  }
}

function ownMachine(): NodeMachine {
  return { hostname: hostname(), address: ownAddress() ?? "127.0.0.1" };
}

function ownAddress(): string | undefined {
  try {
    const all = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
    return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
  } catch {
    // A sandbox may forbid the look.
    return undefined;
  }
}
