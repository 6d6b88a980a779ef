/**
 * Allocates the resources of nodes, and of the bundles that placement groups reserved on them, in
 * order of request.
 *
 * Only this file carries out the policy's decisions, in the turn in which they are made. A request
 * that no node could ever fit waits too, because a node may join (as in Ray); one process warning
 * reports it.
 */
import type {
  ClusterResources,
  GroupInfo,
  GroupSpec,
  GroupState,
} from "../rpc/cluster-directory.ts";
import type { Amounts, Demand } from "../rpc/resource-demand.ts";
import { clockMs } from "../shared/clock.ts";
import { type Group, Groups } from "./groups.ts";
import type { Labels } from "./labels.ts";
import { NodePools } from "./node-pools.ts";
import {
  type Entry,
  Lines,
  type PendingLine,
  type PendingRequest,
  type Why,
} from "./request-queues.ts";
import { decide, type PlacementRequest, type PoolView, toRequest } from "./policy.ts";
import type { Outcome, Placement, ResourceRequest } from "./placement.ts";
import { allocate, Pool } from "./resource-pool.ts";
import { change, toAmounts, toUnits } from "./resources.ts";

export class Scheduler implements Placement {
  readonly #nodes: NodePools = new NodePools();
  /** Nodes that are being drained: nothing is allocated there. */
  readonly #draining: Map<string, Pool> = new Map();
  readonly #onFree = (): void => this.#lines.serve();
  readonly #groups: Groups = new Groups();
  readonly #groupEntries: Map<Group, Entry> = new Map();
  readonly #lines: Lines = new Lines();
  /** Converted requests of demands that many callers share. */
  readonly #requests: WeakMap<Demand, PlacementRequest> = new WeakMap();
  readonly #now: () => number;
  #sequence = 0;
  /** Counts the changes in the set of nodes. */
  #nodesVersion = 0;
  #lastSpread: string | undefined;
  #closed: Error | undefined;

  constructor(now: () => number = () => clockMs()) {
    this.#now = now;
  }

  addNode(nodeId: string, total: Amounts, labels: Labels = {}): void {
    this.#nodesVersion += 1;
    this.#nodes.add(new Pool(nodeId, labels, toUnits(total)));
    this.#lines.serve();
  }

  /**
   * Removes a node. Its users have lost their place, and groups request the bundles there again.
   */
  removeNode(nodeId: string): void {
    this.#draining.delete(nodeId);
    this.#loseNode(nodeId, false);
  }

  /**
   * Drains a node. Its users keep their resources until they leave, and the node is shown until it
   * is removed.
   */
  drainNode(nodeId: string): void {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) return;
    this.#draining.set(nodeId, node);
    this.#loseNode(nodeId, true);
  }

  #loseNode(nodeId: string, isDrained: boolean): void {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) return;
    this.#nodesVersion += 1;
    if (isDrained) node.drain();
    else node.end();
    this.#nodes.delete(nodeId);
    for (const group of this.#groups.loseNode(nodeId, isDrained)) {
      this.#groupEntries.get(group)?.leave();
      this.#askFor(group, `group ${group.spec.groupId}`);
    }
    this.#lines.serve();
  }

  /** All nodes, including drained ones. */
  get nodes(): readonly PoolView[] {
    return [...this.#nodes.list, ...this.#draining.values()];
  }

  /**
   * The resources of all nodes together. The available amount is never negative, even while a node
   * is overdrawn.
   */
  get resources(): ClusterResources {
    const total = new Map<string, number>();
    const available = new Map<string, number>();
    for (const node of this.#nodes.list) {
      change(total, node.total, 1);
      for (const [name, units] of node.available) {
        available.set(name, (available.get(name) ?? 0) + Math.max(0, units));
      }
    }
    return { total: toAmounts(total), available: toAmounts(available) };
  }

  /** @param label names the requester in the warning about an infeasible request */
  request(demand: Demand, label: string): ResourceRequest {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    if (this.#closed !== undefined) {
      reject(this.#closed);
      return { outcome: promise, withdraw: () => undefined, reason: undefined };
    }
    const request = this.#requests.get(demand) ?? toRequest(demand);
    this.#requests.set(demand, request);
    const entry = this.#lines.enter(demand.key, {
      sequence: this.#sequence++,
      label,
      wants: [demand.place],
      sinceMs: this.#now(),
      attempt: () => this.#attempt(request, resolve),
      close: reject,
    });
    return {
      outcome: promise,
      withdraw: () => {
        entry.leave();
        resolve({ kind: "withdrawn" });
      },
      get reason() {
        return entry.reason;
      },
    };
  }

  /** Creates a group. Returns false when another living group has the name. */
  createGroup(spec: GroupSpec): boolean {
    if (spec.name !== undefined && this.#groups.named(spec.name) !== undefined) return false;
    const group = this.#groups.add(spec, this.#sequence++);
    const { strategy, bundles, selectors } = spec;
    this.#askFor(group, JSON.stringify(["group", strategy, bundles, selectors]));
    return true;
  }

  removeGroup(groupId: string): void {
    const group = this.#groups.get(groupId);
    if (group === undefined || group.state === "REMOVED") return;
    this.#groupEntries.get(group)?.leave();
    this.#groupEntries.delete(group);
    this.#groups.remove(group, this.#nodes);
    this.#lines.serve();
  }

  /** Resolves when the group is placed, or never will be. */
  groupReady(groupId: string): Promise<GroupState> {
    const group = this.#groups.get(groupId);
    if (group === undefined || this.#closed !== undefined) return Promise.resolve("REMOVED");
    if (group.state === "CREATED" || group.state === "REMOVED") return Promise.resolve(group.state);
    return new Promise((resolve) => group.watchers.push(resolve));
  }

  groups(): readonly GroupInfo[] {
    return this.#groups.table((group) => this.#groupEntries.get(group)?.reason);
  }

  /** Returns all waiting requests, in order of request. */
  pending(): readonly PendingRequest[] {
    return this.#lines.pending();
  }

  /** Returns the lines of waiting requests, each with its first request. */
  pendingLines(): readonly PendingLine[] {
    return this.#lines.heads();
  }

  /** Returns why requests for that demand wait; undefined when none does. */
  whyWaiting(demand: Demand): string | undefined {
    return this.#lines.reasonOf(demand.key);
  }

  /** Rejects all current and later requests. */
  close(error: Error): void {
    this.#closed = error;
    this.#lines.close(error);
  }

  #attempt(request: PlacementRequest, settle: (outcome: Outcome) => void): Why | undefined {
    const decision = decide(request, {
      nodes: this.#nodes.list,
      lastSpread: this.#lastSpread,
      bundlesOf: (groupId) => this.#groups.bundlesOf(groupId),
    });
    if (decision.kind === "wait") return decision;
    if (decision.kind === "reject") {
      settle({ kind: "refused", refusal: decision.refusal, reason: decision.reason });
      return undefined;
    }
    if (request.strategy.kind === "SPREAD") this.#lastSpread = decision.pool.nodeId;
    settle({ kind: "placed", allocation: allocate(decision.pool, request.hold, this.#onFree) });
    return undefined;
  }

  #askFor(group: Group, key: string): void {
    const { name, groupId, bundles } = group.spec;
    let known = { nodesVersion: -1, feasible: false };
    const entry = this.#lines.enter(key, {
      sequence: group.sequence,
      label: `placement group ${name ?? groupId}`,
      wants: bundles,
      sinceMs: this.#now(),
      attempt: () => {
        if (!this.#groups.place(group, this.#nodes)) {
          const nodesVersion = this.#nodesVersion;
          if (known.nodesVersion !== nodesVersion) {
            known = { nodesVersion, feasible: this.#groups.isFeasible(group, this.#nodes) };
          }
          return whyNot(known.feasible);
        }
        // Requests for its bundles are later in order, so this pass still reaches them.
        return undefined;
      },
      close: () => this.#groups.remove(group, this.#nodes),
    });
    this.#groupEntries.set(group, entry);
  }
}

function whyNot(feasible: boolean): Why {
  const reason = feasible
    ? "has bundles for which there is no room now"
    : "needs bundles that the nodes could not hold";
  return { feasible, reason };
}
